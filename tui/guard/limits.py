"""How often a guard may act on a run, and when it gives up. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.model.judge.words import counted, span
from tui.model.snapshot import RunState, Snapshot

UNKNOWN_CAUSE = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a policy may do at most."""

    most: int = 3
    """Deeds in a window."""
    window_s: float = 6 * 3600.0
    first_wait_s: float = 60.0
    """Before the second one in a window; each one more waits twice as long."""


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """Where an attempt ended, and of what."""

    where: str = ""
    """Its newest step, else its rollout; empty: it did not come so far."""
    cause: str = UNKNOWN_CAUSE


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """Something that the guard did."""

    at: float
    action: str = ""
    """Id of the plan; empty while it is not made yet."""
    fault: str
    """What it was done about: never two deeds about one."""
    end: End = End()
    """Of the attempt before, where the deed started another."""


def end_of(snapshot: Snapshot) -> End:
    """Of the attempt that is watched."""
    story, verdict = snapshot.story, snapshot.verdict
    where = ""
    if story.step is not None:
        where = f"step {story.step}"
    elif story.rollout is not None:
        where = f"rollout {story.rollout}"
    if verdict.state is RunState.STALLED:
        phase = story.phase.name if story.phase is not None else "no phase"
        return End(where=where, cause=f"stalled in {phase}")
    return End(where=where, cause=verdict.cause.kind if verdict.cause else UNKNOWN_CAUSE)


def barred(deeds: Sequence[Deed], fault_at: float, now: float, bounds: Bounds) -> str:
    """Why nothing may be done yet: too many already, or too soon after the one before."""
    recent = [deed for deed in deeds if now - deed.at < bounds.window_s]
    if not recent:
        return ""
    if len(recent) >= bounds.most:
        again_s = recent[-bounds.most].at + bounds.window_s - now
        limit = f"{counted(bounds.most, 'time')} in {span(bounds.window_s)} is the limit"
        return f"{limit}; again in {span(again_s)}"
    wait_s = bounds.first_wait_s * 2.0 ** (len(recent) - 1)
    left_s = max(fault_at, recent[-1].at) + wait_s - now
    return f"waits {span(left_s)} before it tries again" if left_s > 0 else ""


def given_up(restarts: Sequence[Deed], end: End, now: float, bounds: Bounds) -> str:
    """Why it is not started once more: the last two restarts in a row came to the same end."""
    if len(restarts) < 2:
        return ""
    newest = restarts[-1]
    if end.where and end.where == newest.end.where:
        return f"two restarts in a row ended at {end.where}"
    is_recent = now - newest.at < bounds.window_s
    if is_recent and end.cause not in (UNKNOWN_CAUSE, "") and end.cause == newest.end.cause:
        return f"two restarts in a row ended with the same cause: {end.cause}"
    return ""
