"""What a view makes: rows of spans, each a text and the role it plays. Colour is the app's matter.

A view module has three pure functions, all of them total: any snapshot, any width from 1 up.

- `title(snapshot, look) -> str`: for the pane's border; what, and the age that matters.
- `rows(snapshot, width, height, look) -> tuple[Row, ...]`: at most `height` rows, none wider than
  `width` cells.
- `summary(snapshot, width, look) -> Row`: the pane's answer in one line, for small screens.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tui.model.text import cell_width, fitted


class Role(StrEnum):
    """What a span says. A theme gives each a colour; none relies on colour alone."""

    TEXT = "text"
    LABEL = "label"
    """The name of a value."""
    VALUE = "value"
    STRONG = "strong"
    """The value the eye should land on first."""
    MUTED = "muted"
    """Ages, units, what is not fresh."""
    GOOD = "good"
    BUSY = "busy"
    PAUSED = "paused"
    WARNING = "warning"
    BAD = "bad"
    """Act now. Rare."""
    CHART = "chart"
    BAR = "bar"
    """The filled part of a bar."""
    BAR_CACHE = "bar-cache"
    """The part of the memory bar that can be taken back."""
    BAR_EMPTY = "bar-empty"
    KEY = "key"
    """A key that can be pressed."""
    SELECTED = "selected"


class Order(StrEnum):
    """By which of its columns the table of checkpoints is sorted, by that column's name."""

    ITERATION = "iter"
    AGE = "age"
    SIZE = "size"
    STATE = "state"
    CHECKED = "checked"


@dataclass(frozen=True, slots=True)
class Span:
    """A piece of text in one role."""

    text: str
    role: Role = Role.TEXT


Row = tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How to draw: what the terminal can show, and what the person chose."""

    ascii: bool = False
    """Only ASCII: glyphs, bars and charts have twins."""
    selected_iteration: int | None = None
    """The checkpoint under the cursor."""
    order: Order = Order.ITERATION
    """Of the checkpoints."""
    selected_run: str | None = None
    """The handle of the run under the cursor."""
    utc_offset_s: int = 0
    """What local time is ahead of UTC, for clocks of the day."""


def row_width(row: Row) -> int:
    """Cells a row takes."""
    return sum(cell_width(span.text) for span in row)


def fitted_row(row: Row, width: int) -> Row:
    """The row cut to `width` cells; never padded."""
    left, out = width, []
    for span in row:
        if left <= 0:
            break
        used = cell_width(span.text)
        if used > left:
            out.append(Span(fitted(span.text, left), span.role))
            break
        out.append(span)
        left -= used
    return tuple(out)


def plain(row: Row) -> str:
    """The row without roles: what a test or a log reads."""
    return "".join(span.text for span in row)
