"""Whether a run that makes no progress really does nothing: signs that do not hang together. Pure.

That no progress was heard is one sign, and the log alone gives it. Before a run is killed for it
another source has to say the same: the GPU, the engines' own counters, or the trainer's CPU time.
"""

from __future__ import annotations

from collections.abc import Iterator

from tui.guard.freshness import heard
from tui.guard.truth import Answer, Fact, cannot_tell, no, yes
from tui.miles.titles import Role
from tui.model.engine import EngineState
from tui.model.judge.signs import idle_devices
from tui.model.judge.state import has_begun
from tui.model.reading import Known
from tui.model.snapshot import Snapshot
from tui.model.story.phases import EVAL, GENERATE

_SETTLE_S = 5.0
_NO_WORK_CORES = 0.05
_QUIET = frozenset(
    {EngineState.SUSPECT, EngineState.DEAD, EngineState.IDLE, EngineState.NO_TRAFFIC}
)
_WORKERS = frozenset({Role.DRIVER, Role.TRAINER})


def proof_of_stall(snapshot: Snapshot) -> Fact:
    """Of a run that the verdict calls stalled."""
    reason = snapshot.verdict.reason
    fresh = heard(snapshot, "log")
    if not fresh.is_yes:
        return fresh
    if not has_begun(snapshot.story):
        return cannot_tell(f"{reason}; it has not begun yet, and would only begin again")
    written = _writes(snapshot)
    if not written.is_yes:
        return written
    signs = tuple(_signs(snapshot))
    told = "; ".join((reason, *(sign.line for sign in signs)))
    against = next((sign for sign in signs if sign.answer is Answer.NO), None)
    if against is not None:
        return no(told)
    if not any(sign.is_yes for sign in signs):
        return cannot_tell(told)
    return yes(f"{told}; {written.line}", snapshot.verdict.since)


def _writes(snapshot: Snapshot) -> Fact:
    """Nothing was written to the save folder since it last moved."""
    fresh = heard(snapshot, "checkpoints")
    if not fresh.is_yes or not isinstance(snapshot.checkpoints, Known):
        return fresh
    progress = snapshot.story.progress
    moved_at = progress.at if progress is not None else 0.0
    for checkpoint in snapshot.checkpoints.value.checkpoints:
        if checkpoint.taken_at > moved_at + _SETTLE_S:
            return no(f"checkpoint {checkpoint.iteration} was written to since")
    return yes("nothing was written to its save folder since")


def _signs(snapshot: Snapshot) -> Iterator[Fact]:
    yield _gpus(snapshot)
    phase = snapshot.story.phase
    if phase is not None and phase.name in (GENERATE, EVAL):
        yield _engines(snapshot)
    else:
        yield _trainer(snapshot)


def _gpus(snapshot: Snapshot) -> Fact:
    fresh = heard(snapshot, "gpu")
    if not fresh.is_yes or not isinstance(snapshot.gpus, Known):
        return fresh
    devices = snapshot.gpus.value.devices
    idle = idle_devices(snapshot)
    if devices and len(idle) == len(devices):
        return yes(", ".join(idle))
    # A kernel that hangs keeps its device busy for ever, so this is no proof that it works.
    return cannot_tell("the GPU is not idle, or was not watched for a minute")


def _engines(snapshot: Snapshot) -> Fact:
    """Their own counters stand still, or nobody listens any more."""
    told = []
    metrics = {track.probe.url: track.probe.metrics for track in snapshot.engines}
    for engine in snapshot.verdict.engines:
        if engine.state not in _QUIET:
            return cannot_tell(f"engine {engine.label}: {engine.reason}")
        is_counted = isinstance(metrics.get(engine.url), Known)
        if engine.state is not EngineState.DEAD and not is_counted:
            return cannot_tell(f"engine {engine.label} does not tell its counters")
        told.append(f"engine {engine.label}: {engine.reason}")
    return yes("; ".join(told)) if told else cannot_tell("no engine is known")


def _trainer(snapshot: Snapshot) -> Fact:
    fresh = heard(snapshot, "processes")
    if not fresh.is_yes or not isinstance(snapshot.processes, Known):
        return fresh
    workers = [each for each in snapshot.processes.value.processes if each.role in _WORKERS]
    if not workers:
        return cannot_tell("its trainer is not among the processes that can be seen")
    cores = sum(each.cpu_ratio for each in workers)
    if cores < _NO_WORK_CORES:
        return yes("its trainer uses no CPU")
    return no(f"its trainer uses {cores:.2f} cores")
