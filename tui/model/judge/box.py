"""Alerts about the box: memory floor and slope, heat, clocks, lost devices, blind probes."""

from __future__ import annotations

from collections.abc import Iterator

from tui.model.gpu import Gpu, GpuReport
from tui.model.judge.standing import Standing
from tui.model.judge.words import counted, gib, span
from tui.model.loss import Loss
from tui.model.memory import Memory
from tui.model.reading import Absence, Known, Unknown, value_or
from tui.model.series import Series, quantile
from tui.model.snapshot import Alert, Level, Limits, Snapshot

RAY_KILLS_AT_RATIO = 0.95
_RAY_NEAR_RATIO = 0.93
_SLOPE_WINDOW_S = 2.0
_SMALL_BOX_SHARES = (0.15, 0.07)
"""Floors never ask for more of a small box than these shares of its pool."""
_LOAD_WINDOW_S = 30.0
_COLLAPSED_MHZ = 1400.0
_HOT_C = 89.0
_MARGIN_WARN_C = 5.0
_LEFTOVER_GRACE_S = 20.0
"""What ends well takes a moment to be gone."""
_HOLDERS = frozenset({"engine", "scheduler", "trainer", "detokenizer"})
"""Roles that hold GPU memory, or the port of one that does."""


def box_alerts(snapshot: Snapshot, standing: Standing) -> Iterator[Alert]:
    """Alerts of the box. A copied log has no box."""
    if not snapshot.live:
        return
    if isinstance(snapshot.memory, Known):
        yield from _memory(snapshot, snapshot.memory.value)
    if isinstance(snapshot.gpus, Known):
        for device in snapshot.gpus.value.devices:
            yield from _device(snapshot, device)
        yield from _setup(snapshot.gpus.value)
    elif snapshot.gpus.why is Absence.ERROR:
        yield _gpu_fault(snapshot.gpus)
    if standing.has_ended:
        if snapshot.now - standing.since > _LEFTOVER_GRACE_S:
            yield from _leftovers(snapshot)
    else:
        yield from _container(snapshot)
    if snapshot.loss is not None:
        yield _lost(snapshot.loss)
    yield from _blind(snapshot)


def _lost(loss: Loss) -> Alert:
    return Alert(
        code="post-mortem",
        level=Level.WARNING,
        line=loss.line,
        evidence=loss.evidence,
        advice="`milepost explain --run` tells it whole",
        degrades=False,
    )


def memory_floors(limits: Limits, total_bytes: int) -> tuple[float, float]:
    """Below the first less memory is left than is well, below the second than is safe."""
    warn, critical = _SMALL_BOX_SHARES
    return (
        min(limits.memory_warn_bytes, total_bytes * warn),
        min(limits.memory_critical_bytes, total_bytes * critical),
    )


def _memory(snapshot: Snapshot, memory: Memory) -> Iterator[Alert]:
    limits = snapshot.limits
    warn, critical = memory_floors(limits, memory.total_bytes)
    left = memory.available_bytes
    empty_in = _empty_in_s(snapshot.history.get("memory.available_bytes"), snapshot.now)
    # Engines back from offload take tens of GiB in seconds: a steep slope is no news high up.
    falls = left < warn and empty_in is not None and empty_in <= limits.memory_exhaust_s
    if left < warn:
        line = f"{gib(left)} of memory left of {gib(memory.total_bytes)}"
        if falls and empty_in is not None:
            line += f", gone in {span(empty_in)} at this rate"
        yield Alert(
            code="memory-floor",
            level=Level.CRITICAL if left < critical or falls else Level.WARNING,
            line=line,
            evidence=(f"floor {gib(warn)}, critical {gib(critical)}",),
            advice="save now while it still can; a unified-memory box freezes without a log",
        )
    elif memory.total_bytes - left > _RAY_NEAR_RATIO * memory.total_bytes:
        yield Alert(
            code="ray-memory-line",
            level=Level.WARNING,
            line="memory is near 95 %, where Ray kills workers",
            evidence=(f"{gib(left)} left",),
            advice="lower the engines' memory share",
        )
    if memory.cma_free_bytes > memory.cma_total_bytes:
        yield Alert(
            code="kernel-cma",
            level=Level.INFO,
            line="the kernel keeps memory that cannot be pinned (CmaFree above CmaTotal)",
            advice="boot with kho=off",
            degrades=False,
        )


def _empty_in_s(series: Series | None, now: float) -> float | None:
    """Seconds until the pool is empty at its present slope, None when it does not fall."""
    if series is None:
        return None
    points = series.since(now - _SLOPE_WINDOW_S - 0.6)
    if len(points) < 3:
        return None
    (t0, y0), (t1, y1) = points[0], points[-1]
    if t1 - t0 < 1.0 or y1 >= y0:
        return None
    return y1 / ((y0 - y1) / (t1 - t0))


def _device(snapshot: Snapshot, device: Gpu) -> Iterator[Alert]:
    name = f"gpu{device.index}"
    fault = device.utilisation_ratio
    if isinstance(fault, Unknown) and fault.why is Absence.ERROR:
        yield _gpu_fault(fault, str(device.index))
        return
    margin = value_or(device.temperature_margin_c, None)
    heat = value_or(device.temperature_c, None)
    hot = margin <= _MARGIN_WARN_C if margin is not None else heat is not None and heat >= _HOT_C
    if hot:
        told = f"{heat:.0f} °C" if heat is not None else "hot"
        if margin is not None:
            told += f", {margin:.0f} °C below its limit" if margin > 0 else ", at its limit"
        yield Alert(
            code="gpu-hot",
            level=Level.CRITICAL if margin is not None and margin <= 0 else Level.WARNING,
            subject=str(device.index),
            line=f"GPU {device.index} is at {told}",
            advice="check airflow; a lower clock cap keeps it alive",
        )
    yield from _collapsed(snapshot, device, name)


def _collapsed(snapshot: Snapshot, device: Gpu, name: str) -> Iterator[Alert]:
    """Busy by its own word, with clocks or watts of an idle part."""
    start = snapshot.now - _LOAD_WINDOW_S
    util = _since(snapshot, f"{name}.utilisation_ratio", start)
    clocks = _since(snapshot, f"{name}.sm_clock_mhz", start)
    if len(util) < _LOAD_WINDOW_S / 2 or min(util) < 0.8 or not clocks:
        return
    clock = quantile(clocks, 0.5) or 0.0
    usual = quantile(_since(snapshot, f"{name}.sm_clock_mhz", 0.0), 0.5) or 0.0
    watts = quantile(_since(snapshot, f"{name}.power_w", start), 0.5)
    usual_w = quantile(_since(snapshot, f"{name}.power_w", 0.0), 0.5) or 0.0
    starved = watts is not None and watts < 0.4 * usual_w
    if clock >= max(_COLLAPSED_MHZ, 0.6 * usual) and not starved:
        return
    yield Alert(
        code="gpu-clocks-collapsed",
        level=Level.WARNING,
        subject=str(device.index),
        line=f"GPU {device.index} says it is busy, but runs at {clock:.0f} MHz",
        evidence=_reasons(device),
        advice="known cure: shut down and take the power plug out for a minute",
    )


def _reasons(device: Gpu) -> tuple[str, ...]:
    reading = device.throttle_reasons
    if isinstance(reading, Known) and reading.value:
        return reading.value
    return ("no throttle reason is set",)


def _since(snapshot: Snapshot, key: str, start: float) -> tuple[float, ...]:
    series = snapshot.history.get(key)
    return tuple(value for _, value in series.since(start)) if series else ()


def _setup(report: GpuReport) -> Iterator[Alert]:
    for warning in report.warnings:
        yield Alert(code="nvml-binding", level=Level.INFO, line=warning, degrades=False)


def _gpu_fault(fault: Unknown, subject: str = "") -> Alert:
    is_lost = " is lost" in fault.reason
    return Alert(
        code="gpu-lost" if is_lost else "gpu-unreadable",
        level=Level.CRITICAL if is_lost else Level.WARNING,
        subject=subject,
        line=fault.reason if is_lost else f"the GPU cannot be read: {fault.reason}",
        advice="read the kernel log for NVRM lines; the box needs a restart" if is_lost else "",
        degrades=is_lost,
    )


def _container(snapshot: Snapshot) -> Iterator[Alert]:
    if isinstance(snapshot.container, Known) and snapshot.container.value.oom_killed:
        yield Alert(
            code="container-oom",
            level=Level.WARNING,
            line="a process in the container was killed for memory; the container lives",
            evidence=("Docker reports an OOM kill in it",),
            advice="look which one is missing: an engine, or a worker",
            degrades=False,
        )
    if isinstance(snapshot.container, Known) and snapshot.container.value.auto_remove:
        yield Alert(
            code="container-auto-remove",
            level=Level.INFO,
            line="started with --rm: its exit code and all files off a mount go with it",
            degrades=False,
        )


def _leftovers(snapshot: Snapshot) -> Iterator[Alert]:
    """What outlives the run. The process table is right about that, whatever Ray says."""
    if not isinstance(snapshot.processes, Known):
        return
    left = [each for each in snapshot.processes.value.processes if each.role in _HOLDERS]
    if not left:
        return
    held = _held_bytes(snapshot, {each.pid for each in left})
    names = ", ".join(f"{each.pid} {each.title}" for each in left[:4])
    yield Alert(
        code="leftover-processes",
        level=Level.WARNING,
        line=f"{counted(len(left), 'process')} of the run outlived it, no live owner"
        + (f": {gib(held)} of GPU memory" if held else ""),
        evidence=(names,),
        advice="end exactly these before the next start: they hold its port and its memory",
        degrades=False,
    )


def _held_bytes(snapshot: Snapshot, pids: set[int]) -> int:
    if not isinstance(snapshot.gpus, Known):
        return 0
    return sum(
        value_or(process.memory_bytes, 0)
        for device in snapshot.gpus.value.devices
        for process in value_or(device.processes, ())
        if process.pid in pids
    )


def _blind(snapshot: Snapshot) -> Iterator[Alert]:
    for name, fault in snapshot.missed.items():
        yield Alert(
            code="probe-silent",
            level=Level.INFO,
            subject=name,
            line=f"{name}: {fault.reason}",
            degrades=False,
        )
    if snapshot.log.fault is not None and snapshot.attachment.log is not None:
        yield Alert(
            code="log-unreadable",
            level=Level.WARNING,
            line=f"the log cannot be read: {snapshot.log.fault.reason}",
            degrades=False,
        )
