"""Start commands and what becomes of them, for tests."""

from __future__ import annotations

import argparse
from collections.abc import Sequence

from tui.miles.edit import Edited, with_options
from tui.miles.outline import Command

FOLDER, TRIGGER = "/ckpt/run-a", "/ckpt/run-a.save-now"
WANTED = {"load": FOLDER, "save-trigger-sentinel": TRIGGER}
ADDED = f"--load {FOLDER} --save-trigger-sentinel {TRIGGER}"
LIST = "MILES_SCRIPT_EXTRA_ARGS"
RUN = ("docker", "run", "--rm")
LAUNCHER = ("python3", "scripts/run_qwen3_4b.py")


def start(*argv: str, **environment: str) -> Command:
    return Command(argv=argv, environment=tuple(environment.items()))


def edited(command: Command, options: dict[str, str] = WANTED) -> Edited[Command]:
    found = with_options(command, options)
    assert isinstance(found, Edited), found
    again = with_options(found.command, options)
    assert isinstance(again, Edited)
    assert again == Edited(command=found.command, changes=())
    assert again.command == found.command
    return found


def in_bash(text: str, options: dict[str, str] = WANTED) -> str:
    """What becomes of a text for `bash -c`."""
    return edited(start("bash", "-c", text), options).command.argv[2]


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """As the trainer takes its arguments."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    parser.add_argument("--save")
    parser.add_argument("--load")
    return parser.parse_known_args(list(words))[0]
