"""What needs a look: what is done to the run, then alerts that stand, then those that cleared."""

from __future__ import annotations

from tui.model.snapshot import Alert, AlertRecord, Level, Snapshot
from tui.model.text import harmless
from tui.view import action, glyphs, states
from tui.view.compose import (
    Part,
    cell,
    drawn,
    drawn_row,
    drawn_text,
    joined,
    packed,
    spread,
    words,
    wrapped,
)
from tui.view.numbers import ago
from tui.view.rows import Look, Role, Row, Span, row_width

_CODE, _CODE_FROM = 22, 110


def title(snapshot: Snapshot, look: Look) -> str:
    standing = len(active(snapshot))
    parts = ["Alerts", f"{standing} now" if standing else "none now"]
    cleared = _cleared(snapshot)
    if cleared:
        parts.append(f"{len(cleared)} cleared")
    return drawn_text(f" {glyphs.DOT} ".join(parts), look)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    standing, cleared = active(snapshot), _cleared(snapshot)
    notes = snapshot.attachment.notes
    out = action.top_rows(snapshot, width)
    if not (out or standing or cleared or notes):
        return drawn((words("nothing to report", Role.MUTED),), width, height, look)
    for place, record in enumerate(standing):
        out += _standing(snapshot, record, width)
        if place == 0:
            out += _advice(record.alert, width)
    for record in cleared:
        out += _entry(snapshot, record, width, ("", Role.MUTED))
    for note in notes:
        out += _noted(note, width)
    return drawn(out, width, height, look)


def summary(snapshot: Snapshot, width: int, look: Look) -> Row:
    label = cell("Alerts", 8, Role.LABEL)
    acted, standing = action.summary_forms(snapshot), _standing_forms(snapshot)
    if acted:
        told = packed((Part(0, acted), Part(1, standing)), max(0, width - 8))
    else:
        told = standing[0] if standing else words("none", Role.MUTED)
    return drawn_row((label, *told), width, look)


def _standing_forms(snapshot: Snapshot) -> tuple[Row, ...]:
    """How many there are and the first of them, short how many."""
    standing = active(snapshot)
    if not standing:
        return ()
    top = standing[0].alert
    glyph, role = states.LEVEL[top.level]
    count = words(f"{glyph} {len(standing)}", role)
    return ((*count, Span(f"  {harmless(top.line)}")), count)


def active(snapshot: Snapshot) -> tuple[AlertRecord, ...]:
    """Alerts that are true now, most urgent first, then newest; also those not yet on record."""
    recorded = [record for record in snapshot.alert_log if record.cleared_at is None]
    names = {(record.alert.code, record.alert.subject) for record in recorded}
    fresh = [
        AlertRecord(alert=alert, first_at=snapshot.now, last_at=snapshot.now, since=snapshot.now)
        for alert in snapshot.verdict.alerts
        if (alert.code, alert.subject) not in names
    ]
    return tuple(
        sorted(
            (*recorded, *fresh),
            key=lambda record: (states.URGENCY.index(record.alert.level), -record.since),
        )
    )


def advice_lines(alert: Alert, width: int) -> tuple[Row, ...]:
    """The evidence in one line, then what to do."""
    evidence = " · ".join(harmless(line) for line in alert.evidence)
    return (
        *(words(line, Role.MUTED) for line in wrapped(evidence, width)),
        *_then(alert, width),
    )


def _cleared(snapshot: Snapshot) -> tuple[AlertRecord, ...]:
    return tuple(record for record in snapshot.alert_log if record.cleared_at is not None)


def _standing(snapshot: Snapshot, record: AlertRecord, width: int) -> list[Row]:
    return _entry(snapshot, record, width, states.LEVEL[record.alert.level])


def _entry(snapshot: Snapshot, record: AlertRecord, width: int, sign: states.Sign) -> list[Row]:
    is_over = record.cleared_at is not None
    at = record.cleared_at if record.cleared_at is not None else record.since
    times = f"{glyphs.NOT_FINITE}{record.count} " if record.count > 1 else ""
    when = words(f"{times}{'cleared ' if is_over else ''}{ago(snapshot.now - at)}", Role.MUTED)
    lead: Row = (cell(sign[0], 2, sign[1]),)
    if width >= _CODE_FROM:
        lead = (*lead, cell(harmless(record.alert.code), _CODE, Role.MUTED if is_over else sign[1]))
    indent = row_width(lead)
    role = Role.MUTED if is_over else _role(record.alert.level)
    text = wrapped(harmless(record.alert.line), max(8, width - indent - row_width(when) - 2))
    head = spread((*lead, *words(text[0] if text else "", role)), when, width)
    return [head, *((Span(" " * indent), *words(line, role)) for line in text[1:])]


def _noted(note: str, width: int) -> list[Row]:
    """What could not be found or read when we attached, with its remedy."""
    return [
        (cell("" if place else glyphs.DASH, 2, Role.MUTED), *words(line, Role.MUTED))
        for place, line in enumerate(wrapped(harmless(note), max(8, width - 2)))
    ]


def _role(level: Level) -> Role:
    return Role.STRONG if level is Level.CRITICAL else Role.TEXT


def _advice(alert: Alert, width: int) -> list[Row]:
    return [(Span("  "), *row) for row in _then(alert, max(1, width - 2))]


def _then(alert: Alert, width: int) -> tuple[Row, ...]:
    if not alert.advice:
        return ()
    lines = wrapped(harmless(alert.advice), max(1, width - 2))
    return tuple(
        joined((words(glyphs.LEVEL if i == 0 else " ", Role.LABEL), words(line, Role.TEXT)), " ")
        for i, line in enumerate(lines)
    )
