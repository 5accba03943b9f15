"""Rows out of parts: what fits, what gives way, and what a terminal may be sent."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice

from tui.model.reading import Unknown
from tui.model.text import cell_width, fitted, harmless, padded
from tui.view.glyphs import ascii_twin
from tui.view.rows import Look, Role, Row, Span, fitted_row, row_width

GAP = "   "


@dataclass(frozen=True, slots=True)
class Part:
    """A piece of a row that can be said in several lengths, or left out."""

    rank: int
    """0 stays longest."""
    forms: tuple[Row, ...]
    """Longest first; none when there is nothing to say."""
    filler: bool = False
    """Only where the others have all the room they can use."""


def words(text: str, role: Role = Role.TEXT) -> Row:
    """A row of one span."""
    return (Span(text, role),)


def cell(text: str, width: int, role: Role = Role.TEXT, *, right: bool = False) -> Span:
    """A span of exactly `width` cells, for columns that align."""
    return Span(padded(text, width, right=right), role)


def packed(parts: Sequence[Part], width: int, gap: str = GAP) -> Row:
    """The parts in their order: those of low rank fit first, then each grows while there is room.

    The first by rank is always there, so that something is said at any width.
    """
    ranked = sorted((i for i, part in enumerate(parts) if part.forms), key=lambda i: parts[i].rank)
    chosen: dict[int, Row] = {}
    for fillers in (False, True):
        turn = [i for i in ranked if parts[i].filler is fillers]
        for i in turn:
            shortest = parts[i].forms[-1]
            if not chosen or _width({**chosen, i: shortest}, gap) <= width:
                chosen[i] = shortest
        for i in turn:
            if i in chosen:
                fitting = (f for f in parts[i].forms if _width({**chosen, i: f}, gap) <= width)
                chosen[i] = next(fitting, chosen[i])
    return joined((chosen[i] for i in sorted(chosen)), gap)


def _width(chosen: dict[int, Row], gap: str) -> int:
    return sum(map(row_width, chosen.values())) + len(gap) * (len(chosen) - 1)


def joined(rows: Iterable[Row], gap: str = GAP) -> Row:
    """The rows one after the other, with a gap between them; empty ones left out."""
    out: list[Span] = []
    for row in rows:
        if row:
            out.extend((*((Span(gap),) if out else ()), *row))
    return tuple(out)


def spread(left: Row, right: Row, width: int) -> Row:
    """Left and right at their ends; the right one is left out when they would touch."""
    room = width - row_width(left) - row_width(right)
    if not right or room < (2 if left else 0):
        return left
    return (*left, Span(" " * room), *right)


def wrapped(text: str, width: int) -> tuple[str, ...]:
    """The text in lines of at most `width` cells, broken at blanks where there are any."""
    if width <= 0:
        return ()
    lines: list[str] = []
    line = ""
    for word in text.split():
        if line and cell_width(line) + 1 + cell_width(word) <= width:
            line = f"{line} {word}"
            continue
        if line:
            lines.append(line)
        *full, line = _pieces(word, width)
        lines.extend(full)
    return (*lines, line) if line else tuple(lines)


def _pieces(word: str, width: int) -> list[str]:
    pieces = [""]
    for char in word:
        if pieces[-1] and cell_width(pieces[-1]) + cell_width(char) > width:
            pieces.append("")
        pieces[-1] += char
    return pieces


def why_not(fault: Unknown, width: int = 200) -> str:
    """Why there is no value, as short as it was said."""
    return fitted(harmless(fault.reason) or fault.why.value, width)


def drawn(rows: Iterable[Row], width: int, height: int, look: Look) -> tuple[Row, ...]:
    """The rows as they may be painted: at most `height` of them, none wider than `width` cells."""
    cut = (fitted_row(row, width) for row in islice(rows, max(0, height)))
    return tuple(in_ascii(row) for row in cut) if look.ascii else tuple(cut)


def drawn_row(row: Row, width: int, look: Look) -> Row:
    """One row as it may be painted."""
    return next(iter(drawn((row,), width, 1, look)))


def drawn_text(text: str, look: Look) -> str:
    """A title as it may be painted."""
    return ascii_twin(text) if look.ascii else text


def in_ascii(row: Row) -> Row:
    """The row with every sign that is not ASCII replaced."""
    return tuple(Span(ascii_twin(span.text), span.role) for span in row)
