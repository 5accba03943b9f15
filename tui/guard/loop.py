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
from tui.guard.books import ACTS, WATCHES, Books, deed_facts, remembered
from tui.guard.decision import Decision, Move, State, Terms, begun, refused
from tui.guard.hands import Hands, Result
from tui.guard.notice import said
from tui.guard.policy import decide
from tui.guard.seams import Keeper, Planner, Seen, Shower, Teller, Watch
from tui.guard.voice import HOLDS, Voice
from tui.model.plan import ActionPlan
from tui.model.snapshot import Level, RunState, Snapshot
from tui.runs.guard_card import paused_by
from tui.runs.state_dir import run_folder

_LOOK_S = 0.5
_STANDS_STILL = 120
"""Looks in a row without a snapshot: the monitor itself has ended."""
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
        self._monitor, self._terms, self._presence = monitor, terms, presence
        self._dry_run = dry_run
        self._hands = Hands(desk, dry_run=dry_run)
        self._voice = Voice(teller)
        self._state, self._books = State(), Books(Path(), read_only=True)
        self._awaited: frozenset[str] = frozenset()
        self.is_over = False
        """The run has ended well, and for long: there is nothing to guard."""

    def look(self, snapshot: Snapshot) -> None:
        """Tell what is new, and do what is to be done about it."""
        if not has_target(snapshot.attachment):
            return
        folder = run_folder(snapshot.attachment)
        self._presence.watch(folder)
        self._open(folder, snapshot)
        snapshot = self._books.joined(snapshot)
        self._voice.tell_news(snapshot)
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
        self._voice.say("guard-blind", line, Level.CRITICAL)

    def end(self) -> None:
        """Say that it ended in order."""
        last = self._voice.last
        if last.now:
            self._voice.note("guard-ended", f"the guard ended, the run is {last.verdict.state}")
        self._presence.end(time.time())

    def _open(self, folder: Path, snapshot: Snapshot) -> None:
        """Use the journal of that run; what a guard before us did in it is remembered."""
        if folder == self._books.folder:
            return
        # To show what would be done, an end that was before us is as good as one that we saw.
        was_alive = self._state.seen_alive or self._dry_run
        self._books = Books(folder, read_only=self._dry_run)
        remarks = self._books.remarks()
        self._state, self._awaited = remembered(remarks)
        self._state = replace(self._state, seen_alive=self._state.seen_alive or was_alive)
        self._voice.open(self._books, remarks, snapshot)
        self._voice.note("guard-began", f"the guard began, policy {self._terms.policy}")

    def _decide(self, snapshot: Snapshot) -> None:
        paused = paused_by(self._books.folder)
        was_alive = self._state.seen_alive
        self._state, decision = decide(
            self._state, snapshot, self._terms, f"paused by {paused}" if paused else ""
        )
        if self._state.seen_alive and not was_alive:
            self._voice.note(WATCHES, "the run lives", {"state": snapshot.verdict.state.value})
        self._voice.tell_why_not(decision, snapshot.now)
        match decision.move:
            case Move.WATCH | Move.HOLD:
                pass
            case Move.VERIFY:
                self._voice.say("guard-verifies", decision.line, Level.INFO)
                self._monitor.verify(decision.path)
            case Move.FINISH:
                line, evidence = decision.line, decision.evidence
                self._voice.say("guard-finishes", line, Level.WARNING, evidence)
                self._hands.begin(decision, lambda _: "")
            case Move.ACT:
                self._hands.begin(decision, lambda plan: self._written_down(plan, decision))

    def _written_down(self, plan: ActionPlan, decision: Decision) -> str:
        """Put the deed into the journal before it is done; why it could not be."""
        assert decision.deed is not None
        deed = replace(decision.deed, action=plan.id)
        notice = said(self._voice.last, ACTS, decision.line, Level.WARNING, decision.evidence)
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
            self._voice.say(HOLDS, f"does nothing: {result.refusal}", Level.WARNING)
            return
        self._state = begun(self._state, deed, result.action)
        self._awaited |= {result.action}
        line = f"would do this: {decision.line}" if self._dry_run else decision.line
        evidence = (*decision.evidence, *(_plan_lines(result.plan) if self._dry_run else ()))
        self._voice.tell(said(snapshot, ACTS, line, Level.WARNING, evidence))

    def _take_finished(self, result: Result, snapshot: Snapshot) -> None:
        action, deed = result.decision.action, result.decision.deed
        if not result.refusal:
            self._awaited |= {action}
            return
        self._voice.say(HOLDS, f"cannot finish it: {result.refusal}", Level.WARNING)
        is_known = any(record.id == action for record in snapshot.actions)
        if deed is not None and not is_known and not snapshot.action_holder:
            # There is no plan of it that anybody could carry out: it may be planned anew.
            self._state = refused(self._state, deed, snapshot.now)

    def _tell_outcomes(self, snapshot: Snapshot) -> None:
        for record in snapshot.actions:
            if record.id in self._awaited and not record.is_open:
                self._awaited -= {record.id}
                self._voice.tell_outcome(record)


def _plan_lines(plan: ActionPlan | None) -> tuple[str, ...]:
    if plan is None:
        return ()
    return tuple(f"{row.label} {row.text}".strip() for row in plan.rows)
