"""Saving: what a restart would load, how often to save, and how long the disk still takes it."""

from __future__ import annotations

from collections.abc import Iterator

from tui.model.checkpoint import CheckpointState, CheckpointTree
from tui.model.memory import Disk
from tui.model.reading import Unknown
from tui.model.snapshot import Loads, SaveAdvice, Snapshot
from tui.model.text import harmless
from tui.view import glyphs, states
from tui.view.compose import GAP, Part, packed, why_not, words
from tui.view.numbers import age, counted, duration, grouped, percent, size
from tui.view.rows import Role, Row, Span

_SCARCE_SAVES = 3
"""The disk warns when it is full after this many saves."""


def saving_rows(snapshot: Snapshot, tree: CheckpointTree | None, width: int) -> tuple[Row, ...]:
    """At most two rows, for below the table."""
    parts = (
        Part(1, _saving(snapshot)),
        Part(3, _next_save(snapshot)),
        Part(0, _disk(snapshot, tree)),
        Part(2, _save_time(snapshot)),
    )
    gap = GAP if width >= 100 else "  "
    rows_told = (packed(parts, width, gap), packed(_restart(snapshot), width, gap))
    return tuple(row for row in rows_told if row)


def _restart(snapshot: Snapshot) -> tuple[Part, ...]:
    """What a restart would load, and whether saving more or less often would lose less."""
    loads = snapshot.verdict.would_load
    role = Role.MUTED
    if loads.loads in (Loads.NOTHING, Loads.FAILS):
        role = Role.BAD if loads.best is not None else Role.MUTED
    told = () if loads.loads is Loads.UNKNOWN else (words(harmless(loads.line), role),)
    return Part(0, told), Part(1, _advice(snapshot))


def _advice(snapshot: Snapshot) -> tuple[Row, ...]:
    advice, every = snapshot.verdict.save_advice, _interval(snapshot)
    if advice is None or not every or advice.waste_ratio is None:
        return ()
    if advice.low <= every <= advice.high:
        return (words(f"saving every {every} loses little", Role.MUTED),)
    band = f"{advice.low}" if advice.low == advice.high else f"{advice.low}\u2013{advice.high}"
    gain = f"{percent(advice.waste_ratio)} \u2192 {percent(advice.best_waste_ratio)}"
    return (
        words(f"every {band} would lose less: {gain}", Role.MUTED),
        words(f"{band} would lose less", Role.MUTED),
    )


def advice_lines(snapshot: Snapshot) -> Iterator[str]:
    """The advice in full: today's waste and the least, the plain rule, and what both rest on."""
    advice, every = snapshot.verdict.save_advice, _interval(snapshot)
    if advice is None:
        return
    if every and advice.waste_ratio is not None:
        yield f"every {every} costs {percent(advice.waste_ratio)} of the time"
    low, high = advice.low, advice.high
    band = f"every {low}" if low == high else f"every {low} to {high}"
    yield f"{band} costs least: {percent(advice.best_waste_ratio)}"
    limit = age(snapshot.limits.work_at_risk_s)
    yield f"at most {advice.most}, so that a crash costs no more than {limit}"
    yield (
        f"by {duration(advice.rollout_s)} a rollout, {duration(advice.save_s)} a save, "
        f"{_failures(advice)}"
    )


def _failures(advice: SaveAdvice) -> str:
    apart = age(advice.between_failures_s)
    source = "as configured" if advice.is_between_given else "at worst, going by this run"
    return f"a failure every {apart} {source}"


def _interval(snapshot: Snapshot) -> int | None:
    return snapshot.story.launch.save_interval or snapshot.attachment.launch.save_interval


def _saving(snapshot: Snapshot) -> tuple[Row, ...]:
    every = _interval(snapshot)
    return (words(f"saves every {every}", Role.MUTED),) if every else ()


def _save_time(snapshot: Snapshot) -> tuple[Row, ...]:
    told = snapshot.story.durations.get("save")
    usual = told.median_s() if told else None
    return () if usual is None else (words(f"{age(usual)} a save", Role.MUTED),)


def _next_save(snapshot: Snapshot) -> tuple[Row, ...]:
    every, rollout = _interval(snapshot), snapshot.story.rollout
    if not every or rollout is None or snapshot.verdict.state in states.ENDED:
        return ()
    return (words(f"next after rollout {grouped(rollout + (-rollout - 1) % every)}", Role.MUTED),)


def _disk(snapshot: Snapshot, tree: CheckpointTree | None) -> tuple[Row, ...]:
    reading = snapshot.disk
    if isinstance(reading, Unknown):
        return (words(f"disk {glyphs.UNKNOWN} {why_not(reading, 30)}", Role.MUTED),)
    disk = reading.value
    if disk.read_only:
        return (words(f"{glyphs.BAD} disk is read-only", Role.BAD),)
    free = (Span("disk ", Role.LABEL), Span(f"{size(disk.free_bytes)} free", Role.VALUE))
    saves = _saves_left(disk, tree)
    if saves is None:
        return (free,)
    role = Role.WARNING if saves <= _SCARCE_SAVES else Role.MUTED
    full = (*free, Span(f", full in {counted(saves, 'save')}", role))
    every_s = _between_saves_s(snapshot)
    if every_s is None:
        return full, free
    return (*full, Span(f", {age(saves * every_s)}", role)), full, free


def _between_saves_s(snapshot: Snapshot) -> float | None:
    every, forecast = _interval(snapshot), snapshot.verdict.forecast
    return every * forecast.usual_rollout_s if every and forecast is not None else None


def _saves_left(disk: Disk, tree: CheckpointTree | None) -> int | None:
    """By the size of the newest whole one."""
    whole = (c for c in tree.checkpoints if c.state is CheckpointState.WHOLE) if tree else ()
    last = next((each.size_bytes for each in whole if each.size_bytes > 0), 0)
    return max(0, disk.free_bytes) // last if last else None
