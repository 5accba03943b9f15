"""`milepost run`: start a command in our care, and a guard with it where that is wanted."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tui.actions.running import Started, start_command
from tui.errors import ExitCode, UsageError
from tui.model.text import harmless

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments


def run(arguments: Arguments) -> int:
    """Start it, and say where it is."""
    if not arguments.start_command:
        raise UsageError("what is to be run?", "as in `milepost run -- python train.py --save DIR`")
    if arguments.guard:
        _refuse_unknown(arguments.guard)
    started = start_command(
        arguments.start_command, folder=Path.cwd(), name=arguments.name, log=arguments.log
    )
    lines = [
        f"pid  {started.pid}",
        f"log  {started.log}",
        f"run  {started.run_id}",
        f"watch it: milepost --log {started.log}",
    ]
    if arguments.guard is not None:
        lines.append(_guarded(started, arguments.guard))
    print("\n".join(map(harmless, lines)))
    return int(ExitCode.WELL)


def _refuse_unknown(policy: str) -> None:
    from tui.guard.decision import Policy

    if policy not in tuple(Policy):
        raise UsageError(f"there is no policy {policy}", f"there are {', '.join(Policy)}")


def _guarded(started: Started, policy: str) -> str:
    """Start a guard; the run has begun, so a guard that does not is said and no error."""
    from tui.guard.detached import begin

    why_not = begin(started.run_id, Path(started.log), policy)
    if why_not:
        return f"guard  did not start: {why_not}"
    return f"guard  watches it: milepost status --log {started.log}"
