"""The box around a pane, as rows: its title may change each second, so it is drawn like a row."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.text import cell_width, fitted
from tui.view.glyphs import DOT, ascii_twin
from tui.view.rows import Role, Row, Span, fitted_row, row_width

FRAME_CELLS = 4
"""What a box takes of a pane's width: its two sides, each with a blank."""
FRAME_LINES = 2


@dataclass(frozen=True, slots=True)
class Box:
    """The signs and the ink of one kind of box."""

    corners: str
    """Top left, top right, bottom left, bottom right."""
    across: str
    down: str
    ink: Role
    title: Role


_LIGHT = Box("┌┐└┘", "─", "│", Role.MUTED, Role.VALUE)
_HEAVY = Box("┏┓┗┛", "━", "┃", Role.KEY, Role.STRONG)
_ASCII = Box("++++", "-", "|", Role.MUTED, Role.VALUE)
_ASCII_HEAVY = Box("####", "=", "#", Role.KEY, Role.STRONG)


def box(*, active: bool, in_ascii: bool) -> Box:
    """The box of a pane; that of the active one differs in shape, not only in colour."""
    if in_ascii:
        return _ASCII_HEAVY if active else _ASCII
    return _HEAVY if active else _LIGHT


def parted(title: str, *, in_ascii: bool) -> tuple[str, str]:
    """The name at the head of a view's title, and the rest of it."""
    name, _, rest = title.partition(f" {ascii_twin(DOT) if in_ascii else DOT} ")
    return name, rest


def framed(
    title: tuple[str, str], content: tuple[Row, ...], width: int, height: int, look: Box, key: str
) -> tuple[Row, ...]:
    """The content in a box of that size: title's first part left after the key, second right."""
    inner = max(0, width - FRAME_CELLS)
    side = Span(look.down, look.ink)
    lines = max(0, height - FRAME_LINES)
    shown = (*content[:lines], *((),) * (lines - len(content)))
    foot = Span(look.corners[2] + look.across * max(0, width - 2) + look.corners[3], look.ink)
    return (_head(title, width, look, key), *(_line(side, row, inner) for row in shown), (foot,))


def _line(side: Span, row: Row, inner: int) -> Row:
    kept = fitted_row(row, inner)
    return (side, Span(" "), *kept, Span(" " * (inner - row_width(kept) + 1)), side)


def _head(title: tuple[str, str], width: int, look: Box, key: str) -> Row:
    """`┌─ 1 GPU ───── NVIDIA GB10 ─┐`; the right part gives way first."""
    label = f" {key} " if key else " "
    room = max(0, width - 4 - len(label) - 1)
    name = fitted(title[0], room)
    room -= cell_width(name)
    rest = f" {fitted(title[1], room - 3)} " if title[1] and room > 5 else ""
    return fitted_row(
        (
            Span(look.corners[0] + look.across, look.ink),
            Span(label, Role.KEY),
            Span(f"{name} ", look.title),
            Span(look.across * (room - cell_width(rest)), look.ink),
            *((Span(rest, Role.LABEL),) if rest else ()),
            Span(look.across + look.corners[1], look.ink),
        ),
        width,
    )
