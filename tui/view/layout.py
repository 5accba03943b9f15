"""Where the panes go on a terminal of a given size, as a frozen value.

- wide: all six panes, as on a desk.
- medium: steps and GPU, beside each other or stacked; the rest a line each, one pane open below.
- narrow: a line each, one pane open below.
- tiny: a line each, and nothing else.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Pane(StrEnum):
    """The panes, in the order of their digits."""

    GPU = "gpu"
    STEPS = "steps"
    ENGINES = "engines"
    CHECKPOINTS = "checkpoints"
    ALERTS = "alerts"
    LOG = "log"


class Shape(StrEnum):
    """How much room there is."""

    WIDE = "wide"
    MEDIUM = "medium"
    NARROW = "narrow"
    TINY = "tiny"
    ZOOMED = "zoomed"


@dataclass(frozen=True, slots=True, kw_only=True)
class Region:
    """Cells from the top left corner; a pane's border is inside."""

    x: int
    y: int
    width: int
    height: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Layout:
    """Regions never overlap and never leave the terminal."""

    shape: Shape
    header: Region
    footer: Region | None
    panes: tuple[tuple[Pane, Region], ...] = ()
    """Panes with their border, from top to bottom."""
    summaries: tuple[tuple[Pane, int], ...] = ()
    """Panes that are one line, and its row."""
    open_pane: Pane | None = None
    """The pane that took the free room, where only one can."""

    def region(self, pane: Pane) -> Region | None:
        """Where the pane is, None when it is a line or not shown."""
        return next((region for name, region in self.panes if name is pane), None)


_IN_LINES = (Pane.STEPS, Pane.GPU, Pane.ENGINES, Pane.CHECKPOINTS, Pane.ALERTS)
"""Order of the summary lines: the four questions, then what is wrong."""
_PANE_MIN = 3
"""A border and one row."""


def arranged(
    width: int, height: int, *, open_pane: Pane | None = None, zoomed: Pane | None = None
) -> Layout:
    """The layout for this size. `open_pane` is the one asked for where not all can be open."""
    width, height = max(1, width), max(1, height)
    if zoomed is not None and height >= _PANE_MIN + 2:
        return _zoomed(width, height, zoomed)
    if width >= 120 and height >= 36:
        return _wide(width, height)
    if width >= 60 and height >= (30 if width >= 100 else 40):
        return _medium(width, height, open_pane)
    if width >= 50 and height >= 14:
        return _narrow(width, height, open_pane or Pane.STEPS)
    return _tiny(width, height)


def _band(width: int, y: int, height: int) -> Region:
    return Region(x=0, y=y, width=width, height=height)


def _footer(width: int, height: int) -> Region:
    return _band(width, height - 1, 1)


def _zoomed(width: int, height: int, pane: Pane) -> Layout:
    return Layout(
        shape=Shape.ZOOMED,
        header=_band(width, 0, 1),
        footer=_footer(width, height),
        panes=((pane, _band(width, 1, height - 2)),),
        open_pane=pane,
    )


def _beside(
    left: Pane, right: Pane, width: int, y: int, height: int
) -> tuple[tuple[Pane, Region], tuple[Pane, Region]]:
    cut = min(90, max(48, width * 35 // 100))
    return (
        (left, Region(x=0, y=y, width=cut, height=height)),
        (right, Region(x=cut, y=y, width=width - cut, height=height)),
    )


def _wide(width: int, height: int) -> Layout:
    is_tall = height >= 46
    top, middle, alerts = (13, 8, 5) if is_tall else (11, 6, 4)
    at_middle, at_alerts = 2 + top, 2 + top + middle
    at_log = at_alerts + alerts
    return Layout(
        shape=Shape.WIDE,
        header=_band(width, 0, 2),
        footer=_footer(width, height),
        panes=(
            *_beside(Pane.GPU, Pane.STEPS, width, 2, top),
            *_beside(Pane.ENGINES, Pane.CHECKPOINTS, width, at_middle, middle),
            (Pane.ALERTS, _band(width, at_alerts, alerts)),
            (Pane.LOG, _band(width, at_log, height - 1 - at_log)),
        ),
    )


def _medium(width: int, height: int, asked: Pane | None) -> Layout:
    opened = asked if asked not in (None, Pane.STEPS, Pane.GPU) else Pane.LOG
    if width >= 100:
        fixed = _beside(Pane.GPU, Pane.STEPS, width, 2, 13)
        y = 15
    else:
        fixed = ((Pane.STEPS, _band(width, 2, 11)), (Pane.GPU, _band(width, 13, 11)))
        y = 24
    lines = [p for p in _IN_LINES if p is not opened and p not in (Pane.STEPS, Pane.GPU)]
    below = y + len(lines)
    return Layout(
        shape=Shape.MEDIUM,
        header=_band(width, 0, 2),
        footer=_footer(width, height),
        panes=(*fixed, (opened, _band(width, below, height - 1 - below))),
        summaries=tuple((pane, y + i) for i, pane in enumerate(lines)),
        open_pane=opened,
    )


def _narrow(width: int, height: int, opened: Pane) -> Layout:
    lines = [pane for pane in _IN_LINES if pane is not opened]
    head = 1 if height < 30 else 2
    below = head + len(lines)
    return Layout(
        shape=Shape.NARROW,
        header=_band(width, 0, head),
        footer=_footer(width, height),
        panes=((opened, _band(width, below, height - 1 - below)),),
        summaries=tuple((pane, head + i) for i, pane in enumerate(lines)),
        open_pane=opened,
    )


def _tiny(width: int, height: int) -> Layout:
    """The four answers first, the keys last, the second header row and the log if there is room."""
    lines = (Pane.GPU, Pane.ENGINES, Pane.CHECKPOINTS, Pane.ALERTS, Pane.STEPS, Pane.LOG)
    has_footer = height >= 2
    head = 2 if height >= 2 + len(lines) + 1 else 1
    room = height - head - has_footer
    return Layout(
        shape=Shape.TINY,
        header=_band(width, 0, head),
        footer=_footer(width, height) if has_footer else None,
        summaries=tuple((pane, head + i) for i, pane in enumerate(lines[: max(0, room)])),
    )
