"""Whether a guard watches the run: its lock, its card, and whether a person has paused it."""

from __future__ import annotations

from collections.abc import Sequence

from tui.model.events import Event, GuardRead
from tui.model.guard import GuardStatus
from tui.model.snapshot import Snapshot
from tui.runs.guard_card import guard_of
from tui.runs.state_dir import run_folder


class GuardProbe:
    """Tells of the guard when it is another than was told last."""

    name = "guard"
    cadence_s = 1.0
    deadline_s = 3.0

    def __init__(self) -> None:
        self._told: GuardStatus | None = None

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """The guard of the attached run."""
        guard = guard_of(run_folder(seen.attachment), now)
        if guard == self._told:
            return ()
        self._told = guard
        return (GuardRead(at=now, guard=guard),)

    def close(self) -> None:
        """Nothing is held."""
