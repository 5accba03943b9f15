"""The policy that starts a run again which is dead, or proven to be stalled. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from tui.guard import facts
from tui.guard.decision import (
    Decided,
    Decision,
    Move,
    Proof,
    State,
    Terms,
    act,
    calm,
    deed_about,
    doubt,
    first_bar,
    held,
    spent,
    suspected,
    tried,
    tries_bar,
)
from tui.guard.limits import Deed, end_of, given_up
from tui.guard.truth import Answer, Fact
from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.judge.words import span
from tui.model.plan import Ask
from tui.model.snapshot import Resume, RunState, Snapshot

DEAD = Proof(seconds=5.0, looks=3)
STALLED = Proof(seconds=30.0, looks=10)
_BEGIN_S = 60.0
"""After so long whoever was to carry it out has not begun, and will not."""
_NEWS_S = 120.0
"""After so long something should be heard of what was started."""
_WRONG_STARTS = frozenset(
    each.value
    for each in (Resume.FRESH, Resume.SILENT_FRESH, Resume.WRONG_NUMBER, Resume.INCOMPLETE)
)
_SEEMS_WRONG = frozenset({RunState.FAILED, RunState.CRASHED, RunState.STALLED, RunState.UNKNOWN})


def resume(state: State, snapshot: Snapshot, terms: Terms) -> Decided:
    """Start it again, at most once for each start that came before."""
    dead, stalled = facts.has_died(snapshot), facts.has_stalled(snapshot)
    fault = dead if dead.is_yes else stalled
    if not fault.is_yes:
        return calm(state, _doubtful(snapshot, dead, stalled))
    start = facts.newest_start(snapshot)
    attempt = start.id if start is not None else "the first start"
    deed = Deed(at=snapshot.now, fault=attempt, end=end_of(snapshot))
    done = deed_about(state, deed.fault)
    if done is not None:
        return _after(state, snapshot, done)
    bar = _of_another(state, snapshot, start, fault)
    if bar is not None:
        return calm(state, bar)
    proof = DEAD if fault is dead else STALLED
    key = f"{snapshot.verdict.state.value}: {attempt}"
    state, is_proven = suspected(state, key, snapshot.now, proof)
    if not is_proven:
        return state, Decision(line=f"{fault.line}; looks again")
    bar = first_bar(_checks(state, snapshot, terms, fault, deed))
    if bar is not None:
        return state, bar
    return _with_checkpoint(state, snapshot, fault, deed)


def _doubtful(snapshot: Snapshot, dead: Fact, stalled: Fact) -> Decision:
    """Nothing, and where something seems wrong, why nothing."""
    state = snapshot.verdict.state
    if state not in _SEEMS_WRONG:
        return Decision()
    told = next((each for each in (dead, stalled) if each.answer is Answer.CANNOT_TELL), stalled)
    return held("cannot tell", told.line)


def _after(state: State, snapshot: Snapshot, done: Deed) -> Decided:
    """It was acted on: what comes of that is waited for, and begun where it never was."""
    is_begun = any(record.id == done.action for record in snapshot.actions)
    if is_begun or not done.action or snapshot.now - done.at <= _BEGIN_S:
        return calm(state, _awaited(snapshot, done.at, "what it did about this"))
    key, line = f"begin {done.action}", "what it was about to do was never begun"
    bar = tries_bar(state, "finish", key, snapshot.now, line)
    if bar is not None:
        return calm(state, bar)
    return calm(
        tried(state, key, snapshot.now),
        Decision(move=Move.FINISH, line=line, action=done.action, deed=done),
    )


def _of_another(
    state: State, snapshot: Snapshot, start: ActionRecord | None, fault: Fact
) -> Decision | None:
    """It is not the newest start that ended, or not ours to mend."""
    if not state.seen_alive:
        return held("before", f"{fault.line}; that was so before the guard began")
    newest = snapshot.actions[-1] if snapshot.actions else None
    if newest is not None and newest.state is ActionState.GIVEN_UP and newest.changed_at > fault.at:
        return held("given up", f"a person gave up {newest.title}")
    if start is None:
        return None
    if start.state is ActionState.FAILED and start.facts.get("failure") in _WRONG_STARTS:
        return held("wrong start", f"{start.title} began wrong: {start.line}")
    if facts.lived_at(snapshot) > start.began_at:
        return None
    if start.state is ActionState.DONE:
        return _awaited(snapshot, start.changed_at, start.title)
    return held("failed", f"{start.title} {start.state.value}: {start.line}")


def _awaited(snapshot: Snapshot, since: float, what: str) -> Decision:
    waited_s = snapshot.now - since
    if waited_s <= _NEWS_S:
        return Decision(line=f"waits for news of {what}")
    return held("no news", f"nothing is heard of {what} for {span(waited_s)}")


def _checks(
    state: State, snapshot: Snapshot, terms: Terms, fault: Fact, deed: Deed
) -> Iterable[Decision | None]:
    now = snapshot.now
    yield doubt("stopped", facts.nobody_stopped_it(snapshot))
    bar = given_up(_restarts(state, snapshot), deed.end, now, terms.bounds)
    yield held("given up", f"gives up: {bar}") if bar else None
    yield from spent(state, terms, fault, deed, now)
    yield doubt("in the way", facts.way_is_free(snapshot))
    if snapshot.verdict.state is not RunState.STALLED:
        yield doubt("memory", facts.memory_is_back(snapshot))


def _restarts(state: State, snapshot: Snapshot) -> tuple[Deed, ...]:
    """Our own, since a person started it last."""
    ours = {deed.action: deed for deed in state.deeds if deed.action}
    restarts: list[Deed] = []
    for record in snapshot.actions:
        if record.kind not in facts.STARTS:
            continue
        if record.id in ours:
            restarts.append(ours[record.id])
        else:
            restarts.clear()
    return tuple(restarts)


def _with_checkpoint(state: State, snapshot: Snapshot, fault: Fact, deed: Deed) -> Decided:
    """Act, once what would be loaded was read and found good."""
    checkpoint = facts.unverified(snapshot)
    if checkpoint is not None and snapshot.story.non_finite is None:
        return _verified_first(state, snapshot, checkpoint.path, checkpoint.iteration)
    good = facts.checkpoint_is_good(snapshot)
    if not good.is_yes:
        return state, held("checkpoint", good.line)
    ask, line = Ask(kind=ActionKind.RESUME), "resumes it"
    is_stalled = snapshot.verdict.state is RunState.STALLED
    if is_stalled:
        ask, line = replace(ask, save_first=False, take_autopsy=True), "kills and resumes it"
    decision = Decision(
        line=f"{line}; {good.line}", evidence=(fault.line,), ask=ask, needs_stop=is_stalled
    )
    return act(state, deed, decision)


def _verified_first(state: State, snapshot: Snapshot, path: str, iteration: int) -> Decided:
    verifying = snapshot.verifying
    fault = verifying.fault if verifying is not None and verifying.path == path else ""
    if verifying is not None and verifying.path == path and not fault:
        return state, Decision(line=f"checkpoint {iteration} is being verified")
    what = f"checkpoint {iteration} is not verified: {fault or 'no result yet'}"
    bar = tries_bar(state, "verify", f"verify {path}", snapshot.now, what)
    if bar is not None:
        return state, bar
    line = f"verifies checkpoint {iteration}, which a resume would load"
    decision = Decision(move=Move.VERIFY, line=line, path=path)
    return tried(state, f"verify {path}", snapshot.now), decision
