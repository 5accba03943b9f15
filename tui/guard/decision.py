"""What a policy remembers and decides, and the small steps that all policies share. Pure."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tui.guard.limits import Bounds, Deed, barred
from tui.guard.truth import Fact
from tui.model.judge.words import span
from tui.model.plan import Ask


class Policy(StrEnum):
    """What a guard may do."""

    NONE = "none"
    STOP_ON_MEMORY_FLOOR = "stop-on-memory-floor"
    RESUME = "resume"
    """Of a run that is dead, or proven to be stalled."""
    SAVE_ON_ALERT = "save-on-alert"


class Move(StrEnum):
    """What is to be done now."""

    WATCH = "watch"
    HOLD = "hold back"
    """Something is wrong, and something else speaks against doing anything."""
    VERIFY = "verify"
    """Read the checkpoint that would be loaded, before anything depends on it."""
    FINISH = "finish"
    """Carry on an action whose process is gone."""
    ACT = "act"


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """What is to be done, and why; or what speaks against it."""

    move: Move = Move.WATCH
    line: str = ""
    code: str = ""
    """Of what holds it back: stays the same while the numbers in the line change."""
    evidence: tuple[str, ...] = ()
    ask: Ask | None = None
    deed: Deed | None = None
    """What is to be done; of an action to be finished, the deed that it is."""
    action: str = ""
    """The one to be finished."""
    path: str = ""
    """The checkpoint to be verified."""
    needs_stop: bool = False
    """It lives: a plan that does not stop it would start a second one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Suspicion:
    """A fault that was seen at every look since."""

    key: str
    since: float
    looks: int = 1
    seen_at: float = 0.0
    """Of the newest evidence that was counted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Tries:
    """How often something did not come to pass, and when it may be tried again."""

    key: str
    count: int
    again_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class State:
    """What the policy remembers."""

    deeds: tuple[Deed, ...] = ()
    """Oldest first."""
    seen_alive: bool = False
    """What was dead before we came is left alone."""
    suspicion: Suspicion | None = None
    tries: tuple[Tries, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Terms:
    """A policy and its bounds."""

    policy: Policy = Policy.NONE
    bounds: Bounds = field(default_factory=Bounds)


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """How long, and at how many looks, a fault has to show before it counts."""

    seconds: float
    looks: int


Decided = tuple[State, Decision]
_RETRY_S, _MOST_TRIES = 30.0, 4
_MOST_REMEMBERED = 64


def held(code: str, line: str) -> Decision:
    """Nothing is done, and this is why."""
    return Decision(move=Move.HOLD, code=code, line=line)


def doubt(code: str, fact: Fact) -> Decision | None:
    """What a fact that has to be a yes speaks against."""
    return None if fact.is_yes else held(code, fact.line)


def first_bar(bars: Iterable[Decision | None]) -> Decision | None:
    """The first thing that speaks against it."""
    return next((bar for bar in bars if bar is not None), None)


def calm(state: State, decision: Decision | None = None) -> Decided:
    """No fault shows: whatever was suspected is forgotten."""
    return replace(state, suspicion=None), decision or Decision()


def suspected(
    state: State, key: str, now: float, proof: Proof, *, evidence_at: float | None = None
) -> tuple[State, bool]:
    """The state with this look at the fault, and whether it is proven by now."""
    at = now if evidence_at is None else evidence_at
    seen = state.suspicion
    if seen is None or seen.key != key or now < seen.since:
        seen = Suspicion(key=key, since=now, seen_at=at)
    elif at > seen.seen_at:
        seen = replace(seen, looks=seen.looks + 1, seen_at=at)
    is_proven = now - seen.since >= proof.seconds and seen.looks >= proof.looks
    return replace(state, suspicion=seen), is_proven


def deed_about(state: State, fault: str) -> Deed | None:
    """What was done about this fault."""
    return next((deed for deed in state.deeds if deed.fault == fault), None)


def spent(
    state: State, terms: Terms, fault: Fact, deed: Deed, now: float
) -> Iterable[Decision | None]:
    """Done already, refused a moment ago, done too often, or too soon."""
    if deed_about(state, deed.fault) is not None:
        yield Decision(line="was acted on already")
    yield tries_bar(state, "refused", deed.fault, now)
    bar = barred(state.deeds, fault.at, now, terms.bounds)
    yield held("limit", f"{fault.line}; {bar}") if bar else None


def act(state: State, deed: Deed, decision: Decision) -> Decided:
    """The deed is in the state before it is done."""
    state = replace(state, deeds=(*state.deeds, deed)[-_MOST_REMEMBERED:], suspicion=None)
    return state, replace(decision, move=Move.ACT, deed=deed)


def begun(state: State, deed: Deed, action: str) -> State:
    """The deed is under way, by an action of this id."""
    return replace(
        state,
        deeds=tuple(
            replace(each, action=action) if each.fault == deed.fault else each
            for each in state.deeds
        ),
    )


def refused(state: State, deed: Deed, now: float) -> State:
    """Nothing was done: it may be tried again in a while, though not for ever."""
    deeds = tuple(each for each in state.deeds if each.fault != deed.fault)
    return tried(replace(state, deeds=deeds), deed.fault, now)


def tried(state: State, key: str, now: float) -> State:
    """With one try more."""
    before = next((each for each in state.tries if each.key == key), None)
    count = before.count + 1 if before is not None else 1
    tries = Tries(key=key, count=count, again_at=now + _RETRY_S * 2.0 ** (count - 1))
    others = tuple(each for each in state.tries if each.key != key)
    return replace(state, tries=(*others, tries)[-_MOST_REMEMBERED:])


def tries_bar(state: State, code: str, key: str, now: float, what: str = "") -> Decision | None:
    """Tried too often, or too short a time ago."""
    tries = next((each for each in state.tries if each.key == key), None)
    if tries is None or (tries.count < _MOST_TRIES and now >= tries.again_at):
        return None
    told = f"was tried {tries.count} times"
    if tries.count < _MOST_TRIES:
        told = f"tries again in {span(tries.again_at - now)}"
    return held(code, f"{what}; {told}" if what else told)
