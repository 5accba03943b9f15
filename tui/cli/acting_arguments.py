"""What the commands that act take."""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from tui.errors import UsageError
from tui.model.action import ActionKind
from tui.model.plan import Ask

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments

_CODES = """\
exit codes: 0 done, and proven; 2 usage; 5 it ended badly; 6 no run; 7 it was left to itself;
8 refused, and nothing was changed

An action is carried out by a process of its own: it goes on when this command, the terminal or
the connection ends. `milepost actions` tells of it, and finishes one that was interrupted.
"""


class MakeParser(Protocol):
    """Makes a parser in the house's manner."""

    def __call__(
        self, command: str, description: str, epilog: str = ""
    ) -> argparse.ArgumentParser: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Act:
    """One command that changes something."""

    kind: ActionKind
    description: str
    options: tuple[Callable[[argparse.ArgumentParser], None], ...] = ()
    of_checkpoint: bool = False
    """It takes the number of a checkpoint first."""


def builders(
    make: MakeParser, target_options: Callable[[argparse.ArgumentParser], None]
) -> dict[str, Callable[[], argparse.ArgumentParser]]:
    """Command to what makes its parser."""
    acts = {name: partial(_acting, name, act, make, target_options) for name, act in ACTS.items()}
    return {
        **acts,
        "actions": partial(_actions_parser, make, target_options),
        "run": partial(_run_parser, make),
    }


def _acting(
    name: str,
    act: Act,
    make: MakeParser,
    target_options: Callable[[argparse.ArgumentParser], None],
) -> argparse.ArgumentParser:
    parser = make(name, act.description, _CODES)
    if act.of_checkpoint:
        parser.add_argument("iteration", nargs="?", metavar="ITER", help="the checkpoint's number")
    target_options(parser)
    parser.add_argument("--dry-run", action="store_true", help="only show what would be done")
    parser.add_argument("--yes", action="store_true", help="do not ask; for scripts")
    _json(parser, "the outcome as a versioned JSON document on stdout")
    parser.set_defaults(command=lambda arguments: _act(arguments, _ask(act.kind, arguments)))
    for option in act.options:
        option(parser)
    return parser


def _actions_parser(
    make: MakeParser, target_options: Callable[[argparse.ArgumentParser], None]
) -> argparse.ArgumentParser:
    parser = make("actions", "What was done to the run, and what is under way.", _CODES)
    target_options(parser)
    group = parser.add_mutually_exclusive_group()
    for flag, told in (
        ("--finish", "carry on with the one that was interrupted"),
        ("--give-up", "close it as it stands"),
        ("--cancel", "ask the one under way to leave off"),
    ):
        group.add_argument(flag, action="store_true", help=told)
    _json(parser, "a versioned JSON document on stdout")
    parser.set_defaults(command=_actions)
    return parser


def _run_parser(make: MakeParser) -> argparse.ArgumentParser:
    parser = make(
        "run",
        "Start a command in our care, as in `milepost run -- python train.py …`: detached, its\n"
        "output in a log file, how it was started kept, so that it can be resumed later.",
        "exit codes: 0 it was started, 2 usage, 8 refused\n",
    )
    parser.add_argument("--name", help="of the run (default: of its save folder)")
    parser.add_argument("--log", type=Path, metavar="FILE", help="new file for its output")
    parser.add_argument(
        "--guard",
        nargs="?",
        const="",
        metavar="POLICY",
        help="start a guard with it (default: as [guard] of the configuration says)",
    )
    parser.set_defaults(command=_run)
    return parser


def split_command(words: Sequence[str]) -> tuple[list[str], tuple[str, ...]]:
    """What stands before `--`, and the command behind it."""
    if "--" not in words:
        return list(words), ()
    at = list(words).index("--")
    return list(words[:at]), tuple(words[at + 1 :])


def _stop_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--save-first",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="save before the stop (default: where the run can)",
    )
    parser.add_argument(
        "--autopsy",
        dest="take_autopsy",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="write down what it is at first (default: where it hangs)",
    )


def _resume_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--from",
        dest="iteration",
        type=int,
        metavar="ITER",
        help="roll back to this checkpoint first (default: the newest good one)",
    )
    parser.add_argument(
        "--keep-wrong",
        action="store_true",
        help="do not stop it when it starts fresh or at the wrong step",
    )
    parser.add_argument(
        "--force", action="store_true", help="also after the same failure twice in a row"
    )


def _rollback_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--undo", action="store_true", help="undo the last rollback")
    parser.add_argument("--force", action="store_true", help="also one that a verify spoke against")
    parser.set_defaults(command=_roll)


def _convert_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--origin-hf-dir", type=Path, metavar="DIR", help="the base model's Hugging Face folder"
    )


def _json(parser: argparse.ArgumentParser, help_text: str) -> None:
    parser.add_argument("--json", action="store_true", help=help_text)
    parser.add_argument("--config", type=Path, help=argparse.SUPPRESS)


def _ask(kind: ActionKind, arguments: Arguments) -> Ask:
    iteration = arguments.iteration
    if isinstance(iteration, str) and not iteration.isdecimal():
        # The only word was the run's name.
        if arguments.run is not None:
            raise UsageError(f"{iteration} is not the number of a checkpoint")
        arguments.run, iteration = iteration, None
    return Ask(
        kind=kind,
        iteration=None if iteration is None else int(iteration),
        save_first=arguments.save_first,
        take_autopsy=arguments.take_autopsy,
        stop_if_wrong=not arguments.keep_wrong,
        force=arguments.force,
        command=arguments.start_command,
        origin=str(arguments.origin_hf_dir) if arguments.origin_hf_dir is not None else "",
    )


def _roll(arguments: Arguments) -> int:
    kind = ActionKind.UNDO if arguments.undo else ActionKind.ROLLBACK
    ask = _ask(kind, arguments)
    if arguments.undo == (ask.iteration is not None):
        raise UsageError("a rollback needs the number of a checkpoint, or --undo")
    return _act(arguments, ask)


ACTS: Mapping[str, Act] = {
    "save": Act(
        kind=ActionKind.SAVE,
        description="Ask the run to save at the end of this rollout, and see it land on disk.\n"
        "Needs --save-trigger-sentinel in its command; a resume can switch that on.",
    ),
    "stop": Act(
        kind=ActionKind.STOP,
        description="End the run: save first where it can, ask, wait, force, and see its memory\n"
        "come free.",
        options=(_stop_options,),
    ),
    "resume": Act(
        kind=ActionKind.RESUME,
        description="Start the run again from its newest good checkpoint, killing first what\n"
        "still lives of it, with a new log; then watch until the log proves the right step. Works\n"
        "when the run is long gone. `-- COMMAND…` starts that instead of what is known.",
        options=(_stop_options, _resume_options),
    ),
    "rollback": Act(
        kind=ActionKind.ROLLBACK,
        description="Make an older whole checkpoint the one that a resume loads. What is newer is\n"
        "moved to a folder beside it; nothing is deleted, and --undo puts everything back.",
        options=(_rollback_options,),
        of_checkpoint=True,
    ),
    "convert": Act(
        kind=ActionKind.CONVERT,
        description="Turn a checkpoint into a Hugging Face folder with Miles' own converter, and\n"
        "prove that every weight arrived.",
        options=(_convert_options,),
        of_checkpoint=True,
    ),
    "autopsy": Act(
        kind=ActionKind.AUTOPSY,
        description="Write down what every process of the run is at: stacks, counters, last\n"
        "lines, memory. Changes nothing of the run. Takes at most 20 s.",
    ),
}


# What they do is imported when it is asked for: it knows half of the program.


def _act(arguments: Arguments, ask: Ask) -> int:
    from tui.cli.acting import act

    return act(arguments, ask)


def _actions(arguments: Arguments) -> int:
    from tui.cli.acting import actions

    return actions(arguments)


def _run(arguments: Arguments) -> int:
    from tui.cli.starting import run

    return run(arguments)
