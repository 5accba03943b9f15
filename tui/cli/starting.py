"""`milepost run`: start a command in our care."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui.actions.running import start_command
from tui.errors import ExitCode, UsageError
from tui.model.text import harmless

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments


def run(arguments: Arguments) -> int:
    """Start it, and say where it is."""
    if not arguments.start_command:
        raise UsageError("what is to be run?", "as in `milepost run -- python train.py --save DIR`")
    started = start_command(
        arguments.start_command, folder=Path.cwd(), name=arguments.name, log=arguments.log
    )
    lines = (
        f"pid  {started.pid}",
        f"log  {started.log}",
        f"run  {started.run_id}",
        f"watch it: milepost --log {started.log}",
    )
    print("\n".join(map(harmless, lines)))
    return int(ExitCode.WELL)
