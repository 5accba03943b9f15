"""What a verify found, as rows: the result in one line, then everything that is wrong."""

from __future__ import annotations

from tui.checkpoints.verify import VerifyResult
from tui.model.checkpoint import Soundness
from tui.model.text import harmless
from tui.view import glyphs
from tui.view.compose import drawn, words, wrapped
from tui.view.numbers import age, counted, size
from tui.view.rows import Look, Role, Row, Span

_INDENT = 4


def rows(result: VerifyResult, width: int, look: Look) -> tuple[Row, ...]:
    """At most `width` cells wide; as many rows as there is to say."""
    glyph, word, role = _sign(result)
    seen = result.verification
    told = f"{counted(result.files, 'file')}, {size(result.total_bytes)}"
    if seen is not None:
        told += f", {age(seen.seconds)}"
    elif result.is_shallow:
        told += ", sizes and indexes only"
    out: list[Row] = [
        (
            Span(f"{glyph} ", role),
            Span(f"{word}  ", role),
            Span(harmless(result.path), Role.STRONG),
        ),
        *_indented(f"{result.subject.value}, {told}", width, Role.MUTED),
    ]
    for lines, line_role in (
        (result.faults, Role.BAD),
        (result.incomplete, Role.BAD),
        (result.numbers, Role.BAD),
        (result.unread, Role.WARNING),
        (result.notes, Role.MUTED),
    ):
        for line in lines:
            out += _indented(harmless(line), width, line_role)
    return drawn(out, width, len(out), look)


def _sign(result: VerifyResult) -> tuple[str, str, Role]:
    if result.is_cancelled:
        return glyphs.UNKNOWN, "cancelled", Role.WARNING
    if result.faults:
        return glyphs.BAD, "damaged", Role.BAD
    if result.incomplete:
        return glyphs.BAD, "not whole", Role.BAD
    if result.unread:
        return glyphs.UNKNOWN, "not all could be read", Role.WARNING
    if result.verification is None:
        return glyphs.OK, "nothing wrong at a glance", Role.GOOD
    match result.verification.soundness:
        case Soundness.NOT_FINITE:
            return glyphs.BAD, "sound, but the model is not finite", Role.BAD
        case Soundness.NO_SUMS:
            return glyphs.OK, "sound as far as it can be told: no checksums", Role.TEXT
        case Soundness.SOUND | Soundness.DAMAGED:
            return glyphs.OK, "sound", Role.GOOD


def _indented(line: str, width: int, role: Role) -> list[Row]:
    pieces = wrapped(line, max(8, width - _INDENT))
    return [(*words(" " * _INDENT), Span(piece, role)) for piece in pieces]
