"""The guard: what the monitor publishes is told, judged by the policy, and acted on.

Watching is never held up: what takes time is done by hands on a thread of their own, and whatever
cannot be written or told is said once and gone on without. What cannot be written down is not done.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from dataclasses import replace
from pathlib import Path

from tui.attach import has_target
from tui.errors import ExitCode
from tui.guard.books import ACTS, OUTCOME, WATCHES, Books, deed_facts, remembered
from tui.guard.decision import Decision, Move, State, Terms, begun, refused
from tui.guard.flood import Flood
from tui.guard.hands import Hands, Result
from tui.guard.notice import NewsDesk, Notice, said
from tui.guard.policy import decide
from tui.guard.seams import Keeper, Planner, Seen, Shower, Teller, Watch
from tui.model.action import ActionRecord, ActionState
from tui.model.judge.words import counted
from tui.model.plan import ActionPlan
from tui.model.snapshot import Level, RunState, Snapshot
from tui.runs.guard_card import paused_by
from tui.runs.state_dir import run_folder

_LOOK_S = 0.5
_STANDS_STILL = 120
"""Looks in a row without a snapshot: the monitor itself has ended."""
_HELD_S, _HELD_AGAIN_S = 10.0, 600.0
"""How long something has to speak against acting to be told, and to be gone to be told again."""
_OVER_S = 600.0


def run_guard(
    monitor: Watch,
    terms: Terms,
    *,
    desk: Planner,
    teller: Teller,
    keeper: Keeper,
    shower: Shower,
    presence: Seen,
    stop: threading.Event,
    dry_run: bool = False,
) -> int:
    """Guard a run until told to stop, or until it has ended well.

    Args:
        monitor: not started yet.
        terms: what may be done, and how often.
        desk: of the actions, on the monitor's newest snapshot.
        teller: told of everything that is new.
        keeper: given every snapshot, to be recorded.
        shower: given every snapshot, for metrics.
        presence: shows others that a guard is here, and keeps a second one away.
        stop: set from outside to end.
        dry_run: only say what would be done; nothing is written.

    Raises:
        LockHeldError: another guard watches this run.
    """
    guard = Guard(monitor, terms, desk=desk, teller=teller, presence=presence, dry_run=dry_run)
    newest: deque[Snapshot] = deque(maxlen=1)
    news = threading.Event()

    def publish(snapshot: Snapshot) -> None:
        keeper.record(snapshot)
        shower.export(snapshot)
        newest.append(snapshot)
        news.set()

    monitor.start(publish)
    try:
        return int(_looking(guard, newest, news, stop))
    finally:
        guard.end()
        monitor.stop()


def _looking(
    guard: Guard, newest: deque[Snapshot], news: threading.Event, stop: threading.Event
) -> ExitCode:
    """Look at what is published until there is no more to look for."""
    empty = 0
    while not stop.is_set() and not guard.is_over:
        if not news.wait(_LOOK_S):
            empty += 1
            if empty >= _STANDS_STILL:
                guard.say_that_it_is_blind()
                return ExitCode.ERROR
            continue
        empty = 0
        news.clear()
        if newest:
            guard.look(newest.popleft())
    return ExitCode.WELL


class Guard:
    """What it does with each snapshot. Called from one thread."""

    def __init__(
        self,
        monitor: Watch,
        terms: Terms,
        *,
        desk: Planner,
        teller: Teller,
        presence: Seen,
        dry_run: bool = False,
    ) -> None:
        self._monitor, self._terms = monitor, terms
        self._teller, self._presence = teller, presence
        self._dry_run = dry_run
        self._hands = Hands(desk, dry_run=dry_run)
        self._news, self._flood = NewsDesk(), Flood()
        self._state, self._books = State(), Books(Path(), read_only=True)
        self._awaited: frozenset[str] = frozenset()
        self._held: tuple[str, float] = ("", 0.0)
        self._held_told: dict[str, float] = {}
        self._last = Snapshot()
        self._told_fault = ""
        self.is_over = False
        """The run has ended well, and for long: there is nothing to guard."""

    def look(self, snapshot: Snapshot) -> None:
        """Tell what is new, and do what is to be done about it."""
        if not has_target(snapshot.attachment):
            return
        folder = run_folder(snapshot.attachment)
        self._presence.watch(folder)
        self._open(folder, snapshot)
        snapshot = self._last = self._books.joined(snapshot)
        for notice in self._news.of(snapshot):
            self._tell(notice)
        self._tell_of_floods_and_faults(snapshot)
        if self._hands.are_busy:
            self._take(self._hands.result(), snapshot)
        else:
            self._decide(snapshot)
        self._tell_outcomes(snapshot)
        ended = snapshot.verdict.state is RunState.FINISHED and not snapshot.action_holder
        self.is_over = ended and snapshot.now - snapshot.verdict.since > _OVER_S

    def say_that_it_is_blind(self) -> None:
        """The monitor tells nothing any more."""
        line = "the guard sees nothing any more and ends: it has to be started again"
        self._say("guard-blind", line, Level.CRITICAL)

    def end(self) -> None:
        """Say that it ended in order."""
        at = time.time()
        if self._last.now:
            self._note("guard-ended", f"the guard ended, the run is {self._last.verdict.state}")
        self._presence.end(at)

    # Deciding

    def _open(self, folder: Path, snapshot: Snapshot) -> None:
        """Use the journal of that run; what a guard before us did in it is remembered."""
        if folder == self._books.folder:
            return
        was_alive = self._state.seen_alive
        self._books = Books(folder, read_only=self._dry_run)
        remarks = self._books.remarks()
        self._state, self._awaited = remembered(remarks)
        self._news.recall(remarks)
        self._state = replace(self._state, seen_alive=self._state.seen_alive or was_alive)
        self._last = snapshot
        self._note("guard-began", f"the guard began, policy {self._terms.policy}")

    def _decide(self, snapshot: Snapshot) -> None:
        paused = paused_by(self._books.folder)
        was_alive = self._state.seen_alive
        self._state, decision = decide(
            self._state, snapshot, self._terms, f"paused by {paused}" if paused else ""
        )
        if self._state.seen_alive and not was_alive:
            self._note(WATCHES, "the run lives", {"state": snapshot.verdict.state.value})
        match decision.move:
            case Move.WATCH:
                self._held = ("", 0.0)
            case Move.HOLD:
                self._hold(decision, snapshot.now)
            case Move.VERIFY:
                self._say("guard-verifies", decision.line, Level.INFO)
                self._monitor.verify(decision.path)
            case Move.FINISH:
                self._say("guard-finishes", decision.line, Level.WARNING, decision.evidence)
                self._hands.begin(decision, lambda _: "")
            case Move.ACT:
                self._hands.begin(decision, lambda plan: self._written_down(plan, decision))

    def _hold(self, decision: Decision, now: float) -> None:
        """Say what speaks against it once it does so for a while, and once while it stands."""
        code, since = self._held
        if code != decision.code or now < since:
            self._held = (decision.code, now)
            return
        if now - since < _HELD_S:
            return
        stood_at = self._held_told.get(code)
        self._held_told[code] = now
        if stood_at is None or not 0.0 <= now - stood_at < _HELD_AGAIN_S:
            self._say("guard-holds", f"does nothing: {decision.line}", Level.WARNING)

    def _written_down(self, plan: ActionPlan, decision: Decision) -> str:
        """Put the deed into the journal before it is done; why it could not be."""
        assert decision.deed is not None
        deed = replace(decision.deed, action=plan.id)
        notice = said(self._last, ACTS, decision.line, Level.WARNING, decision.evidence)
        if self._books.write(notice, deed_facts(deed)):
            return ""
        return f"it cannot be written down: {self._books.fault}"

    def _take(self, result: Result | None, snapshot: Snapshot) -> None:
        """What the hands came to."""
        if result is None:
            return
        decision, deed = result.decision, result.decision.deed
        if decision.move is Move.FINISH:
            self._take_finished(result, snapshot)
            return
        assert deed is not None
        if result.refusal:
            self._state = refused(self._state, deed, snapshot.now)
            self._say("guard-holds", f"does nothing: {result.refusal}", Level.WARNING)
            return
        self._state = begun(self._state, deed, result.action)
        self._awaited |= {result.action}
        line = f"would do this: {decision.line}" if self._dry_run else decision.line
        evidence = (*decision.evidence, *(_plan_lines(result.plan) if self._dry_run else ()))
        notice = said(snapshot, ACTS, line, Level.WARNING, evidence)
        self._teller.tell(notice)  # written down already

    def _take_finished(self, result: Result, snapshot: Snapshot) -> None:
        action, deed = result.decision.action, result.decision.deed
        if not result.refusal:
            self._awaited |= {action}
            return
        self._say("guard-holds", f"cannot finish it: {result.refusal}", Level.WARNING)
        is_known = any(record.id == action for record in snapshot.actions)
        if deed is not None and not is_known and not snapshot.action_holder:
            # There is no plan of it that anybody could carry out: it may be planned anew.
            self._state = refused(self._state, deed, snapshot.now)

    # Telling

    def _tell(self, notice: Notice) -> None:
        """One alert."""
        if self._flood.lets(notice.level, notice.at):
            self._teller.tell(notice)
            self._books.write(notice)

    def _tell_of_floods_and_faults(self, snapshot: Snapshot) -> None:
        if count := self._flood.held_back(snapshot.now):
            line = f"{counted(count, 'more notice')} were not told one by one"
            self._say("guard-flood", line, Level.WARNING)
        fault = self._books.fault
        if fault and fault != self._told_fault:
            line = f"the journal cannot be written, and so nothing is done: {fault}"
            self._teller.tell(said(snapshot, "guard-journal", line, Level.WARNING))
        self._told_fault = fault

    def _tell_outcomes(self, snapshot: Snapshot) -> None:
        for record in snapshot.actions:
            if record.id in self._awaited and not record.is_open:
                self._awaited -= {record.id}
                self._tell_outcome(record)

    def _tell_outcome(self, record: ActionRecord) -> None:
        is_done = record.state is ActionState.DONE
        self._say(
            OUTCOME,
            f"{record.title}: {record.state.value}: {record.line}",
            Level.INFO if is_done else Level.CRITICAL,
            record.done,
            {"action": record.id},
        )

    def _say(
        self,
        code: str,
        line: str,
        level: Level,
        evidence: tuple[str, ...] = (),
        facts: dict[str, str] | None = None,
    ) -> None:
        """A word of the guard's own, to everybody."""
        notice = said(self._last, code, line, level, evidence)
        self._teller.tell(notice)
        self._books.write(notice, facts)

    def _note(self, code: str, line: str, facts: dict[str, str] | None = None) -> None:
        """A word for the journal alone."""
        self._books.write(said(self._last, code, line), facts)


def _plan_lines(plan: ActionPlan | None) -> tuple[str, ...]:
    if plan is None:
        return ()
    return tuple(f"{row.label} {row.text}".strip() for row in plan.rows)
