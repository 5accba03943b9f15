"""The keys worth knowing, and what milepost itself costs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.view.compose import GAP, Part, drawn_row, packed, spread
from tui.view.numbers import grouped
from tui.view.rows import Look, Role, Row, Span, row_width

_WIDE = 100
"""From here on what does not fit goes before a label is shortened."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Hint:
    """A key and what it does."""

    key: str
    label: str
    short: str = ""
    """The label where there is little room; empty: the same."""
    rank: int = 0
    """The lowest stays longest."""


def row(
    hints: Sequence[Hint],
    width: int,
    look: Look,
    *,
    cpu_ratio: float | None = None,
    resident_bytes: int | None = None,
) -> Row:
    """The hints in their order, as many as fit."""
    cost = _cost(cpu_ratio, resident_bytes) if width >= 70 else ()
    room = width - (row_width(cost) + 3 if cost else 0)
    is_wide = width >= _WIDE
    parts = [Part(hint.rank, _forms(hint)[: 1 if is_wide else 2]) for hint in hints]
    told = packed(parts, max(0, room - 1), GAP if is_wide else "  ")
    return drawn_row(spread((Span(" "), *told), cost, width), width, look)


def _forms(hint: Hint) -> tuple[Row, ...]:
    labels = (hint.label, hint.short) if hint.short else (hint.label,)
    return tuple((Span(hint.key, Role.KEY), Span(f" {label}", Role.MUTED)) for label in labels)


def _cost(cpu_ratio: float | None, resident_bytes: int | None) -> Row:
    said = []
    if cpu_ratio is not None:
        said.append(f"{cpu_ratio * 100:.1f} %")
    if resident_bytes is not None:
        said.append(f"{grouped(resident_bytes / 2**20)} MiB")
    return (Span(f"{'  '.join(said)} ", Role.MUTED),) if said else ()
