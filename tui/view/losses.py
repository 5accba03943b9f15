"""What became of a run while nobody watched: each loss with what is known of it."""

from __future__ import annotations

from collections.abc import Sequence

from tui.model.loss import Loss
from tui.model.text import harmless
from tui.view import glyphs
from tui.view.compose import cell, drawn, words, wrapped
from tui.view.numbers import day_and_time
from tui.view.rows import Look, Role, Row

_LABEL = 12


def rows(losses: Sequence[Loss], now: float, width: int, look: Look) -> tuple[Row, ...]:
    """The newest first."""
    out: list[Row] = []
    for loss in reversed(losses):
        until = (
            "now" if loss.until_at is None else day_and_time(loss.until_at, now, look.utc_offset_s)
        )
        out += _paragraph(f"{glyphs.WARNING} lost", loss.line, Role.STRONG, width)
        span = f"{day_and_time(loss.from_at, now, look.utc_offset_s)} to {until}"
        out += _paragraph("", span, Role.MUTED, width)
        for line in loss.evidence:
            out += _paragraph("", line, Role.TEXT, width)
    return drawn(out, width, len(out), look)


def _paragraph(label: str, text: str, role: Role, width: int) -> list[Row]:
    lines = wrapped(harmless(text), max(20, width - _LABEL)) or ("",)
    return [
        (cell(label if i == 0 else "", _LABEL, Role.LABEL), *words(line, role))
        for i, line in enumerate(lines)
    ]
