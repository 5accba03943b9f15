"""The journal of the run that is guarded: read when it has grown, added to, and remembered by.

A guard that is killed goes on where it was: what it did is in the journal before it is done.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

from tui.guard.decision import State
from tui.guard.limits import Deed, End
from tui.guard.notice import Notice
from tui.model.journal import Remark
from tui.model.snapshot import Snapshot
from tui.runs.journal import Journal
from tui.runs.lock import holder_of
from tui.runs.state_dir import made

ACTS, OUTCOME, WATCHES = "guard-acts", "guard-outcome", "guard-watches"
_MOST_ACTIONS = 50


class Books:
    """One run's journal, as a guard keeps it."""

    def __init__(self, folder: Path, *, read_only: bool = False) -> None:
        self.folder = folder
        self._journal = Journal(folder)
        self._read_only = read_only
        self._size_bytes = -1
        self._actions = self._journal.actions()[:0]
        self.fault = ""
        """Why nothing can be written down; empty while it can."""

    def joined(self, snapshot: Snapshot) -> Snapshot:
        """The snapshot with the actions as the journal tells them at this moment."""
        holder = holder_of(self.folder) or ""
        size = self._journal.size_bytes()
        if size != self._size_bytes:
            with suppress(OSError):
                self._actions = self._journal.actions()[-_MOST_ACTIONS:]
                self._size_bytes = size
        return replace(snapshot, actions=self._actions, action_holder=holder)

    def write(self, notice: Notice, facts: Mapping[str, str] | None = None) -> bool:
        """Whether it is on disk."""
        if self._read_only:
            return True
        remark = Remark(
            at=notice.at,
            code=notice.code,
            news=notice.news.value,
            level=notice.level,
            line=notice.line,
            subject=notice.subject,
            evidence=notice.evidence,
            facts=facts or {},
        )
        try:
            made(self.folder)
            self._journal.remark(remark)
        except OSError as fault:
            self.fault = f"{self.folder}: {fault.strerror or fault}"
            return False
        self.fault = ""
        return True

    def remarks(self) -> tuple[Remark, ...]:
        """All that guards said of this run."""
        try:
            return tuple(self._journal.remarks())
        except OSError:
            return ()


def deed_facts(deed: Deed) -> Mapping[str, str]:
    """A deed as it is written down."""
    return {
        "action": deed.action,
        "fault": deed.fault,
        "where": deed.end.where,
        "cause": deed.end.cause,
    }


def remembered(remarks: Iterable[Remark]) -> tuple[State, frozenset[str]]:
    """The state that the guard before us left, and its actions that nobody told the end of."""
    deeds: dict[str, Deed] = {}
    told: set[str] = set()
    seen_alive = False
    for remark in remarks:
        action = remark.facts.get("action", "")
        if remark.code == ACTS and action:
            deeds[action] = Deed(
                at=remark.at,
                action=action,
                fault=remark.facts.get("fault", ""),
                end=End(where=remark.facts.get("where", ""), cause=remark.facts.get("cause", "")),
            )
        elif remark.code == OUTCOME:
            told.add(action)
        elif remark.code == WATCHES:
            seen_alive = True
    state = State(deeds=tuple(deeds.values())[-_MOST_ACTIONS:], seen_alive=seen_alive)
    return state, frozenset(deeds.keys() - told)
