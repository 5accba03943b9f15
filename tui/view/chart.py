"""Charts and bars of text in one style: a cell is a sign, and a change repaints a few bytes.

A missing sample is a blank, never a zero. A nan or inf has a sign of its own and leaves the rest
of the chart standing; a value far off its series' own scale is clipped, and marked as clipped.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from enum import Enum
from itertools import pairwise

from tui.model.series import quantile
from tui.view import glyphs
from tui.view.rows import Role, Row, Span

Cells = tuple[float | None, ...]
Scale = tuple[float, float]

_FEW = 8
"""Below this many samples none is called an outlier."""
_ENDLESS = 1e15
"""Not a time of any clock; nan is none either, it compares false."""


class Pool(Enum):
    """How samples that share a cell become one."""

    MEAN = "mean"
    MAX = "max"


def over_time(
    points: Sequence[tuple[float, float]], *, end: float, span_s: float, width: int, pool: Pool
) -> Cells:
    """The last `span_s` seconds before `end` in `width` cells.

    Cells begin at whole multiples of their length, so a chart stands still until a cell is full.
    """
    if width <= 0 or span_s <= 0 or not abs(end) < _ENDLESS:
        return ()
    cell_s = max(span_s / width, 1.5 * _usual_gap(points))
    first = math.floor(end / cell_s) - width + 1
    buckets: list[list[float]] = [[] for _ in range(width)]
    for x, y in points:
        index = math.floor(x / cell_s) - first if abs(x) < _ENDLESS else -1
        if 0 <= index < width:
            buckets[index].append(y)
    return tuple(_pooled(bucket, pool) for bucket in buckets)


def in_order(values: Sequence[float], width: int, pool: Pool) -> Cells:
    """All values in at most `width` cells, each cell the same number of values."""
    if width <= 0 or not values:
        return ()
    cells = min(width, len(values))
    bounds = [i * len(values) // cells for i in range(cells + 1)]
    return tuple(_pooled(values[a:b], pool) for a, b in pairwise(bounds))


def own_scale(values: Sequence[float]) -> Scale | None:
    """From lowest to highest of the finite values, far outliers left out; None without any."""
    finite = tuple(value for value in values if math.isfinite(value))
    if len(finite) >= _FEW:
        low, high = quantile(finite, 0.25), quantile(finite, 0.75)
        if low is not None and high is not None:
            reach = 3 * (high - low)
            finite = tuple(v for v in finite if low - reach <= v <= high + reach)
    return (min(finite), max(finite)) if finite else None


def slope(points: Sequence[tuple[float, float]]) -> float | None:
    """Change of y for one of x by least squares over the finite points; None below three."""
    finite = [(x, y) for x, y in points if math.isfinite(x) and math.isfinite(y)]
    if len(finite) < 3:
        return None
    count = len(finite)
    middle_x, middle_y = (sum(v / count for v in axis) for axis in zip(*finite, strict=True))
    spread = sum((x - middle_x) * (x - middle_x) for x, _ in finite)
    if not 0 < spread < math.inf:
        return None
    rise = sum((x - middle_x) * (y - middle_y) for x, y in finite) / spread
    return rise if math.isfinite(rise) else None


def sparkline(cells: Cells, scale: Scale | None) -> str:
    """One sign a cell."""
    return "".join(_sign(cell, scale) for cell in cells)


def bar(ratio: float, width: int, role: Role = Role.BAR) -> Row:
    """A filled and an empty part, `width` cells together."""
    share = min(1.0, max(0.0, ratio)) if math.isfinite(ratio) else 0.0
    full = round(share * max(0, width))
    return (
        Span(glyphs.BAR_FULL * full, role),
        Span(glyphs.BAR_EMPTY * (max(0, width) - full), Role.BAR_EMPTY),
    )


def _sign(value: float | None, scale: Scale | None) -> str:
    if value is None:
        return " "
    if scale is None or not math.isfinite(value):
        return glyphs.NOT_FINITE
    low, high = scale
    slack = (high - low) * 1e-6
    if value > high + slack:
        return glyphs.UP
    if value < low - slack:
        return glyphs.DOWN
    steps = len(glyphs.LEVELS)
    if not 0 < high - low < math.inf:
        return glyphs.LEVELS[steps // 2 - 1]
    share = min(1.0, max(0.0, (value - low) / (high - low)))
    return glyphs.LEVELS[min(steps - 1, int(share * steps))]


def _pooled(values: Sequence[float], pool: Pool) -> float | None:
    if not values:
        return None
    if not all(map(math.isfinite, values)):
        return math.nan
    return max(values) if pool is Pool.MAX else sum(v / len(values) for v in values)


def _usual_gap(points: Sequence[tuple[float, float]]) -> float:
    gaps = tuple(b[0] - a[0] for a, b in pairwise(points) if b[0] > a[0])
    usual = quantile(gaps, 0.5)
    return usual if usual is not None and math.isfinite(usual) else 0.0
