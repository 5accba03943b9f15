"""What we do to the run: the action under way, how the newest one ended, and all before it."""

from __future__ import annotations

from collections.abc import Iterator
from enum import Enum

from tui.model.action import ActionRecord, ActionState
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs
from tui.view.compose import cell, drawn, drawn_text, spread, words, wrapped
from tui.view.numbers import ago, clock, counted
from tui.view.rows import Look, Role, Row, Span, row_width

OUTCOME_S = 600.0
"""How long the main screen tells of an end."""
FAILURE_S = 3600.0
"""Of a bad one."""
_STEPS = {
    "save": "save",
    "autopsy": "take an autopsy",
    "stop": "stop the run",
    "move aside": "move newer ones aside",
    "move back": "move them back",
    "tracker": "say what is loaded",
    "start": "start it again",
    "prove": "prove what it loaded",
    "convert": "convert and prove",
}
_TEXT_FROM = 24
"""Room for a step's own words beside its name; with less they go below."""


class Standing(Enum):
    """Where an action is, its sign and its word."""

    UNDER_WAY = (glyphs.BUSY, Role.BUSY, "under way")
    INTERRUPTED = (glyphs.WARNING, Role.WARNING, "interrupted")
    DONE = (glyphs.OK, Role.GOOD, "done")
    FAILED = (glyphs.BAD, Role.BAD, "failed")
    GIVEN_UP = (glyphs.PAUSED, Role.PAUSED, "given up")

    @property
    def glyph(self) -> str:
        return self.value[0]

    @property
    def role(self) -> Role:
        return self.value[1]

    @property
    def word(self) -> str:
        return self.value[2]


_ENDED = {
    ActionState.DONE: Standing.DONE,
    ActionState.FAILED: Standing.FAILED,
    ActionState.GIVEN_UP: Standing.GIVEN_UP,
}


def standing(snapshot: Snapshot, record: ActionRecord) -> Standing:
    """An open action is under way while its process lives."""
    if not record.is_open:
        return _ENDED[record.state]
    is_held = record.id == snapshot.action_holder
    return Standing.UNDER_WAY if is_held else Standing.INTERRUPTED


def open_action(snapshot: Snapshot) -> ActionRecord | None:
    """The one under way, else the newest that was interrupted."""
    opened = [record for record in reversed(snapshot.actions) if record.is_open]
    held = (record for record in opened if record.id == snapshot.action_holder)
    return next(held, next(iter(opened), None))


def current(snapshot: Snapshot) -> ActionRecord | None:
    """The one a person has to know of now: open, or ended a short time ago."""
    opened = open_action(snapshot)
    if opened is not None or not snapshot.actions:
        return opened
    newest = snapshot.actions[-1]
    told_s = {ActionState.DONE: OUTCOME_S, ActionState.FAILED: FAILURE_S}.get(newest.state, 0.0)
    return newest if snapshot.now - newest.changed_at < told_s else None


def short_title(snapshot: Snapshot, record: ActionRecord) -> str:
    """`kill and resume`: which run it is stands elsewhere."""
    title = harmless(record.title or record.kind.value)
    name = harmless(snapshot.attachment.name)
    title = title.removesuffix(f" of {name}").removesuffix(f" {name}")
    return title[:1].lower() + title[1:]


def step_words(name: str) -> str:
    """What a step of that name does."""
    return _STEPS.get(name) or harmless(name)


# The main screen


def mark_forms(snapshot: Snapshot) -> tuple[Row, ...]:
    """For the header: that something is being done, or was left half done; longest first."""
    record = open_action(snapshot)
    if record is None:
        return ()
    seen = standing(snapshot, record)
    sign, name = f"{seen.glyph} ", short_title(snapshot, record)
    at, many = _number(record), len(record.steps)
    if seen is Standing.INTERRUPTED:
        said: tuple[str, ...] = (f"{name} {seen.word}", seen.word)
    elif not many:
        said = (name,)
    else:
        said = (f"{name}: step {at} of {many}", f"step {at} of {many}")
    return tuple(words(sign + text, seen.role) for text in said)


def top_rows(snapshot: Snapshot, width: int) -> list[Row]:
    """For the head of the alerts: the current action, and what to do where it went wrong."""
    record = current(snapshot)
    if record is None:
        return []
    return [*_entry(snapshot, record, _told(snapshot, record), width), *_remedy(record, width)]


def summary_forms(snapshot: Snapshot) -> tuple[Row, ...]:
    """The same in one line, and shorter."""
    record = current(snapshot)
    if record is None:
        return ()
    seen = standing(snapshot, record)
    long = words(f"{seen.glyph} {_told(snapshot, record)}", seen.role)
    short = f"{short_title(snapshot, record)} {seen.word}"
    if seen is Standing.UNDER_WAY:
        short = f"{_step_name(record)} {_step_clock(snapshot, record)}"
    return (long, words(f"{seen.glyph} {short}", seen.role), *mark_forms(snapshot)[-1:])


# The page


def title(snapshot: Snapshot, look: Look) -> str:
    record = open_action(snapshot)
    state = standing(snapshot, record).word if record else counted(len(snapshot.actions), "action")
    return drawn_text(f"Actions {glyphs.DOT} {state}", look)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    if not snapshot.actions:
        none = words("nothing was done to this run by milepost yet", Role.MUTED)
        return drawn((none,), width, height, look)
    first = open_action(snapshot) or snapshot.actions[-1]
    out = [*_head(snapshot, first, width), *_steps(snapshot, first, width)]
    out += _remedy(first, width)
    before = [record for record in reversed(snapshot.actions) if record is not first]
    if before:
        out += [(), words("before", Role.LABEL)]
    for record in before:
        told = f"{short_title(snapshot, record)}: {_outcome(snapshot, record)}"
        out += [*_entry(snapshot, record, told, width), *_remedy(record, width)]
    return drawn(out, width, height, look)


def _head(snapshot: Snapshot, record: ActionRecord, width: int) -> Iterator[Row]:
    seen = standing(snapshot, record)
    took = record.changed_at if not record.is_open else snapshot.now
    since = words(f"{seen.word}, {clock(took - record.began_at)}", seen.role)
    title = (Span(f"{seen.glyph} ", seen.role), Span(harmless(record.title), Role.STRONG))
    if row_width(title) + 2 + row_width(since) <= width:
        yield spread(title, since, width)
    else:
        yield title
        yield (Span("  "), *since)
    if record.is_open or not record.steps:
        return
    for line in wrapped(_outcome(snapshot, record), max(8, width - 2)):
        yield (Span("  "), Span(line, seen.role))


def _steps(snapshot: Snapshot, record: ActionRecord, width: int) -> Iterator[Row]:
    names = [step_words(name) for name in record.steps]
    column = max(map(len, names), default=0) + 2
    beside = width - 6 - column >= _TEXT_FROM
    for place, name in enumerate(names):
        sign, role, text = _step(snapshot, record, place)
        lead: Row = (
            cell(f"  {sign}", 4, role),
            cell(f"{place + 1}", 2, Role.LABEL),
            cell(name, column, Role.TEXT if sign != glyphs.DOT else Role.MUTED),
        )
        indent = row_width(lead) if beside else 6
        pieces = wrapped(text, max(8, width - indent))
        if beside and pieces:
            lead, pieces = (*lead, Span(pieces[0], role)), pieces[1:]
        yield lead
        for piece in pieces:
            yield (Span(" " * indent), Span(piece, role))


def _step(snapshot: Snapshot, record: ActionRecord, place: int) -> tuple[str, Role, str]:
    """Sign, role and words of one step."""
    if place < len(record.done):
        return glyphs.DONE, Role.TEXT, harmless(record.done[place])
    seen = standing(snapshot, record)
    if place + 1 != _number(record) or seen is Standing.DONE:
        return glyphs.DOT, Role.MUTED, ""
    if seen is not Standing.UNDER_WAY:
        return seen.glyph, seen.role, seen.word
    return seen.glyph, seen.role, f"{_note(record)} {_step_clock(snapshot, record)}".lstrip()


# Words


def _told(snapshot: Snapshot, record: ActionRecord) -> str:
    name, many = short_title(snapshot, record), len(record.steps)
    at = f"step {_number(record)} of {many}" if many else "its beginning"
    match standing(snapshot, record):
        case Standing.UNDER_WAY:
            doing = _note(record) or _step_name(record)
            return f"{name}: {at}, {doing} {_step_clock(snapshot, record)}"
        case Standing.INTERRUPTED:
            told = f"{name} was interrupted at {at}, {_step_name(record)}"
            return f"{told}: among the actions it can be finished or given up"
        case _:
            return f"{name}: {_outcome(snapshot, record)}"


def _outcome(snapshot: Snapshot, record: ActionRecord) -> str:
    """What it came to, without what to do about it."""
    seen = standing(snapshot, record)
    if seen in (Standing.DONE, Standing.FAILED):
        return harmless(record.line.partition("\n")[0]) or seen.word
    return f"{seen.word} at step {_number(record)} of {len(record.steps)}"


def _remedy(record: ActionRecord, width: int) -> Iterator[Row]:
    """What to do about a bad end."""
    text = record.line.partition("\n")[2] if record.state is ActionState.FAILED else ""
    for place, line in enumerate(wrapped(harmless(text), max(8, width - 4))):
        yield (Span(f"  {' ' if place else glyphs.LEVEL} ", Role.LABEL), Span(line))


def _entry(snapshot: Snapshot, record: ActionRecord, text: str, width: int) -> Iterator[Row]:
    """The sign, the words, and for one that ended its age at the right."""
    seen = standing(snapshot, record)
    when = () if record.is_open else words(ago(snapshot.now - record.changed_at), Role.MUTED)
    first, *rest = wrapped(text, max(8, width - 2 - row_width(when) - 2)) or ("",)
    role = seen.role if record.is_open else Role.TEXT
    yield spread((cell(seen.glyph, 2, seen.role), Span(first, role)), when, width)
    yield from ((Span("  "), Span(line, role)) for line in rest)


def _number(record: ActionRecord) -> int:
    """The step it is at, from 1."""
    at = record.step if record.step is not None else len(record.done)
    return max(1, min(at + 1, len(record.steps)))


def _step_name(record: ActionRecord) -> str:
    at = _number(record)
    if at > len(record.steps):
        return "begun"
    return step_words(record.steps[at - 1])


def _note(record: ActionRecord) -> str:
    """The newest word of the step under way; none before it said anything."""
    said = record.step is not None and record.changed_at > record.step_began_at
    return harmless(record.line) if said else ""


def _step_clock(snapshot: Snapshot, record: ActionRecord) -> str:
    since = record.step_began_at if record.step is not None else record.changed_at
    return clock(snapshot.now - since)
