"""The command line: what each command takes, and help that teaches."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NoReturn

from tui import __version__
from tui.cli import acting_arguments, checking_arguments, commands
from tui.cli.acting_arguments import split_command
from tui.cli.guard_arguments import guard_parser
from tui.cli.overview import EXIT_CODES, OVERVIEW, epilog
from tui.errors import UsageError


class _Parser(argparse.ArgumentParser):
    def error(self, message: str) -> NoReturn:
        raise UsageError(message, f"see `{self.prog} --help`")


class Arguments(argparse.Namespace):
    """What was typed. None: not typed, so the configuration decides."""

    command: Callable[[Arguments], int]
    run: str | None
    log: Path | None
    checkpoints: Path | None
    engine: list[str]
    container: str | None
    config: Path | None
    read_only: bool
    theme: str | None
    ascii: bool
    no_mouse: bool
    interval: float | None
    json: bool
    as_of: str | None
    speed: float
    fault: list[str]
    headless: bool
    seed: int
    dir: Path | None
    folder: Path | None
    what: str | None
    all: bool
    shallow: bool
    dry_run: bool
    yes: bool
    finish: bool
    give_up: bool
    cancel: bool
    undo: bool
    iteration: int | str | None = None
    save_first: bool | None = None
    take_autopsy: bool | None = None
    keep_wrong: bool = False
    force: bool = False
    name: str | None
    origin_hf_dir: Path | None = None
    notify: list[str]
    notify_command: str | None
    textfile: Path | None
    listen: str | None
    listen_anywhere: bool
    act: str | None
    backtest: list[Path] | None
    test_notify: bool
    pause: bool
    unpause: bool
    install: bool
    uninstall: bool
    guard: str | None = None
    """The policy of the guard that starts with a run; empty: the configuration's."""
    start_command: tuple[str, ...] = ()
    """What stands behind `--`."""


def parsed(argv: Sequence[str]) -> Arguments:
    """The arguments of one command line.

    Raises:
        UsageError: it cannot be understood.
    """
    words, command = split_command(argv)
    builders = _builders()
    if command and words[:1] not in (["run"], ["resume"]):
        raise UsageError("-- COMMAND is for `milepost run` and `milepost resume`")
    if words and words[0] in builders:
        arguments = builders[words[0]]().parse_args(words[1:], namespace=Arguments())
        arguments.start_command = command
        return arguments
    return _watch().parse_args(words, namespace=Arguments())


def commands_there_are() -> tuple[str, ...]:
    """By name, beside the screen's own."""
    return tuple(_builders())


def _builders() -> Mapping[str, Callable[[], argparse.ArgumentParser]]:
    return {
        "demo": _demo,
        "status": _status,
        "explain": _explain,
        "runs": _runs,
        "guard": lambda: guard_parser(_parser, _target_options),
        **checking_arguments.builders(_parser),
        **acting_arguments.builders(_parser, _target_options),
    }


def _parser(command: str, description: str, epilog: str = "") -> _Parser:
    return _Parser(
        prog=f"milepost {command}".rstrip(),
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
        allow_abbrev=False,
    )


def _watch() -> _Parser:
    parser = _parser("", OVERVIEW, epilog())
    parser.add_argument("--version", action="version", version=f"milepost {__version__}")
    _target_options(parser)
    _screen_options(parser)
    parser.set_defaults(command=commands.watch)
    return parser


def _demo() -> _Parser:
    parser = _parser(
        "demo",
        "Start a simulated Miles run and watch it. It writes real log lines and checkpoints,\n"
        "answers as engines on loopback, and can fail in known ways. Needs no GPU and no Miles.",
        commands.demo_epilog(),
    )
    parser.add_argument(
        "--speed", type=float, default=commands.DEMO_SPEED, help="times faster than life"
    )
    parser.add_argument(
        "--fault",
        action="append",
        default=[],
        metavar="NAME[@ROLLOUT]",
        help="make it fail, at that rollout where one is given; may be repeated",
    )
    parser.add_argument("--seed", type=int, default=commands.DEMO_SEED, help="same seed, same run")
    parser.add_argument(
        "--dir", type=Path, help="where the run lives (default: a new temporary folder)"
    )
    parser.add_argument(
        "--headless", action="store_true", help="only run it and say where it is; ctrl+c ends it"
    )
    _screen_options(parser)
    parser.set_defaults(command=commands.demo)
    return parser


def _status() -> _Parser:
    parser = _parser("status", "Read everything once and say how the run is.", EXIT_CODES)
    _target_options(parser)
    parser.add_argument("--json", action="store_true", help="a versioned JSON document on stdout")
    parser.add_argument("--config", type=Path, help=argparse.SUPPRESS)
    parser.set_defaults(command=commands.status)
    return parser


def _explain() -> _Parser:
    parser = _parser(
        "explain",
        "Read a finished or copied log and say what happened: state, last progress, cause with\n"
        "its evidence, how the run began, alerts, a short timeline. Needs nothing but the file.",
    )
    parser.add_argument("log", nargs="?", type=Path, metavar="LOG", help="the run's log file")
    parser.add_argument("--checkpoints", type=Path, metavar="DIR", help="its save folder")
    parser.add_argument(
        "--run",
        nargs="?",
        const="",
        metavar="RUN",
        help="instead of a log: what the record of a run tells, kept by guards and open screens: "
        "when the box or the run was lost while nobody watched, and why (default: the one run)",
    )
    parser.add_argument(
        "--as-of",
        metavar="TIME",
        help="judge as if now were TIME, in the log's own clock: '2026-11-29 12:08', '12:08:30' or "
        "'+15m' after its last line (default: its last line)",
    )
    parser.add_argument("--json", action="store_true", help="a versioned JSON document on stdout")
    parser.set_defaults(command=commands.explain)
    return parser


def _runs() -> _Parser:
    parser = _parser(
        "runs",
        "List the runs on this machine, where each value was found, and what could not be read.\n"
        "Looked at: containers, processes, Ray jobs. Exit code 0 when there is one, 6 when not.",
    )
    parser.add_argument("--json", action="store_true", help="a versioned JSON document on stdout")
    parser.add_argument("--config", type=Path, help=argparse.SUPPRESS)
    parser.set_defaults(command=commands.runs)
    return parser


def _target_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what to watch (each overrides what is found)")
    group.add_argument(
        "run", nargs="?", metavar="RUN", help="a container, a pid, a Ray job's id, or a log file"
    )
    group.add_argument("--log", type=Path, metavar="FILE", help="the run's log file")
    group.add_argument("--checkpoints", type=Path, metavar="DIR", help="its save folder")
    group.add_argument(
        "--engine", action="append", default=[], metavar="URL", help="an engine; may be repeated"
    )
    group.add_argument("--container", metavar="NAME", help="its container, by name or id")


def _screen_options(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("the screen")
    group.add_argument("--read-only", action="store_true", help="no command that changes anything")
    group.add_argument("--theme", metavar="NAME", help="night, day, contrast, safe, sixteen, …")
    group.add_argument("--ascii", action="store_true", help="draw with ASCII characters only")
    group.add_argument("--no-mouse", action="store_true", help="leave the mouse to the terminal")
    group.add_argument(
        "--interval", type=float, metavar="S", help="seconds between frames (default 1)"
    )
    group.add_argument("--config", type=Path, metavar="FILE", help="another configuration file")
