"""What a guard does about what it sees: a state and a snapshot in, a state and a decision out.

Pure and without a clock. Nothing is decided but on facts that are a plain yes, heard just now, and
that stay so for a while; never while an action is open or a person has the guard paused; and about
one fault once. A deed is in the state before it is done, and in the run's journal too: whoever
goes on after us knows of it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace

from tui.guard import facts
from tui.guard.decision import (
    Decided,
    Decision,
    Move,
    Policy,
    Proof,
    State,
    Terms,
    act,
    calm,
    first_bar,
    held,
    spent,
    suspected,
    tried,
    tries_bar,
)
from tui.guard.limits import Deed
from tui.guard.resuming import resume
from tui.guard.truth import yes
from tui.model.action import ActionKind
from tui.model.plan import Ask
from tui.model.snapshot import AlertRecord, RunState, Snapshot

LEFT = Proof(seconds=5.0, looks=3)
MEMORY = Proof(seconds=0.5, looks=2)
ALERTED = Proof(seconds=10.0, looks=3)
_WORTH_A_SAVE = frozenset(
    {
        "container-oom",
        "engine-dead",
        "engine-suspect",
        "gpu-clocks-collapsed",
        "gpu-hot",
        "memory-floor",
        "ray-memory-kill",
        "ray-memory-line",
        "work-at-risk",
    }
)
"""Alerts after which the run may not come to its next save by itself."""
_SAVES_FAIL = frozenset({"disk-full-at-next-save", "disk-quota", "disk-read-only"})


def decide(state: State, snapshot: Snapshot, terms: Terms, paused: str = "") -> Decided:
    """What is to be done about this snapshot. `paused`: by whom; empty when it is not."""
    if terms.policy is Policy.NONE:
        return state, Decision()
    if not state.seen_alive and facts.lives(snapshot).is_yes:
        state = replace(state, seen_alive=True)
    decided = _left_open(state, snapshot) or _POLICIES[terms.policy](state, snapshot, terms)
    if paused and decided[1].move in (Move.ACT, Move.FINISH, Move.VERIFY):
        return state, held("paused", paused)
    return decided


def _left_open(state: State, snapshot: Snapshot) -> Decided | None:
    """An action is at work, which is waited for; or was left unfinished, which is mended."""
    record = next((each for each in reversed(snapshot.actions) if each.is_open), None)
    if record is None or snapshot.action_holder:
        is_busy = bool(snapshot.action_holder)
        return calm(state, Decision(line="an action is under way")) if is_busy else None
    key = f"left {record.id}"
    state, is_proven = suspected(state, key, snapshot.now, LEFT)
    if not is_proven:
        return state, Decision(line=f"{record.title} is open")
    line = f"{record.title} was interrupted, and nobody carries it on"
    bar = tries_bar(state, "finish", key, snapshot.now, line)
    if bar is not None:
        return state, bar
    finish = Decision(move=Move.FINISH, line=line, action=record.id, evidence=(record.line,))
    return tried(state, key, snapshot.now), finish


def _stop_on_memory_floor(state: State, snapshot: Snapshot, terms: Terms) -> Decided:
    out = facts.memory_is_out(snapshot)
    if not out.is_yes or not facts.lives(snapshot).is_yes:
        return calm(state)
    start = facts.newest_start(snapshot)
    fault = f"memory in {start.id if start is not None else 'the first start'}"
    deed = Deed(at=snapshot.now, fault=fault)
    state, is_proven = suspected(state, fault, snapshot.now, MEMORY, evidence_at=out.at)
    if not is_proven:
        return state, Decision(line=out.line)
    bar = first_bar(spent(state, terms, out, deed, snapshot.now))
    if bar is not None:
        return state, bar
    ask = Ask(kind=ActionKind.STOP, save_first=False, take_autopsy=False)
    line = "stops it before the box freezes"
    return act(state, deed, Decision(line=line, evidence=(out.line,), ask=ask, needs_stop=True))


def _save_on_alert(state: State, snapshot: Snapshot, terms: Terms) -> Decided:
    risk = snapshot.verdict.risk
    record = next((each for each in snapshot.alert_log if _is_new(state, each)), None)
    has_work = risk is not None and bool(risk.rollouts)
    is_running = snapshot.verdict.state is RunState.RUNNING and facts.lives(snapshot).is_yes
    if record is None or risk is None or not has_work or not is_running:
        return calm(state)
    fault = _spell(record)
    deed = Deed(at=snapshot.now, fault=fault)
    state, is_proven = suspected(state, fault, snapshot.now, ALERTED)
    if not is_proven:
        return state, Decision(line=record.alert.line)
    fact = yes(record.alert.line, record.since)
    bar = first_bar((_save_bar(snapshot), *spent(state, terms, fact, deed, snapshot.now)))
    if bar is not None:
        return state, bar
    ask = Ask(kind=ActionKind.SAVE)
    return act(
        state, deed, Decision(line=f"asks for a save: {risk.line}", evidence=(fact.line,), ask=ask)
    )


def _spell(record: AlertRecord) -> str:
    return f"{record.alert.code} {record.alert.subject} since {record.since:.0f}"


def _is_new(state: State, record: AlertRecord) -> bool:
    """It stands, is worth a save, and none was asked for in this spell of it."""
    is_open = record.cleared_at is None and record.alert.code in _WORTH_A_SAVE
    return is_open and all(deed.fault != _spell(record) for deed in state.deeds)


def _save_bar(snapshot: Snapshot) -> Decision | None:
    if snapshot.story.non_finite is not None:
        return held("not finite", "what would be saved is not finite")
    fails = next((each for each in snapshot.verdict.alerts if each.code in _SAVES_FAIL), None)
    return held("disk", f"a save would fail: {fails.line}") if fails is not None else None


_POLICIES: Mapping[Policy, Callable[[State, Snapshot, Terms], Decided]] = {
    Policy.RESUME: resume,
    Policy.STOP_ON_MEMORY_FLOOR: _stop_on_memory_floor,
    Policy.SAVE_ON_ALERT: _save_on_alert,
}
