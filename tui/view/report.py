"""The whole verdict as rows for a terminal that is printed to, as `status` and `explain` do."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tui.model.checkpoint import CheckpointState
from tui.model.reading import Absence, Unknown
from tui.model.snapshot import Resume, RunState, Snapshot
from tui.model.text import harmless
from tui.view import alerts, engines, glyphs, gpu, guard, header, states
from tui.view.compose import Part, drawn, packed, why_not, words, wrapped
from tui.view.numbers import age, ago, day_and_time, size, time_of_day
from tui.view.rows import Look, Role, Row, Span

TIMELINE_LIMIT = 12
CHECKPOINT_LIMIT = 5
_LABEL = 13
_DUBIOUS = frozenset({Resume.SILENT_FRESH, Resume.WRONG_NUMBER, Resume.INCOMPLETE})

Said = Iterable[tuple[str, Role]]


def rows(snapshot: Snapshot, width: int, look: Look) -> tuple[Row, ...]:
    """All that is worth saying, as many rows as it takes."""
    room = max(1, width - _LABEL)
    out: list[Row] = [_state(snapshot, width, look)]
    for label, said in (
        ("why", _reason(snapshot)),
        ("degraded", ((code, Role.WARNING) for code in snapshot.verdict.degraded)),
        ("cause", _cause(snapshot)),
        ("progress", _progress(snapshot, look)),
        ("resume", _resume(snapshot)),
        ("checkpoints", _checkpoints(snapshot)),
        ("engines", _engines(snapshot)),
        ("guard", guard.report(snapshot, look.utc_offset_s)),
    ):
        out += _section(label, said, room)
    out += _box(snapshot, width, look)
    out += _alerts(snapshot, room)
    out += _section("timeline", _timeline(snapshot, look), room)
    label = "looked for" if snapshot.verdict.state is RunState.UNKNOWN else "notes"
    out += _section(label, ((note, Role.TEXT) for note in snapshot.attachment.notes), room)
    return drawn(out, width, len(out), look)


def _section(label: str, said: Said, room: int) -> Iterator[Row]:
    """Each text wrapped beside the label, which stands once."""
    lead = label
    for text, role in said:
        for line in wrapped(harmless(text), room):
            yield (Span(f"{lead:<{_LABEL}}", Role.LABEL), Span(line, role))
            lead = ""


def _state(snapshot: Snapshot, width: int, look: Look) -> Row:
    calm = snapshot.verdict.state in states.UNDER_WAY
    phase = snapshot.story.phase
    parts = (
        Part(2, (words(harmless(snapshot.attachment.name), Role.STRONG),)),
        Part(0, (header.state_row(snapshot),)),
        Part(1, header.rollout_forms(snapshot)),
        Part(3, (header.phase_row(snapshot, phase),) if calm and phase else ()),
        Part(4, header.eta_forms(snapshot, look.utc_offset_s) if calm else ()),
    )
    return packed(parts, width)


def _reason(snapshot: Snapshot) -> Said:
    verdict = snapshot.verdict
    if not verdict.reason:
        return
    spell = snapshot.now - verdict.since
    yield verdict.reason, Role.TEXT
    if verdict.since > 0 and spell >= 1:
        yield f"{verdict.state.value} for {age(spell)}", Role.MUTED


def _cause(snapshot: Snapshot) -> Said:
    cause = snapshot.verdict.cause
    if cause is None:
        return
    yield cause.line, Role.STRONG
    for line in cause.evidence:
        yield f"{glyphs.DOT} {line}", Role.MUTED


def _progress(snapshot: Snapshot, look: Look) -> Said:
    progress, phase = snapshot.story.progress, snapshot.story.phase
    if progress is None:
        yield "none seen", Role.MUTED
        return
    when = day_and_time(progress.at, snapshot.now, look.utc_offset_s)
    yield f"{progress.what}, {ago(snapshot.now - progress.at)}, at {when}", Role.TEXT
    if phase is not None and snapshot.verdict.state not in states.UNDER_WAY:
        yield f"in {phase.name} since {age(snapshot.now - phase.since)}", Role.TEXT


def _resume(snapshot: Snapshot) -> Said:
    proof = snapshot.verdict.resume
    role = Role.BAD if proof.outcome in _DUBIOUS else Role.TEXT
    yield f"{proof.outcome.value}: {proof.line}" if proof.line else proof.outcome.value, role
    for line in proof.evidence:
        yield f"{glyphs.DOT} {line}", Role.MUTED


def _checkpoints(snapshot: Snapshot) -> Said:
    reading, risk = snapshot.checkpoints, snapshot.verdict.risk
    if risk is not None:
        yield risk.line, Role.TEXT
    if isinstance(reading, Unknown):
        if reading.why is not Absence.NOT_ASKED:
            yield f"{glyphs.UNKNOWN} {why_not(reading)}", Role.MUTED
        return
    listed = reading.value.checkpoints
    if not listed:
        yield f"none in {reading.value.root}", Role.MUTED
    for each in listed[:CHECKPOINT_LIMIT]:
        glyph, role = states.CHECKPOINT[each.state]
        loads = ", a resume loads it" if each.tracked else ""
        why = f": {each.reason}" if each.reason else ""
        said = f"{glyph} {each.iteration} {each.state.value}{loads}{why}"
        calm = role if each.state is not CheckpointState.WHOLE else Role.TEXT
        yield f"{said}, {size(each.size_bytes)}, {age(snapshot.now - each.taken_at)} old", calm
    if len(listed) > CHECKPOINT_LIMIT:
        yield f"… {len(listed) - CHECKPOINT_LIMIT} older", Role.MUTED


def _engines(snapshot: Snapshot) -> Said:
    for engine in snapshot.verdict.engines:
        glyph, role = states.ENGINE[engine.state]
        calm = Role.TEXT if engine.state in engines.ALIVE else role
        where = engine.url.removeprefix("http://")
        yield f"{glyph} {engine.label} {engine.state.value}  {where}  {engine.reason}", calm


def _box(snapshot: Snapshot, width: int, look: Look) -> list[Row]:
    """The GPU and the pool in a line, where they were looked at."""
    asked = (snapshot.gpus, snapshot.memory)
    if all(isinstance(r, Unknown) and r.why is Absence.NOT_ASKED for r in asked):
        return []
    row = gpu.summary(snapshot, max(1, width - _LABEL + 8), look)
    return [(Span(f"{'gpu':<{_LABEL}}", Role.LABEL), *row[1:])]


def _alerts(snapshot: Snapshot, room: int) -> list[Row]:
    out: list[Row] = []
    for record in alerts.active(snapshot):
        glyph, role = states.LEVEL[record.alert.level]
        line = f"{glyph} {record.alert.code}: {record.alert.line}"
        out += _section("" if out else "alerts", ((line, role),), room)
        for row in alerts.advice_lines(record.alert, max(1, room - 2)):
            out.append((Span(" " * (_LABEL + 2)), *row))
    return out


def _timeline(snapshot: Snapshot, look: Look) -> Said:
    roles = {"warning": Role.WARNING, "critical": Role.BAD}
    moments = snapshot.story.timeline
    if len(moments) > TIMELINE_LIMIT:
        yield f"… {len(moments) - TIMELINE_LIMIT} earlier", Role.MUTED
    for moment in moments[-TIMELINE_LIMIT:]:
        text = f"{time_of_day(moment.at, look.utc_offset_s)}  {moment.text}"
        yield text, roles.get(moment.level, Role.TEXT)
