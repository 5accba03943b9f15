"""One look at the box and the run, small enough to be kept for days. Pure.

None is a value that nobody knew at that moment. Numbers are rounded to what is worth keeping, so
that a sample read back equals the one that was written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from tui.model.engine import EngineState, EngineVerdict
from tui.model.gpu import Gpu
from tui.model.launch import Container
from tui.model.memory import Memory
from tui.model.reading import Known, Reading, value_or
from tui.model.snapshot import Cause, RunState, Snapshot

SLOW_S, FAST_S = 5.0, 1.0
"""Between two samples: as a rule, and while something happens."""
MIB = 1 << 20
_EARLY_S = 0.1
"""Whoever publishes once a second does not do so to the millisecond."""
_FALL_BYTES = 1 << 30
_FALL_SHARE = 0.05
"""A fall of this share of what is left counts however small it is."""
_SMALL_BOX_SHARE = 0.07
_ENGINES, _DEVICES = 16, 16
_WORD_CHARS, _CAUSE_CHARS = 32, 160
_LARGEST = 1e15
_WORKING = frozenset({EngineState.GENERATING, EngineState.BUSY, EngineState.RECOVERED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """An instant on two clocks."""

    at: float
    """Epoch seconds. This clock can be set."""
    uptime_s: float
    """Since the box booted, time asleep included. This one cannot."""
    asleep_s: float = 0.0
    """How much of that it was suspended."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuSample:
    """One device."""

    utilisation_ratio: float | None = None
    power_w: float | None = None
    temperature_c: float | None = None
    sm_clock_mhz: float | None = None
    held_bytes: int | None = None
    """Its own memory in use; on a unified part what its processes hold of the pool."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSample:
    """One engine in brief."""

    label: str
    state: str
    tokens_per_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Doing:
    """What the run does: a sample is due when it changes."""

    state: RunState = RunState.UNKNOWN
    phase: str = ""
    rollout: int | None = None
    """The rollout being worked on."""
    trained: int | None = None
    """The newest rollout whose training has ended."""
    step: int | None = None
    container: str = ""
    """Docker's word for its status; empty without one."""
    exit_code: int | None = None
    oom_killed: bool = False
    """The container's OOM flag: the kernel killed something in it for memory."""
    cause: str = ""
    """Of a bad end, where the run's own log tells it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    """The box and the run at one moment."""

    at: float
    uptime_s: float
    asleep_s: float
    doing: Doing = Doing()
    memory_total_bytes: int | None = None
    memory_available_bytes: int | None = None
    swap_used_bytes: int | None = None
    pressure_ratio: float | None = None
    gpus: tuple[GpuSample, ...] = ()
    engines: tuple[EngineSample, ...] = ()
    log_bytes: int = 0
    line_age_s: float | None = None
    """Since the log's newest line."""
    disk_free_bytes: int | None = None


def sample_of(snapshot: Snapshot, moment: Moment) -> Sample:
    """What of a snapshot is kept. A source that does not answer gives nothing, not its last."""
    silent = snapshot.missed
    memory = None if "memory" in silent else value_or(snapshot.memory, None)
    report = None if "gpu" in silent else value_or(snapshot.gpus, None)
    disk = None if "disk" in silent else value_or(snapshot.disk, None)
    line_at = snapshot.story.last_line_at
    return Sample(
        at=_rounded(moment.at, 2) or 0.0,
        uptime_s=_rounded(moment.uptime_s, 2) or 0.0,
        asleep_s=_rounded(moment.asleep_s, 0) or 0.0,
        doing=_doing(snapshot),
        memory_total_bytes=_in_mib(memory.total_bytes if memory else None),
        memory_available_bytes=_in_mib(memory.available_bytes if memory else None),
        swap_used_bytes=_in_mib(memory.swap_total_bytes - memory.swap_free_bytes)
        if memory
        else None,
        pressure_ratio=_pressure(memory),
        gpus=tuple(_gpu(device) for device in report.devices[:_DEVICES]) if report else (),
        engines=tuple(_engine(each) for each in snapshot.verdict.engines[:_ENGINES]),
        log_bytes=int(_rounded(snapshot.log.size_bytes, 0) or 0),
        line_age_s=None if line_at is None else _rounded(max(0.0, snapshot.now - line_at), 0),
        disk_free_bytes=_in_mib(disk.free_bytes if disk else None),
    )


def is_due(last: Sample | None, sample: Sample, floor_bytes: int) -> bool:
    """Whether a sample is worth keeping, so long after the last one that was.

    Once in five seconds; once a second while the run's doing changes, while memory falls by a GiB
    or a twentieth of what is left, and while less than `floor_bytes` of it is left.
    """
    if last is None:
        return True
    passed_s = sample.uptime_s - last.uptime_s
    if passed_s >= SLOW_S - _EARLY_S:
        return True
    if passed_s < FAST_S - _EARLY_S:
        return False
    return sample.doing != last.doing or _is_falling(last, sample) or is_low(sample, floor_bytes)


def is_low(sample: Sample, floor_bytes: int) -> bool:
    """Less memory is left than the floor, which asks for no more than a small box can give."""
    left, total = sample.memory_available_bytes, sample.memory_total_bytes
    if left is None or total is None:
        return False
    return left < min(floor_bytes, total * _SMALL_BOX_SHARE)


def _is_falling(last: Sample, sample: Sample) -> bool:
    before, left = last.memory_available_bytes, sample.memory_available_bytes
    if before is None or left is None:
        return False
    return before - left >= min(_FALL_BYTES, _FALL_SHARE * before) > 0


def _doing(snapshot: Snapshot) -> Doing:
    story = snapshot.story
    container = _answering(snapshot, "container", snapshot.container)
    return Doing(
        state=snapshot.verdict.state,
        phase=_word(story.phase.name if story.phase else ""),
        rollout=_whole(story.rollout),
        trained=_whole(story.training_rollout),
        step=_whole(story.step),
        container=_word(container.status if container else ""),
        exit_code=_whole(_exit_code(snapshot, container)),
        oom_killed=container.oom_killed if container else False,
        cause=_cause(snapshot.verdict.cause),
    )


def _cause(cause: Cause | None) -> str:
    return "" if cause is None or cause.kind == "unknown" else cause.line[:_CAUSE_CHARS]


def _answering(snapshot: Snapshot, probe: str, reading: Reading[Container]) -> Container | None:
    return None if probe in snapshot.missed else value_or(reading, None)


def _exit_code(snapshot: Snapshot, container: Container | None) -> int | None:
    if container is not None:
        return container.exit_code
    if isinstance(snapshot.processes, Known):
        return value_or(snapshot.processes.value.driver_exit_code, None)
    return None


def _pressure(memory: Memory | None) -> float | None:
    return None if memory is None else _rounded(value_or(memory.pressure_full_ratio, None), 4)


def _gpu(device: Gpu) -> GpuSample:
    return GpuSample(
        utilisation_ratio=_rounded(value_or(device.utilisation_ratio, None), 2),
        power_w=_rounded(value_or(device.power_w, None), 1),
        temperature_c=_rounded(value_or(device.temperature_c, None), 0),
        sm_clock_mhz=_rounded(value_or(device.sm_clock_mhz, None), 0),
        held_bytes=_in_mib(_held(device)),
    )


def _held(device: Gpu) -> int | None:
    if isinstance(device.memory_used_bytes, Known):
        return device.memory_used_bytes.value
    if not isinstance(device.processes, Known):
        return None
    return sum(value_or(process.memory_bytes, 0) for process in device.processes.value)


def _engine(verdict: EngineVerdict) -> EngineSample:
    # An idle engine goes on reporting the throughput of its last work.
    works = verdict.state in _WORKING
    return EngineSample(
        label=_word(verdict.label),
        state=verdict.state.value,
        tokens_per_s=_rounded(verdict.throughput_tokens_per_s, 0) or 0.0 if works else 0.0,
    )


def _rounded(value: float | None, digits: int) -> float | None:
    if value is None or not math.isfinite(value) or abs(value) > _LARGEST:
        return None
    return round(float(value), digits)


def _whole(value: int | None) -> int | None:
    return None if value is None or abs(value) > _LARGEST else value


def _in_mib(size_bytes: int | None) -> int | None:
    if size_bytes is None or abs(size_bytes) > _LARGEST:
        return None
    return round(size_bytes / MIB) * MIB


def _word(text: str) -> str:
    return text[:_WORD_CHARS]
