"""Is it moving: the phases of the rollout, its bar, and the numbers that say whether it learns."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from tui.model.progress import Story
from tui.model.series import Series
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs, header
from tui.view.chart import Pool, bar, in_order, own_scale, slope, sparkline
from tui.view.compose import (
    Part,
    cell,
    drawn,
    drawn_row,
    drawn_text,
    joined,
    packed,
    spread,
    words,
    wrapped,
)
from tui.view.numbers import ago, counted, duration, grouped, number, percent, rough
from tui.view.rows import Look, Role, Row, Span, row_width

TREND_POINTS = 20
_STILL_S = 30.0
"""A bar that has not moved for this long says so."""
_LABEL, _VALUE, _TREND, _CHART_MIN = 11, 8, 16, 8
_OUTER = frozenset({"train", "train_wait"})
"""Timers around the phases proper."""
_ORDER = (
    "generate",
    "eval",
    "wake_up",
    "data_preprocess",
    "ref_log_probs",
    "log_probs",
    "actor_train",
    "save",
    "sleep",
    "update_weights",
)


@dataclass(frozen=True, slots=True)
class _Metric:
    """One number of the run, under the first of its keys that was logged."""

    label: str
    keys: tuple[str, ...]
    text: Callable[[float], str] = number
    note: Callable[[Snapshot], str] = lambda _: ""


def _longest(snapshot: Snapshot) -> str:
    longest = snapshot.story.latest.get("rollout/response_len/max")
    return "" if longest is None else f"max {number(longest)}"


def _usual_step(snapshot: Snapshot) -> str:
    points = snapshot.story.series.get("perf/step_time")
    earlier = [y for _, y in points.finite()[1:-1]] if points else []
    if len(earlier) < 3:
        return ""
    low, high = own_scale(earlier) or (0.0, 0.0)
    return f"usual {duration(low)}–{duration(high)}"


_METRICS = (
    _Metric("reward", ("rollout/raw_reward", "rollout/rewards")),
    _Metric("loss", ("train/loss",)),
    _Metric("grad norm", ("train/grad_norm",)),
    _Metric("kl", ("train/kl_loss", "train/ppo_kl")),
    _Metric("step time", ("perf/step_time",), duration, _usual_step),
    _Metric("tokens/s", ("perf/tokens_per_gpu_per_sec",)),
    _Metric("length", ("rollout/response_len/mean",), number, _longest),
    _Metric("truncated", ("rollout/truncated_ratio",), percent),
)


def title(snapshot: Snapshot, look: Look) -> str:
    progress = snapshot.story.progress
    parts = ["Steps"]
    if snapshot.story.step is not None:
        parts.append(f"step {grouped(snapshot.story.step)}")
    if progress is not None:
        parts.append(ago(snapshot.now - progress.at))
    return drawn_text(f" {glyphs.DOT} ".join(parts), look)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    if not snapshot.story.latest and snapshot.story.rollout is None:
        return drawn(_before_first(snapshot, width), width, height, look)
    phases = packed([part for _, part in _phases(snapshot)], width, f" {glyphs.DOT} ")
    first = (*((phases,) if phases else ()), *_bar(snapshot, width), *_nan(snapshot))
    last = _last(snapshot, width)
    body = _metrics(snapshot, width, height - len(first) - len(last))
    return drawn((*first, *body, *last), width, height, look)


def summary(snapshot: Snapshot, width: int, look: Look) -> Row:
    label = cell("Steps", 8, Role.LABEL)
    story = snapshot.story
    said = [
        Part(rank, ((Span(f"{metric.label} ", Role.LABEL), _value(metric, story)),))
        for rank, metric in enumerate(_METRICS[:4])
        if _key(metric, story)
    ]
    nothing = Part(0, () if said else (words("no rollout yet", Role.MUTED),))
    return drawn_row((label, *packed((*said, nothing), width - 8)), width, look)


def _phases(snapshot: Snapshot) -> tuple[tuple[str, Part], ...]:
    """Each phase with its last duration, and the usual where they differ; the open one runs."""
    story, opened = snapshot.story, snapshot.story.phase
    known = [n for n in story.durations if n not in _OUTER and not (opened and n == opened.name)]
    longest_first = sorted(known, key=lambda name: -_last_s(story, name))
    parts = [(name, Part(1 + i, _done(story, name))) for i, name in enumerate(longest_first)]
    if opened is not None:
        row = (Span(f"{glyphs.SELECTED} ", Role.BUSY), *header.phase_row(snapshot, opened))
        parts.append((opened.name, Part(0, (row,))))
    return tuple(sorted(parts, key=lambda named: _place(named[0])))


def _place(name: str) -> int:
    return _ORDER.index(name) if name in _ORDER else len(_ORDER)


def _last_s(story: Story, name: str) -> float:
    return story.durations[name].samples_s[-1] if story.durations[name].samples_s else 0.0


def _done(story: Story, name: str) -> tuple[Row, ...]:
    last, usual = _last_s(story, name), story.durations[name].median_s()
    short: Row = (Span(f"{harmless(name)} ", Role.MUTED), Span(duration(last), Role.VALUE))
    if usual is None or abs(last - usual) <= max(1.0, 0.25 * usual):
        return (short,)
    return ((*short, Span(f" (usual {duration(usual)})", Role.MUTED)), short)


def _bar(snapshot: Snapshot, width: int) -> tuple[Row, ...]:
    seen = snapshot.story.bar
    if seen is None or seen.total <= 0:
        return ()
    label = words(f"{harmless(seen.name)}  ", Role.LABEL)
    count = words(f"{grouped(seen.done)}/{grouped(seen.total)}", Role.VALUE)
    old = snapshot.now - seen.moved_at
    is_open = seen.done < seen.total and snapshot.story.phase is not None
    late = words(f"moved {ago(old)}", Role.WARNING) if is_open and old > _STILL_S else ()
    end = joined((count, late), "  ")
    room = min(60, width - row_width(label) - row_width(end) - 2)
    drawing = bar(seen.done / seen.total, room) if room >= _CHART_MIN else ()
    return ((*label, *joined((drawing, end), "  ")),)


def _nan(snapshot: Snapshot) -> tuple[Row, ...]:
    bad = snapshot.story.non_finite
    if bad is None:
        return ()
    count = "step" if bad.key.startswith("train/") else "rollout"
    text = f"{glyphs.BAD} {harmless(bad.key)} is {harmless(bad.value)} since {count} {bad.number}"
    told = f", {ago(snapshot.now - bad.at)}"
    return ((Span(text, Role.BAD), Span(told, Role.MUTED)),)


def _metrics(snapshot: Snapshot, width: int, room: int) -> tuple[Row, ...]:
    """A row each, and what has no row of its own packed into the last."""
    logged = [metric for metric in _METRICS if _key(metric, snapshot.story)]
    if len(logged) <= room:
        return tuple(_metric_row(snapshot, metric, width) for metric in logged)
    if room <= 0:
        return ()
    alone, together = logged[: room - 1], logged[room - 1 :]
    parts = [Part(rank, _packed_forms(snapshot, metric)) for rank, metric in enumerate(together)]
    return (
        *(_metric_row(snapshot, metric, width) for metric in alone),
        packed(parts, width),
    )


def _packed_forms(snapshot: Snapshot, metric: _Metric) -> tuple[Row, ...]:
    short = (Span(f"{metric.label} ", Role.LABEL), _value(metric, snapshot.story))
    note = metric.note(snapshot)
    return ((*short, Span(f" ({note})", Role.MUTED)), short) if note else (short,)


def _metric_row(snapshot: Snapshot, metric: _Metric, width: int) -> Row:
    story = snapshot.story
    value = _value(metric, story)
    series = story.series.get(_key(metric, story), Series())
    note = metric.note(snapshot) or _trend(series.points, metric)
    said = (
        cell(metric.label, _LABEL, Role.LABEL),
        cell(value.text, _VALUE, value.role, right=True),
    )
    room = width - _LABEL - _VALUE - _TREND - 4
    if not series.points or room < _CHART_MIN:
        return spread(said, words(note, Role.MUTED), width) if note else said
    values = tuple(y for _, y in series.points)
    chart = sparkline(in_order(values, room, Pool.MEAN), own_scale(values))
    return joined((said, (cell(note, _TREND, Role.MUTED),), words(chart, Role.CHART)), "  ")


def _key(metric: _Metric, story: Story) -> str:
    return next((key for key in metric.keys if key in story.latest), "")


def _value(metric: _Metric, story: Story) -> Span:
    value = story.latest[_key(metric, story)]
    if math.isfinite(value):
        return Span(metric.text(value), Role.STRONG)
    return Span(f"{glyphs.BAD} {number(value)}", Role.BAD)


def _trend(points: tuple[tuple[float, float], ...], metric: _Metric) -> str:
    """Change over ten, by the last points; one that is nothing beside the values is none."""
    recent = points[-TREND_POINTS:]
    each = slope(recent)
    if each is None or not all(math.isfinite(y) for _, y in recent):
        return ""
    typical = sum(abs(y) / len(recent) for _, y in recent)
    if abs(each) * 10 < 0.01 * typical:
        return f"{glyphs.LEVEL} steady"
    text = rough if metric.text is number else metric.text
    return f"{glyphs.UP if each > 0 else glyphs.DOWN} {text(abs(each) * 10)} per 10"


def _last(snapshot: Snapshot, width: int) -> tuple[Row, ...]:
    """Evaluation, weights, how the step compares."""
    story = snapshot.story
    evals = [
        (
            Span(f"eval {harmless(name)} ", Role.LABEL),
            Span(number(score), Role.VALUE),
            Span(f" at {grouped(rollout)}", Role.MUTED),
        )
        for name, score, rollout in story.evals
    ]
    weights = story.latest.get("rollout/weight_version/max")
    rate = story.latest.get("train/lr-pg_0")
    parts = (
        *(Part(i, (row,)) for i, row in enumerate(evals)),
        Part(20, (_pair("weights", f"v{grouped(weights)}"),) if weights is not None else ()),
        Part(30, (_pair("lr", number(rate)),) if rate is not None else ()),
    )
    row = packed(parts, width)
    return (row,) if row else ()


def _pair(label: str, value: str) -> Row:
    return (Span(f"{label} ", Role.LABEL), Span(value, Role.VALUE))


def _before_first(snapshot: Snapshot, width: int) -> tuple[Row, ...]:
    """What start-up has shown so far."""
    story = snapshot.story
    said: list[tuple[str, Role]] = []
    if story.started_at is not None:
        said.append((f"no rollout yet, launched {ago(snapshot.now - story.started_at)}", Role.TEXT))
    else:
        said.append(("no rollout seen yet", Role.TEXT))
    for load in story.loads:
        role = Role.GOOD if load.result == "loaded" else Role.WARNING
        of = f" of iter {load.iteration}" if load.iteration is not None else ""
        why = f": {load.detail}" if load.detail else ""
        said.append((harmless(f"{load.part}{of} {load.result}{why}"), role))
    ready = sum(1 for engine in story.engines if engine.ready_at)
    if story.engines:
        said.append((f"{ready} of {counted(len(story.engines), 'engine')} ready", Role.TEXT))
    if story.router_url:
        said.append((f"router at {harmless(story.router_url)}", Role.TEXT))
    if story.progress is not None:
        told = f"last sign {ago(snapshot.now - story.progress.at)}: {harmless(story.progress.what)}"
        said.append((told, Role.MUTED))
    return tuple(words(line, role) for text, role in said for line in wrapped(text, width))
