"""The last hours of the box: what a pane shows that has the room."""

from __future__ import annotations

from collections.abc import Callable

from tui.model.gpu import Gpu
from tui.model.series import LONG, LONG_SPAN_S, Series
from tui.model.snapshot import Snapshot
from tui.view.chart import Pool, over_time, sparkline
from tui.view.compose import cell, words
from tui.view.numbers import gib, grouped, percent
from tui.view.rows import Role, Row, Span

_LABEL, _RANGE, _CHART_MIN = 8, 20, 12
_LEAST_S = 1200.0
"""Less than this the charts of the last minutes show already."""


def rows(snapshot: Snapshot, gpu: Gpu | None, width: int, room: int) -> tuple[Row, ...]:
    """A title and a chart for each quantity; nothing where there is no room or no past."""
    wanted: list[tuple[str, str, Callable[[float], str]]] = []
    if gpu is not None:
        key = f"gpu{gpu.index}."
        wanted += [
            ("util", f"{key}utilisation_ratio", percent),
            ("power", f"{key}power_w", lambda watt: f"{grouped(watt)} W"),
            ("temp", f"{key}temperature_c", lambda heat: f"{heat:.0f} °C"),
        ]
    wanted.append(("memory", "memory.available_bytes", lambda left: f"{gib(int(left))} left"))
    drawn = [
        _row(label, snapshot.history.get(key + LONG, Series()), text, snapshot.now, width)
        for label, key, text in wanted
    ]
    shown = [row for row in drawn if row]
    if not shown or len(shown) + 2 > room:
        return ()
    return ((), words("last 6 h, lowest to highest", Role.LABEL), *shown)


def _row(label: str, series: Series, text: Callable[[float], str], now: float, width: int) -> Row:
    seen = [value for at, value in series.finite() if at > now - LONG_SPAN_S]
    chart = width - _LABEL - _RANGE - 2
    if not seen or chart < _CHART_MIN or now - series.points[0][0] < _LEAST_S:
        return ()
    low, high = min(seen), max(seen)
    cells = over_time(series.points, end=now, span_s=LONG_SPAN_S, width=chart, pool=Pool.MEAN)
    drawing = sparkline(cells, (min(0.0, low), high or 1.0))
    return (
        cell(label, _LABEL, Role.LABEL),
        cell(f"{text(low)}–{text(high)}", _RANGE, Role.VALUE, right=True),
        Span("  ", Role.TEXT),
        *words(drawing, Role.CHART),
    )
