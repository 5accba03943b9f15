"""What changed between two pictures of a pane, in cells: only that is sent to the terminal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import zip_longest

from textual.geometry import Region

from tui.model.text import cell_width
from tui.view.rows import Role, Row

_BLANK = (" ", Role.TEXT)


def changed(before: Sequence[Row], after: Sequence[Row]) -> Iterator[Region]:
    """The changed part of each changed line: from its first cell that differs to its last."""
    for y, (old, new) in enumerate(zip_longest(before, after, fillvalue=())):
        if old == new:
            continue
        pairs = zip_longest(_cells(old), _cells(new), fillvalue=_BLANK)
        differing = [x for x, (was, now) in enumerate(pairs) if was != now]
        if differing:
            yield Region(differing[0], y, differing[-1] - differing[0] + 1, 1)


def _cells(row: Row) -> list[tuple[str, Role]]:
    """One entry a cell: a wide character is in both of its own, a mark is with what it marks."""
    cells: list[tuple[str, Role]] = []
    for span in row:
        for char in span.text:
            width = cell_width(char)
            if width:
                cells += [(char, span.role)] * width
            elif cells:
                cells[-1] = (cells[-1][0] + char, span.role)
    return cells
