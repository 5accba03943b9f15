"""What has to be so before anything is done to a run, each with its evidence. Pure."""

from __future__ import annotations

from collections.abc import Iterator

from tui.guard.freshness import heard
from tui.guard.signs import proof_of_stall
from tui.guard.truth import Fact, cannot_tell, no, yes
from tui.miles.titles import Role
from tui.model.action import ActionKind, ActionRecord
from tui.model.checkpoint import Checkpoint
from tui.model.judge.box import memory_floors
from tui.model.judge.words import gib
from tui.model.judge.would_load import best_of
from tui.model.launch import Process
from tui.model.reading import Known
from tui.model.snapshot import Level, RunState, Snapshot

STARTS = frozenset({ActionKind.RESUME})
_ENDED_BADLY = frozenset({RunState.FAILED, RunState.CRASHED})
_LIVES = frozenset({RunState.STARTING, RunState.RUNNING, RunState.STALLED})
_LATE_S = 15.0
"""Lines of its last seconds may come after its end was seen."""
_ASKED_TO_END = frozenset({130, 143})
"""Exit codes of SIGINT and SIGTERM: somebody wanted it to end."""
_INTERRUPTED = "KeyboardInterrupt"


def lives(snapshot: Snapshot) -> Fact:
    """It was seen alive just now."""
    state = snapshot.verdict.state
    if state not in _LIVES:
        return no(f"it is {state.value}")
    driver = _driver(snapshot)
    if driver is not None:
        return yes(f"process {driver.pid} {driver.title}".rstrip(), snapshot.now)
    return heard(snapshot, "log")


def has_died(snapshot: Snapshot) -> Fact:
    """It is gone: somebody saw that, and nothing that is heard now speaks against it."""
    verdict = snapshot.verdict
    if verdict.state is RunState.UNKNOWN:
        return cannot_tell(verdict.reason)
    if verdict.state not in _ENDED_BADLY:
        return no(f"it is {verdict.state.value}")
    witnesses = tuple(_witnesses(snapshot))
    if not witnesses:
        return cannot_tell(f"{verdict.reason}; nothing that is heard now confirms it")
    driver = _driver(snapshot)
    if driver is not None:
        return cannot_tell(f"{verdict.reason}; but its driver, process {driver.pid}, is there")
    ended_at = max(witness.at for witness in witnesses)
    progress = snapshot.story.progress
    if progress is not None and progress.at > ended_at + _LATE_S:
        return cannot_tell(f"{verdict.reason}; but its log went on: {progress.what}")
    return yes("; ".join(witness.line for witness in witnesses), ended_at)


def _witnesses(snapshot: Snapshot) -> Iterator[Fact]:
    """Each source that is heard and tells of the end."""
    ending = snapshot.story.ending
    if ending is not None and heard(snapshot, "log").is_yes:
        yield yes(f"its own last word: {ending.detail or ending.end}", ending.at)
    held = snapshot.container
    if isinstance(held, Known) and heard(snapshot, "container").is_yes:
        container = held.value
        if container.status in ("exited", "dead", "gone"):
            code = "" if container.exit_code is None else f", exit code {container.exit_code}"
            at = container.finished_at or snapshot.verdict.since
            yield yes(f"container {container.name} is {container.status}{code}", at)
    table = snapshot.processes
    if isinstance(table, Known) and heard(snapshot, "processes").is_yes:
        gone_at = table.value.driver_exited_at
        if gone_at:
            yield yes("its driver process is gone", gone_at)


def _driver(snapshot: Snapshot) -> Process | None:
    """The driver as the process table shows it now."""
    if not isinstance(snapshot.processes, Known) or not heard(snapshot, "processes").is_yes:
        return None
    tree = snapshot.processes.value
    return next((each for each in tree.processes if each.role == Role.DRIVER), None)


def has_stalled(snapshot: Snapshot) -> Fact:
    """It lives, and two signs that do not depend on each other say that it does not move."""
    state = snapshot.verdict.state
    if state is RunState.UNKNOWN:
        return cannot_tell(snapshot.verdict.reason)
    if state is not RunState.STALLED:
        return no(f"it is {state.value}")
    return proof_of_stall(snapshot)


def memory_is_out(snapshot: Snapshot) -> Fact:
    """The pool is below its critical floor, by a reading of this moment."""
    fresh = heard(snapshot, "memory")
    if not fresh.is_yes or not isinstance(snapshot.memory, Known):
        return fresh
    memory = snapshot.memory.value
    critical = memory_floors(snapshot.limits, memory.total_bytes)[1]
    line = f"{gib(memory.available_bytes)} of memory left, critical is {gib(critical)}"
    return yes(line, snapshot.memory.at) if memory.available_bytes < critical else no(line)


def memory_is_back(snapshot: Snapshot) -> Fact:
    """What the run held is free again, and nothing of it is left that would hold more."""
    fresh = heard(snapshot, "memory")
    if not fresh.is_yes or not isinstance(snapshot.memory, Known):
        return fresh
    for alert in snapshot.verdict.alerts:
        if alert.code == "leftover-processes":
            return no(alert.line)
    memory = snapshot.memory.value
    floor = memory_floors(snapshot.limits, memory.total_bytes)[0]
    line = f"{gib(memory.available_bytes)} of memory left, a start needs {gib(floor)}"
    return yes(line) if memory.available_bytes >= floor else no(line)


def nobody_stopped_it(snapshot: Snapshot) -> Fact:
    """No person wanted it to end, as far as anything tells."""
    verdict = snapshot.verdict
    if verdict.state in (RunState.STOPPED, RunState.FINISHED, RunState.STOPPING):
        return no(f"it is {verdict.state.value}: {verdict.reason}")
    for record in reversed(snapshot.actions):
        if record.kind in STARTS:
            break
        if record.kind is ActionKind.STOP:
            return no(f"it was stopped: {record.title}")
        if record.kind in (ActionKind.ROLLBACK, ActionKind.UNDO):
            return no(f"a person is at it: {record.title}")
    if isinstance(snapshot.container, Known):
        container = snapshot.container.value
        if container.exit_code in _ASKED_TO_END:
            return no(f"it was asked to end: exit code {container.exit_code}")
        if container.told_to_end:
            return no(f"somebody stopped container {container.name}")
    if any(_INTERRUPTED in clue.line for clue in snapshot.story.clues):
        return no("it was interrupted from its keyboard")
    return yes("nobody stopped it")


def checkpoint_is_good(snapshot: Snapshot) -> Fact:
    """A whole checkpoint is there whose every byte was read and found finite."""
    fresh = heard(snapshot, "checkpoints")
    if not fresh.is_yes or not isinstance(snapshot.checkpoints, Known):
        return fresh
    bad = snapshot.story.non_finite
    if bad is not None:
        return no(f"{bad.key} is {bad.value} since step {bad.number}: a person has to choose")
    best = best_of(snapshot.checkpoints.value)
    if best is None:
        return no(f"{snapshot.checkpoints.value.root} holds no whole checkpoint that is sound")
    if best.verification is None:
        return cannot_tell(f"checkpoint {best.iteration} was never verified")
    return yes(f"checkpoint {best.iteration} is {best.verification.soundness.value}")


def unverified(snapshot: Snapshot) -> Checkpoint | None:
    """The checkpoint that a resume would load, where its bytes were never read."""
    if not isinstance(snapshot.checkpoints, Known):
        return None
    best = best_of(snapshot.checkpoints.value)
    return best if best is not None and best.verification is None else None


_IN_THE_WAY = frozenset(
    {
        "disk-full-at-next-save",
        "disk-quota",
        "disk-read-only",
        "gpu-lost",
        "gpu-unreadable",
        "memory-floor",
    }
)
"""Alerts on what the next start would die of too."""


def way_is_free(snapshot: Snapshot) -> Fact:
    """Nothing stands that the next start would die of too."""
    for alert in snapshot.verdict.alerts:
        if alert.code in _IN_THE_WAY and alert.level is not Level.INFO:
            return no(alert.line)
    return yes("nothing is in the way")


def newest_start(snapshot: Snapshot) -> ActionRecord | None:
    """The action that began the attempt that is watched; None: nobody here did."""
    return next((each for each in reversed(snapshot.actions) if each.kind in STARTS), None)


def lived_at(snapshot: Snapshot) -> float:
    """When what is watched last said anything; 0.0: never."""
    story = snapshot.story
    progress = story.progress.at if story.progress is not None else 0.0
    return max(progress, story.last_line_at or 0.0)
