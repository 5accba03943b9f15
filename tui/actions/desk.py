"""Where screens and commands ask for plans, and have them carried out.

Planning knows half of the program, so it is imported when the first plan is asked for: a screen
that only watches starts without.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path

from tui.errors import MilepostError
from tui.model.plan import ActionPlan, Ask, Refusal
from tui.model.reading import Absence, Unknown
from tui.model.snapshot import Snapshot
from tui.runs.guard_card import pause, unpause
from tui.runs.lock import LockHeldError
from tui.runs.state_dir import run_folder, runs_folder

_SETTLES_S = 5.0
_LOOK_S = 0.1


class Desk:
    """Plans for the run of the newest snapshot."""

    def __init__(self, latest: Callable[[], Snapshot], *, read_only: bool) -> None:
        self._latest = latest
        self._read_only = read_only

    def plan(self, ask: Ask) -> ActionPlan | Refusal:
        """What would be done. Looks at the machine: takes up to some seconds."""
        from tui.actions.planning import planned, situation_of

        if self._read_only:
            return Refusal(reason="milepost is read-only", remedy="start it without --read-only")
        return planned(situation_of(self._settled()), ask)

    def _settled(self) -> Snapshot:
        """The newest snapshot, once log and save folder were read: a key may come before that."""
        end = time.monotonic() + _SETTLES_S
        while time.monotonic() < end and not _is_settled(self._latest()):
            time.sleep(_LOOK_S)
        return self._latest()

    def launch(self, plan: ActionPlan) -> str:
        """Begin it; empty when it has begun, else why it did not."""
        from tui.actions.launch import launch

        folder = runs_folder() / plan.run_id
        return self._refusal(lambda _: launch(plan, folder, read_only=self._read_only))

    def finish(self, action: str) -> str:
        """Carry on with one that was interrupted."""
        from tui.actions.launch import carry_on

        return self._refusal(lambda folder: carry_on(folder, action, read_only=self._read_only))

    def give_up(self, action: str) -> str:
        """Close one that was interrupted, as it stands."""
        from tui.actions.launch import give_up

        return self._refusal(lambda folder: give_up(folder, action, time.time()))

    def cancel(self, action: str) -> str:
        """Ask the one that is under way to leave off."""
        from tui.actions.launch import cancel

        return self._refusal(lambda folder: cancel(folder, action))

    def pause_guard(self, *, paused: bool) -> str:
        """Keep guards from acting on the run, which read-only too may do, or let them again."""
        if not paused and self._read_only:
            return "milepost is read-only: `milepost guard --unpause` lets the guard act again"
        if paused:
            return self._refusal(lambda folder: pause(folder, "a person at the screen"))
        return self._refusal(unpause)

    def _refusal(self, act: Callable[[Path], None]) -> str:
        try:
            act(run_folder(self._latest().attachment))
        except (MilepostError, LockHeldError, OSError) as fault:
            return str(fault)
        return ""


def _is_settled(snapshot: Snapshot) -> bool:
    tree, log = snapshot.checkpoints, snapshot.log
    if isinstance(tree, Unknown) and tree.why is Absence.NOT_ASKED:
        return False
    is_read = bool(log.read_at or log.fault) or snapshot.attachment.log is None
    return is_read and log.history_ratio >= 1.0
