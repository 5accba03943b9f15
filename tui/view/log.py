"""The log's newest lines: time, source, text; filtered and scrolled as the person asks."""

from __future__ import annotations

from collections.abc import Sequence

from tui.model.progress import LineKind, LogLine
from tui.model.snapshot import Snapshot
from tui.model.text import cell_width, harmless
from tui.view import glyphs
from tui.view.compose import cell, drawn, drawn_row, drawn_text, why_not, words
from tui.view.numbers import ago, grouped, percent, size, time_of_day
from tui.view.rows import Look, Role, Row, Span

_ROLES = {
    LineKind.PLAIN: Role.TEXT,
    LineKind.METRIC: Role.VALUE,
    LineKind.PHASE: Role.TEXT,
    LineKind.BAR: Role.MUTED,
    LineKind.CHECKPOINT: Role.GOOD,
    LineKind.ENGINE: Role.MUTED,
    LineKind.HTTP: Role.MUTED,
    LineKind.WARNING: Role.WARNING,
    LineKind.ERROR: Role.BAD,
    LineKind.MARK: Role.LABEL,
}
_SOURCE_LIMIT = 16
_QUIET_S = 60.0


def title(snapshot: Snapshot, look: Look, *, scroll: int = 0, query: str = "") -> str:
    log = snapshot.log
    if not log.path:
        return "Log"
    parts = ["Log", harmless(log.path), size(log.size_bytes)]
    missed = snapshot.missed.get("log")
    if missed is not None:
        parts.append(why_not(missed, 40))
    elif log.fault is not None:
        parts.append(why_not(log.fault, 40))
    elif log.history_ratio < 1:
        parts.append(f"history {percent(max(0.0, log.history_ratio))} read")
    if log.written_at and snapshot.now - log.written_at > _QUIET_S:
        parts.append(f"written {ago(snapshot.now - log.written_at)}")
    parts.append(f"{grouped(scroll)} lines up" if scroll > 0 else "following")
    if query.strip():
        parts.append(f"filter: {harmless(query.strip())}")
    return drawn_text(f" {glyphs.DOT} ".join(parts), look)


def rows(
    lines: Sequence[LogLine],
    width: int,
    height: int,
    look: Look,
    *,
    scroll: int = 0,
    query: str = "",
) -> tuple[Row, ...]:
    """Matching lines, oldest first; `scroll` of them, the newest, lie below the last row."""
    if height <= 0:
        return ()
    kept = matching(lines, query)
    end = max(min(len(kept), height), len(kept) - max(0, scroll))
    shown = kept[max(0, end - height) : end]
    if not shown:
        told = "no line matches the filter" if lines else "no line yet"
        return drawn((words(told, Role.MUTED),), width, height, look)
    source = min(_SOURCE_LIMIT, max(cell_width(harmless(line.source)) for line in shown))
    return drawn((_row(line, width, source, look) for line in shown), width, height, look)


def summary(snapshot: Snapshot, width: int, look: Look) -> Row:
    label = cell("Log", 8, Role.LABEL)
    if snapshot.log.fault is not None:
        told = f"{glyphs.UNKNOWN} {why_not(snapshot.log.fault)}"
        return drawn_row((label, Span(told, Role.MUTED)), width, look)
    if not snapshot.lines:
        return drawn_row((label, Span("no line yet", Role.MUTED)), width, look)
    last = snapshot.lines[-1]
    when = Span(f"{ago(snapshot.now - last.at)}  ", Role.MUTED)
    return drawn_row((label, when, Span(harmless(last.text), _ROLES[last.kind])), width, look)


def matching(lines: Sequence[LogLine], query: str) -> Sequence[LogLine]:
    """Lines that hold the query's text in any case, of one of its kinds, named as `kind:error`."""
    kinds = {word[5:].lower() for word in query.split() if word.lower().startswith("kind:")}
    text = " ".join(w for w in query.split() if not w.lower().startswith("kind:")).casefold()
    if not kinds and not text:
        return lines
    return tuple(
        line
        for line in lines
        if (not kinds or line.kind.value in kinds)
        and (text in line.text.casefold() or text in line.source.casefold())
    )


def scroll_to_error(lines: Sequence[LogLine], query: str = "") -> int | None:
    """How far to scroll for the newest error to be the last row, else the newest warning."""
    kept = matching(lines, query)
    for kind in (LineKind.ERROR, LineKind.WARNING):
        for below, line in enumerate(reversed(kept)):
            if line.kind is kind:
                return below
    return None


def _row(line: LogLine, width: int, source: int, look: Look) -> Row:
    time = time_of_day(line.at, look.utc_offset_s) if line.at > 0 else " " * 8
    again = f"  {glyphs.NOT_FINITE}{grouped(line.repeated + 1)}" if line.repeated > 0 else ""
    role = _ROLES[line.kind]
    lead: Row = ()
    if width >= 60:
        lead = (
            Span(f"{time}  ", Role.MUTED),
            cell(harmless(line.source), source, Role.LABEL),
            Span("  "),
        )
    elif width >= 30:
        lead = (Span(f"{time} ", Role.MUTED),)
    room = width - sum(cell_width(span.text) for span in lead) - cell_width(again)
    text = harmless(line.text)
    if not again:
        return (*lead, Span(text, role))
    fitted_text = cell(text, max(0, min(room, cell_width(text))), role)
    return (*lead, fitted_text, Span(again, Role.MUTED))
