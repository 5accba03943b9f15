"""Is the box well: each device's utilisation, power, clock and heat, and the memory pool.

Charts keep one scale: 0–100 for shares and degrees, 0 to the observed peak for watts and clocks.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tui.model.gpu import Gpu, GpuReport
from tui.model.reading import Known, Reading, Unknown, value_or
from tui.model.snapshot import Snapshot
from tui.model.text import harmless, padded
from tui.view import glyphs, hours, pool
from tui.view.chart import Pool, bar, over_time, sparkline
from tui.view.compose import (
    Part,
    cell,
    drawn,
    drawn_row,
    drawn_text,
    joined,
    packed,
    why_not,
    words,
    wrapped,
)
from tui.view.numbers import age, gib, grouped, percent, size
from tui.view.rows import Look, Role, Row, Span, row_width

CHART_SPAN_S = 600.0
LOADED_RATIO = 0.5
"""A device below this is not expected to draw power or to hold its clock."""
_LABEL, _VALUE, _CHART_MIN = 6, 10, 8


@dataclass(frozen=True, slots=True)
class _Gauge:
    """One quantity of a device: how it is said and on which scale it is drawn."""

    label: str
    key: str
    reading: Reading[float]
    text: Callable[[float], str]
    top: float | None
    """End of the scale; None: the highest value seen."""
    least_top: float = 0.0
    """A device that idles or is held back must not look full once its peak is out of sight."""
    note: Row = ()
    role: Role = Role.STRONG


def title(snapshot: Snapshot, look: Look) -> str:
    reading = snapshot.gpus
    parts = ["GPU"]
    if isinstance(reading, Known):
        parts += _names(reading.value)
        parts.append("last 10 min")
        if snapshot.now - reading.at > pool.STALE_S:
            parts.append(f"read {age(snapshot.now - reading.at)} ago")
    return drawn_text(f" {glyphs.DOT} ".join(parts), look)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    return drawn(_rows(snapshot, width, height), width, height, look)


def summary(snapshot: Snapshot, width: int, look: Look) -> Row:
    reading = snapshot.gpus
    label = cell("GPU", 8, Role.LABEL)
    if isinstance(reading, Unknown):
        left = pool.left_forms(snapshot)[-1]
        room = max(8, width - 8 - row_width(left) - 6)
        why = words(f"{glyphs.UNKNOWN} {why_not(reading, room)}", Role.MUTED)
        return drawn_row(
            (label, *packed((Part(1, (why,)), Part(0, (left,))), width - 8, "  ")), width, look
        )
    devices = reading.value.devices
    old = snapshot.now - reading.at
    parts = (
        *_summary_parts(devices),
        Part(0, pool.left_forms(snapshot)),
        Part(1, (words(f"{age(old)} ago", Role.WARNING),) if old > pool.STALE_S else ()),
    )
    return drawn_row((label, *packed(parts, width - 8, "  ")), width, look)


def _summary_parts(devices: tuple[Gpu, ...]) -> tuple[Part, ...]:
    if not devices:
        return (Part(0, (words("none in this box", Role.MUTED),)),)
    ratios = [r for d in devices if (r := value_or(d.utilisation_ratio, None)) is not None]
    watts = [w for d in devices if (w := value_or(d.power_w, None)) is not None]
    hottest = max(devices, key=lambda d: value_or(d.temperature_c, -1.0))
    count = f"{len(devices)} × " if len(devices) > 1 else ""
    mean = sum(ratios) / len(ratios) if ratios else None
    used = f"{glyphs.UNKNOWN} %" if mean is None else percent(mean)
    heat = _heat(hottest)
    return (
        Part(1, (words(f"{count}{used}", Role.STRONG),)),
        Part(3, (words(f"{grouped(sum(watts))} W", Role.VALUE),) if watts else ()),
        Part(2, (words(heat.text(hottest.temperature_c.value), heat.role),))
        if isinstance(hottest.temperature_c, Known)
        else Part(2, ()),
    )


def _names(report: GpuReport) -> list[str]:
    names = [harmless(device.name) for device in report.devices]
    if not names:
        return ["none in this box"]
    if len(set(names)) == 1:
        return [names[0] if len(names) == 1 else f"{len(names)} × {names[0]}"]
    return [f"{len(names)} devices"]


def _rows(snapshot: Snapshot, width: int, height: int) -> tuple[Row, ...]:
    reading = snapshot.gpus
    if isinstance(reading, Unknown):
        why = wrapped(why_not(reading), max(1, width - 2))
        first = tuple(
            (Span(f"{glyphs.UNKNOWN} " if i == 0 else "  ", Role.MUTED), Span(line, Role.MUTED))
            for i, line in enumerate(why)
        )
        return (*first, *pool.rows(snapshot, width))
    report = reading.value
    notes = _notes(snapshot, report)
    if not report.devices:
        return (words("no GPU in this box", Role.MUTED), *notes, *pool.rows(snapshot, width))
    if len(report.devices) == 1:
        body = _one(snapshot, report.devices[0], reading.at, width)
        body = (*body, *notes)
        body = (*body, *_processes(report.devices, width, height - len(body)))
        return (*body, *hours.rows(snapshot, report.devices[0], width, height - len(body)))
    memory = pool.rows(snapshot, width, label="box memory")
    room = max(1, height - len(memory) - len(notes))
    return (*_several(snapshot, report.devices, width, room), *notes, *memory)


def _one(snapshot: Snapshot, gpu: Gpu, at: float, width: int) -> tuple[Row, ...]:
    gauges = tuple(_gauge_row(snapshot, gpu, gauge, at, width) for gauge in _gauges(gpu))
    if gpu.unified:
        return (*gauges, *pool.rows(snapshot, width))
    own = _own_memory(gpu, width)
    return (*gauges, *own, *pool.rows(snapshot, width, label="box memory"))


def _gauges(gpu: Gpu) -> tuple[_Gauge, ...]:
    limit = value_or(gpu.power_limit_w, None)
    watts = f"of {grouped(limit)} W" if limit else ""
    return (
        _Gauge("util", "utilisation_ratio", gpu.utilisation_ratio, percent, 1.0),
        _Gauge(
            "power",
            "power_w",
            gpu.power_w,
            lambda watt: f"{grouped(watt)} W",
            limit,
            least_top=60.0,
            note=words(watts, Role.MUTED) if watts else (),
        ),
        _Gauge(
            "clock",
            "sm_clock_mhz",
            gpu.sm_clock_mhz,
            lambda mhz: f"{grouped(mhz)} MHz",
            None,
            least_top=2000.0,
            note=_throttle(gpu),
        ),
        _heat(gpu),
    )


def _heat(gpu: Gpu) -> _Gauge:
    margin = value_or(gpu.temperature_margin_c, None)
    note: Row = ()
    role = Role.STRONG
    if margin is not None and margin >= -10:
        role = Role.BAD if margin <= 0 else Role.WARNING if margin <= 5 else Role.STRONG
        side = f"{grouped(margin)} below limit" if margin > 0 else f"{grouped(-margin)} over limit"
        note = words(side, Role.MUTED if margin > 5 else role)
    return _Gauge(
        "temp",
        "temperature_c",
        gpu.temperature_c,
        lambda celsius: f"{grouped(celsius)} °C",
        100.0,
        note=note,
        role=role,
    )


def _throttle(gpu: Gpu) -> Row:
    reasons = [harmless(reason) for reason in value_or(gpu.throttle_reasons, ())]
    slowed = value_or(gpu.thermal_slowdown_ratio, 0.0)
    if slowed > 0.01:
        reasons.append(f"slowed by heat {percent(slowed)}")
    return words(f"{glyphs.WARNING} {', '.join(reasons)}", Role.WARNING) if reasons else ()


def _gauge_row(snapshot: Snapshot, gpu: Gpu, gauge: _Gauge, at: float, width: int) -> Row:
    label = cell(gauge.label, _LABEL, Role.LABEL)
    if isinstance(gauge.reading, Unknown):
        unknown = cell(glyphs.UNKNOWN, _VALUE, Role.MUTED, right=True)
        return (label, unknown, Span(f"  {why_not(gauge.reading)}", Role.MUTED))
    stale = snapshot.now - gauge.reading.at > pool.STALE_S
    role = Role.MUTED if stale else gauge.role
    value = cell(gauge.text(gauge.reading.value), _VALUE, role, right=True)
    note = gauge.note
    if at - gauge.reading.at > pool.STALE_S:
        note = words(f"{age(snapshot.now - gauge.reading.at)} ago", Role.WARNING)
    room = width - _LABEL - _VALUE - 2 - (row_width(note) + 2 if note else 0)
    key = f"gpu{gpu.index}.{gauge.key}"
    chart = words(_chart(snapshot, key, gauge, room, width), Role.CHART) if room > 0 else ()
    return joined(((label, value), note, chart), "  ")


def _chart(snapshot: Snapshot, key: str, gauge: _Gauge, room: int, width: int) -> str:
    """Charts of a pane have the same time in the same column; a note hides the oldest only."""
    series = snapshot.history.get(key)
    full = max(_CHART_MIN, width - _LABEL - _VALUE - 2)
    if series is None or not series.points:
        return ""
    cells = over_time(
        series.points, end=snapshot.now, span_s=CHART_SPAN_S, width=full, pool=Pool.MEAN
    )
    seen = [value for _, value in series.finite()]
    top = gauge.top or max(*seen, value_or(gauge.reading, 0.0), gauge.least_top)
    return sparkline(cells[-room:], (0.0, top))


def _own_memory(gpu: Gpu, width: int) -> tuple[Row, ...]:
    label = Span("memory ", Role.LABEL)
    if isinstance(gpu.memory_used_bytes, Unknown):
        return ((label, Span(f"{glyphs.UNKNOWN} {why_not(gpu.memory_used_bytes)}", Role.MUTED)),)
    used, total = gpu.memory_used_bytes.value, value_or(gpu.memory_total_bytes, 0)
    said = (
        label,
        Span(gib(used), Role.VALUE),
        Span(f" of {gib(total)} GiB" if total > 0 else " GiB", Role.MUTED),
    )
    return (said, bar(used / total, width)) if total > 0 else (said,)


def _processes(devices: tuple[Gpu, ...], width: int, room: int) -> tuple[Row, ...]:
    """The processes that hold most, as many beside each other as fit."""
    said = [
        (
            Span(f"{process.pid} ", Role.MUTED),
            cell(harmless(process.name) or "?", 12, Role.TEXT),
            cell(_held(process.memory_bytes), 9, Role.VALUE, right=True),
        )
        for process in pool.gpu_processes(devices)
    ]
    each = max((row_width(row) for row in said), default=0) + 4
    beside = max(1, (width + 4) // each) if said else 1
    lines = [joined(said[i : i + beside], "    ") for i in range(0, len(said), beside)]
    return tuple(lines[: max(0, room)])


def _held(reading: Reading[int]) -> str:
    return glyphs.UNKNOWN if isinstance(reading, Unknown) else size(reading.value)


def _notes(snapshot: Snapshot, report: GpuReport) -> tuple[Row, ...]:
    missed = snapshot.missed.get("gpu")
    said = [harmless(warning) for warning in report.warnings]
    if missed is not None:
        said.insert(0, f"no fresh reading: {why_not(missed)}")
    return tuple(words(f"{glyphs.WARNING} {text}", Role.WARNING) for text in said)


def _several(
    snapshot: Snapshot, devices: tuple[Gpu, ...], width: int, room: int
) -> tuple[Row, ...]:
    shown = devices if len(devices) <= room else devices[: max(0, room - 1)]
    hidden = len(devices) - len(shown)
    more = (words(f"… {hidden} more, not shown", Role.MUTED),) if hidden else ()
    return (*(_compact(snapshot, gpu, width) for gpu in shown), *more)


def _compact(snapshot: Snapshot, gpu: Gpu, width: int) -> Row:
    util, power, clock, heat = _gauges(gpu)
    chart = max(0, min(40, width - 62))
    drawing = padded(_chart(snapshot, f"gpu{gpu.index}.{util.key}", util, chart, chart + 18), chart)
    parts = (
        Part(0, ((cell(str(gpu.index), 2, Role.LABEL), _figure(util, 5)),)),
        Part(5, (words(drawing, Role.CHART),) if chart >= _CHART_MIN else ()),
        Part(3, ((_figure(power, 7),),)),
        Part(4, ((_figure(clock, 9),),)),
        Part(1, ((_figure(heat, 6),),)),
        Part(2, (_device_memory(gpu),)),
        Part(2, (clock.note,) if clock.note else ()),
    )
    return packed(parts, width, "  ")


def _figure(gauge: _Gauge, width: int) -> Span:
    if isinstance(gauge.reading, Unknown):
        return cell(glyphs.UNKNOWN, width, Role.MUTED, right=True)
    return cell(gauge.text(gauge.reading.value), width, gauge.role, right=True)


def _device_memory(gpu: Gpu) -> Row:
    if gpu.unified:
        return words("shares the box's", Role.MUTED)
    if isinstance(gpu.memory_used_bytes, Unknown):
        return words(f"{glyphs.UNKNOWN} GiB", Role.MUTED)
    total = value_or(gpu.memory_total_bytes, 0)
    of = f" of {gib(total)} GiB" if total > 0 else " GiB"
    return (
        cell(gib(gpu.memory_used_bytes.value), 5, Role.VALUE, right=True),
        Span(of, Role.MUTED),
    )
