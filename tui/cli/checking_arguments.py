"""What the commands take that look at checkpoints."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from tui.cli.acting_arguments import MakeParser

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments


def builders(make: MakeParser) -> dict[str, Callable[[], argparse.ArgumentParser]]:
    """Command to what makes its parser."""
    return {"checkpoints": partial(_checkpoints, make), "verify": partial(_verify, make)}


def _checkpoints(make: MakeParser) -> argparse.ArgumentParser:
    parser = make(
        "checkpoints",
        "List a save folder: which checkpoints are whole, which one a restart would load, what\n"
        "the disk still takes. Without DIR the folder of the run on this machine.",
        "exit codes: 0 a restart loads the best there is, 3 it does not, 6 there is none",
    )
    parser.add_argument("folder", nargs="?", type=Path, metavar="DIR", help="the save folder")
    parser.add_argument("--json", action="store_true", help="a versioned JSON document on stdout")
    parser.set_defaults(command=_list)
    return parser


def _verify(make: MakeParser) -> argparse.ArgumentParser:
    parser = make(
        "verify",
        "Read every byte and take every checksum: a checkpoint, a part of one, a Hugging Face\n"
        "folder, or one file of these. Finds what torch, DCP and safetensors load without a word.\n"
        "The result is remembered, outside the folder, until a file changes. Nothing is written\n"
        "to the checkpoint.",
        "exit codes: 0 sound, 3 sound but the model holds nan or inf, 5 damaged or not whole,\n"
        "6 nothing there, 7 something could not be read",
    )
    parser.add_argument(
        "what",
        nargs="?",
        metavar="ITER|PATH",
        help="a number in the run's save folder, or a path (default: what a restart would load)",
    )
    parser.add_argument("--all", action="store_true", help="every checkpoint of the folder")
    parser.add_argument(
        "--shallow", action="store_true", help="presence, sizes and indexes only: milliseconds"
    )
    parser.add_argument("--json", action="store_true", help="a versioned JSON document on stdout")
    parser.set_defaults(command=_check)
    return parser


# What they do is imported when it is asked for: it reads every format there is.


def _list(arguments: Arguments) -> int:
    from tui.cli.checking import checkpoints

    return checkpoints(arguments)


def _check(arguments: Arguments) -> int:
    from tui.cli.checking import check

    return check(arguments)
