"""What `milepost guard` takes."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from tui.cli.acting_arguments import MakeParser

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments

_DESCRIPTION = """\
Watch a run when nobody looks: tell what is wrong, keep a black box, and within a policy act.
Without a policy it only watches and tells. A person at the screen outranks it: `p` pauses it.

  milepost guard run-a --notify ntfy://my-topic
  milepost guard run-a --act resume --dry-run
  milepost guard --backtest runs/plain.log
  milepost guard run-a --act resume --install

The address of a channel on the command line can be read by everybody on this box; in a
config.toml that is yours alone (chmod 600) it cannot: notify = ["ntfy://my-topic"] in [guard].
"""
_EPILOG = """\
policies: none            watch and tell (the default)
          save-on-alert   ask for a save when the run may not come to its next one
          stop-on-memory-floor
                          stop it before the box runs out of memory and freezes
          resume          start it again when it is dead, or proven to be stalled

exit codes: 0 the run is over, 1 the guard failed, 2 usage, 6 no run, 8 another guard is there;
129, 130, 143 ended by a signal, in order
"""


def guard_parser(
    make: MakeParser, target_options: Callable[[argparse.ArgumentParser], None]
) -> argparse.ArgumentParser:
    """Its parser."""
    parser = make("guard", _DESCRIPTION, _EPILOG)
    target_options(parser)
    parser.add_argument("--config", type=Path, metavar="FILE", help="another configuration file")
    _telling(parser)
    _acting(parser)
    _instead(parser)
    parser.set_defaults(command=_guard)
    return parser


def _telling(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("whom it tells")
    group.add_argument(
        "--notify",
        action="append",
        default=[],
        metavar="URL",
        help="http(s)://… gets JSON; ntfy://, slack://, mailto://, tgram:// and a hundred more "
        "by apprise (milepost[notify]); may be repeated",
    )
    group.add_argument(
        "--notify-command",
        metavar="COMMAND",
        help="run this, without a shell, with the notice as JSON on its standard input",
    )
    group.add_argument(
        "--textfile", type=Path, metavar="FILE.prom", help="metrics for node_exporter"
    )
    group.add_argument(
        "--listen", metavar="HOST:PORT", help="metrics at http://HOST:PORT/metrics (default: no)"
    )
    group.add_argument(
        "--listen-anywhere",
        action="store_true",
        help="also where others than this machine can read them",
    )


def _acting(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("what it may do")
    group.add_argument("--act", metavar="POLICY", help="see below (default: none)")
    group.add_argument(
        "--dry-run", action="store_true", help="say what it would do, and do and write nothing"
    )


def _instead(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("instead of watching").add_mutually_exclusive_group()
    group.add_argument(
        "--backtest",
        nargs="*",
        type=Path,
        metavar="LOG",
        help="what it would have told and done over recorded history (default: the run's own log)",
    )
    group.add_argument(
        "--test-notify", action="store_true", help="tell every channel something now"
    )
    group.add_argument(
        "--pause", action="store_true", help="keep guards from acting on the run until told"
    )
    group.add_argument("--unpause", action="store_true", help="let them act again")
    group.add_argument(
        "--install", action="store_true", help="write a systemd user unit, and say what to run"
    )
    group.add_argument("--uninstall", action="store_true", help="remove that unit")


def _guard(arguments: Arguments) -> int:
    from tui.cli.guarding import guard

    return guard(arguments)
