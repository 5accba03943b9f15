"""The signs a view draws with, and for each its ASCII twin of the same width.

Views write the Unicode sign; `tui.view.compose.drawn` puts the twin in its place on a terminal
that shows ASCII only, so that no view has two ways to draw.
"""

from __future__ import annotations

from tui.model.text import cell_width

OK = "●"
BUSY = "◐"
PAUSED = "○"
WARNING = "▲"
BAD = "✖"
UNKNOWN = "?"
SELECTED = "▶"
DONE = "✓"
"""A step that is behind us."""

UP = "↑"
"""A trend, or a value above the top of its chart."""
DOWN = "↓"
LEVEL = "→"
"""No trend; before advice: what follows from it."""
DOT = "·"
DASH = "–"
MARK = "┊"
"""A limit on a bar."""
NOT_FINITE = "×"
"""A nan or inf on a chart."""

BAR_FULL = "█"
BAR_CACHE = "▓"
BAR_EMPTY = "░"
LEVELS = "▁▂▃▄▅▆▇█"

_TWINS = {
    OK: "*",
    BUSY: "~",
    PAUSED: "o",
    WARNING: "!",
    BAD: "x",
    SELECTED: ">",
    DONE: "+",
    UP: "^",
    DOWN: "v",
    LEVEL: ">",
    DOT: "-",
    DASH: "-",
    MARK: "|",
    NOT_FINITE: "x",
    BAR_CACHE: "=",
    BAR_EMPTY: "-",
    **dict(zip(LEVELS, "_.:-=+*#", strict=True)),
    "…": ".",
    "°": " ",
    "“": '"',
    "”": '"',
    "’": "'",
}
_TWIN_TABLE = str.maketrans(_TWINS)


def ascii_twin(text: str) -> str:
    """The text in ASCII, as wide as before; what has no twin becomes question marks."""
    if text.isascii():
        return text
    twin = text.translate(_TWIN_TABLE)
    return "".join(c if c.isascii() else UNKNOWN * cell_width(c) for c in twin)
