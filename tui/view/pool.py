"""The memory pool of the box, as rows: the bar, its limits, and how fast it is being used up.

Three numbers are kept apart: the pool, what GPU processes hold of it, and the page cache.
"""

from __future__ import annotations

from tui.model.gpu import Gpu, GpuProcess
from tui.model.memory import Memory
from tui.model.reading import Known, Unknown, value_or
from tui.model.snapshot import Snapshot
from tui.view import glyphs
from tui.view.chart import slope
from tui.view.compose import Part, joined, packed, why_not, words
from tui.view.numbers import age, gib, percent, size
from tui.view.rows import Role, Row, Span

STALE_S = 3.0
SLOPE_WINDOW_S = 60.0
RAY_LIMIT_RATIO = 0.95
"""Ray kills workers when the node's memory is used past this."""


def rows(snapshot: Snapshot, width: int, *, label: str = "memory") -> tuple[Row, ...]:
    """The pool, its bar, and what is in it."""
    reading = snapshot.memory
    if isinstance(reading, Unknown):
        return (joined((words(label, Role.LABEL), _unknown(reading)), " "),)
    memory = reading.value
    used = packed(
        (
            Part(0, (_used(memory, label),)),
            Part(1, ((*_left(snapshot, memory), *_slope(snapshot)), _left(snapshot, memory))),
            Part(2, _stale(snapshot, reading)),
        ),
        width,
    )
    return used, _bar(snapshot, memory, width), _legend(snapshot, memory, width)


def left_forms(snapshot: Snapshot) -> tuple[Row, ...]:
    """What is left of the pool, for a summary; longest form first."""
    reading = snapshot.memory
    if isinstance(reading, Unknown):
        return (joined((words("memory", Role.LABEL), _unknown(reading)), " "),)
    memory = reading.value
    left = _left(snapshot, memory)
    return (
        (*left, Span(f" of {gib(memory.total_bytes)} GiB", Role.MUTED)),
        (*left, Span(" GiB", Role.MUTED)),
    )


def gpu_processes(gpus: tuple[Gpu, ...]) -> tuple[GpuProcess, ...]:
    """All known processes, those that hold most first."""
    found = [process for gpu in gpus for process in value_or(gpu.processes, ())]
    return tuple(sorted(found, key=lambda p: value_or(p.memory_bytes, 0), reverse=True))


def _unknown(fault: Unknown) -> Row:
    return (Span(f"{glyphs.UNKNOWN} ", Role.MUTED), Span(why_not(fault), Role.MUTED))


def _used(memory: Memory, label: str) -> Row:
    return (
        Span(f"{label} ", Role.LABEL),
        Span(gib(memory.total_bytes - memory.available_bytes), Role.VALUE),
        Span(f" of {gib(memory.total_bytes)} GiB", Role.MUTED),
    )


def _left(snapshot: Snapshot, memory: Memory) -> Row:
    return (
        Span("left ", Role.LABEL),
        Span(gib(memory.available_bytes), _level(snapshot, memory)),
    )


def _level(snapshot: Snapshot, memory: Memory) -> Role:
    if memory.available_bytes < snapshot.limits.memory_critical_bytes:
        return Role.BAD
    return (
        Role.WARNING if memory.available_bytes < snapshot.limits.memory_warn_bytes else Role.STRONG
    )


def _slope(snapshot: Snapshot) -> Row:
    series = snapshot.history.get("memory.available_bytes")
    per_s = slope(series.since(snapshot.now - SLOPE_WINDOW_S)) if series else None
    if per_s is None:
        return ()
    per_minute = per_s * 60 / 2**30
    if abs(per_minute) < 0.05:
        return words(f" {glyphs.LEVEL} steady", Role.MUTED)
    sign = glyphs.UP if per_minute > 0 else glyphs.DOWN
    return words(f" {sign} {abs(per_minute):.1f}/min", Role.MUTED)


def _stale(snapshot: Snapshot, reading: Known[Memory]) -> tuple[Row, ...]:
    old = snapshot.now - reading.at
    return (words(f"{age(old)} ago", Role.WARNING),) if old > STALE_S else ()


def _bar(snapshot: Snapshot, memory: Memory, width: int) -> Row:
    total = max(1, memory.total_bytes)

    def cells(count_bytes: float) -> int:
        return round(min(1.0, max(0.0, count_bytes / total)) * width)

    used = cells(memory.total_bytes - memory.available_bytes)
    cached = cells(min(memory.cached_bytes, memory.available_bytes))
    cached = min(cached, max(0, width - used))
    signs = [Span(glyphs.BAR_FULL, Role.BAR)] * used
    signs += [Span(glyphs.BAR_CACHE, Role.BAR_CACHE)] * cached
    signs += [Span(glyphs.BAR_EMPTY, Role.BAR_EMPTY)] * (width - len(signs))
    for limit in (total - snapshot.limits.memory_warn_bytes, RAY_LIMIT_RATIO * total):
        at = cells(limit)
        if 0 < at < width:
            signs[at] = Span(glyphs.MARK, Role.WARNING if at < used else Role.LABEL)
    return _merged(signs)


def _merged(signs: list[Span]) -> Row:
    out: list[Span] = []
    for sign in signs:
        if out and out[-1].role is sign.role:
            out[-1] = Span(out[-1].text + sign.text, sign.role)
        else:
            out.append(sign)
    return tuple(out)


def _legend(snapshot: Snapshot, memory: Memory, width: int) -> Row:
    floor = gib(snapshot.limits.memory_warn_bytes).removesuffix(".0")
    held, cached = _held(snapshot), gib(memory.cached_bytes)
    labels = ("GPU processes", "held by GPU", "GPU") if _is_shared(snapshot) else ()
    parts = (
        Part(0, tuple(_pair(label, held) for label in labels)),
        Part(1, tuple(_pair(label, cached) for label in ("page cache", "cache"))),
        Part(4, (words(f"{glyphs.MARK} floor {floor}", Role.MUTED),)),
        Part(5, (words(f"{glyphs.MARK} Ray 95 %", Role.MUTED),)),
        Part(2, _swap(memory)),
        Part(3, _pressure(memory)),
    )
    return packed(parts, width, "  ")


def _is_shared(snapshot: Snapshot) -> bool:
    """GPU processes hold of this pool. Cards have memory of their own."""
    if isinstance(snapshot.gpus, Unknown):
        return True
    return any(gpu.unified for gpu in snapshot.gpus.value.devices)


def _pair(label: str, value: str) -> Row:
    return (Span(f"{label} ", Role.LABEL), Span(value, Role.VALUE))


def _held(snapshot: Snapshot) -> str:
    """What the processes of devices that share the pool hold of it, or why that is not known."""
    if isinstance(snapshot.gpus, Unknown):
        return glyphs.UNKNOWN
    devices = tuple(gpu for gpu in snapshot.gpus.value.devices if gpu.unified)
    unread = next((g.processes for g in devices if isinstance(g.processes, Unknown)), None)
    if unread is not None:
        return f"{glyphs.UNKNOWN} {why_not(unread, 30)}"
    found = gpu_processes(devices)
    if not found and any(value_or(gpu.utilisation_ratio, 0.0) > 0.05 for gpu in devices):
        return f"{glyphs.UNKNOWN} hidden by container"
    return gib(sum(value_or(process.memory_bytes, 0) for process in found)) if found else "none"


def _swap(memory: Memory) -> tuple[Row, ...]:
    used = memory.swap_total_bytes - memory.swap_free_bytes
    return (_pair("swap", size(used)),) if used > 2**20 else ()


def _pressure(memory: Memory) -> tuple[Row, ...]:
    waiting = value_or(memory.pressure_full_ratio, 0.0)
    text = f"all wait for memory {percent(waiting)}"
    return (words(text, Role.WARNING),) if waiting > 0.1 else ()
