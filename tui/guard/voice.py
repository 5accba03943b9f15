"""What a guard says, and to whom: alerts once, its own words, and why it does nothing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

from tui.guard.books import OUTCOME, Books
from tui.guard.decision import Decision, Move
from tui.guard.flood import Flood
from tui.guard.notice import NewsDesk, Notice, said
from tui.guard.seams import Teller
from tui.model.action import ActionRecord, ActionState
from tui.model.journal import Remark
from tui.model.judge.words import counted
from tui.model.snapshot import Level, Snapshot

HOLDS = "guard-holds"
_HELD_S, _HELD_AGAIN_S = 10.0, 600.0
"""How long something has to speak against acting to be told, and to be gone to be told again."""


class Voice:
    """Tells people, and the journal of the run."""

    def __init__(self, teller: Teller) -> None:
        self._teller = teller
        self._books = Books(Path(), read_only=True)
        self._news, self._flood = NewsDesk(), Flood()
        self._held: tuple[str, float] = ("", 0.0)
        self._held_told: dict[str, float] = {}
        self._told_fault = ""
        self.last = Snapshot()
        """What is spoken of."""

    def open(self, books: Books, remarks: Iterable[Remark], snapshot: Snapshot) -> None:
        """Write into this journal; what is told there already is not told again."""
        self._books, self.last = books, snapshot
        self._news.recall(remarks)

    def tell_news(self, snapshot: Snapshot) -> None:
        """Every alert that came, got worse or is over; how many were too many; a full disk."""
        self.last = snapshot
        for notice in self._news.of(snapshot):
            if self._flood.lets(notice.level, notice.at):
                self._teller.tell(notice)
                self._books.write(notice)
        if count := self._flood.held_back(snapshot.now):
            line = f"{counted(count, 'more notice')} were not told one by one"
            self.say("guard-flood", line, Level.WARNING)
        fault = self._books.fault
        if fault and fault != self._told_fault:
            line = f"the journal cannot be written, and so nothing is done: {fault}"
            self.tell(said(snapshot, "guard-journal", line, Level.WARNING))
        self._told_fault = fault

    def tell_why_not(self, decision: Decision, now: float) -> None:
        """What speaks against acting, once it does so for a while, and once while it stands."""
        if decision.move is not Move.HOLD:
            self._held = ("", 0.0)
            return
        code, since = self._held
        if code != decision.code or now < since:
            self._held = (decision.code, now)
            return
        if now - since < _HELD_S:
            return
        stood_at = self._held_told.get(code)
        self._held_told[code] = now
        if stood_at is None or not 0.0 <= now - stood_at < _HELD_AGAIN_S:
            self.say(HOLDS, f"does nothing: {decision.line}", Level.WARNING)

    def tell_outcome(self, record: ActionRecord) -> None:
        """What became of something that the guard did."""
        is_done = record.state is ActionState.DONE
        self.say(
            OUTCOME,
            f"{record.title}: {record.state.value}: {record.line}",
            Level.INFO if is_done else Level.CRITICAL,
            record.done,
            {"action": record.id},
        )

    def say(
        self,
        code: str,
        line: str,
        level: Level,
        evidence: tuple[str, ...] = (),
        facts: Mapping[str, str] | None = None,
    ) -> None:
        """A word of the guard's own, to people and into the journal."""
        notice = said(self.last, code, line, level, evidence)
        self.tell(notice)
        self._books.write(notice, facts)

    def tell(self, notice: Notice) -> None:
        """To people alone."""
        self._teller.tell(notice)

    def note(self, code: str, line: str, facts: Mapping[str, str] | None = None) -> None:
        """Into the journal alone."""
        self._books.write(said(self.last, code, line), facts)
