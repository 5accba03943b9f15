"""The run's journal: what was done to it, and whether an action is at work now."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui.model.action import ActionRecord
from tui.model.events import Event, JournalRead
from tui.model.snapshot import Snapshot
from tui.runs.journal import Journal
from tui.runs.lock import holder_of
from tui.runs.state_dir import run_folder

_MOST_ACTIONS = 50


class JournalProbe:
    """Tells of the actions on the attached run when there is something new."""

    name = "journal"
    cadence_s = 0.5
    deadline_s = 3.0

    def __init__(self) -> None:
        self._folder = Path()
        self._size_bytes = -1
        self._told: tuple[tuple[ActionRecord, ...], str] = ((), "")
        self._actions: tuple[ActionRecord, ...] = ()

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """The actions, when they are not what was told last."""
        folder = run_folder(seen.attachment)
        self._read(folder)
        holder = holder_of(folder) or ""
        if not holder and any(each.is_open for each in self._actions):
            self._read(folder)  # it may have ended between the two looks, and is not interrupted
        found = (self._actions, holder)
        if found == self._told:
            return ()
        self._told = found
        return (JournalRead(at=now, actions=found[0], holder=found[1]),)

    def _read(self, folder: Path) -> None:
        journal = Journal(folder)
        size_bytes = journal.size_bytes()
        if folder != self._folder or size_bytes != self._size_bytes:
            self._folder, self._size_bytes = folder, size_bytes
            with suppress(OSError):
                self._actions = journal.actions()[-_MOST_ACTIONS:]

    def close(self) -> None:
        """Nothing is held."""
