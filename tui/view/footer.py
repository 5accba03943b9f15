"""The keys worth knowing, and what milepost itself costs."""

from __future__ import annotations

from collections.abc import Sequence

from tui.view.compose import drawn_row, spread
from tui.view.numbers import grouped
from tui.view.rows import Look, Role, Row, Span, row_width

_GAP = "   "


def row(
    keys: Sequence[tuple[str, str]],
    width: int,
    look: Look,
    *,
    cpu_ratio: float | None = None,
    resident_bytes: int | None = None,
) -> Row:
    """(key, label) pairs, the most important first: those at the end give way."""
    cost = _cost(cpu_ratio, resident_bytes) if width >= 70 else ()
    room = width - (row_width(cost) + 3 if cost else 0)
    out: list[Span] = [Span(" ")]
    used = 1
    gap = _GAP if width >= 100 else "  "
    for key, label in keys:
        hint = (Span(key, Role.KEY), Span(f" {label}", Role.MUTED))
        lead = len(gap) if used > 1 else 0
        if used + lead + row_width(hint) > room:
            break
        out += [*((Span(gap),) if lead else ()), *hint]
        used += lead + row_width(hint)
    return drawn_row(spread(tuple(out), cost, width), width, look)


def _cost(cpu_ratio: float | None, resident_bytes: int | None) -> Row:
    said = []
    if cpu_ratio is not None:
        said.append(f"{cpu_ratio * 100:.1f} %")
    if resident_bytes is not None:
        said.append(f"{grouped(resident_bytes / 2**20)} MiB")
    return (Span(f"{'  '.join(said)} ", Role.MUTED),) if said else ()
