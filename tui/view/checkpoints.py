"""What would a crash cost me now: the checkpoints, which of them a resume loads, and the disk."""

from __future__ import annotations

from collections.abc import Sequence

from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree
from tui.model.reading import Unknown, value_or
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs, states
from tui.view.checked import Told, checked, progress
from tui.view.compose import (
    Part,
    cell,
    drawn,
    drawn_row,
    drawn_text,
    joined,
    packed,
    why_not,
    words,
)
from tui.view.numbers import age, counted, grouped, size
from tui.view.order import ordered
from tui.view.rows import Look, Order, Role, Row, Span, fitted_row, row_width
from tui.view.saving import saving_rows

_WIDE_FROM, _CHECKED_FROM = 62, 92
_CHECKED = 20
"""Cells of the last column, in a table wide enough for it."""
_NAMES = ("", "iter", "after", "age", "size", "state")
_NARROW = {"": 1, "iter": 5, "age": 9, "state": 9}
_WIDE = {"": 1, "iter": 5, "after": 13, "age": 9, "size": 8, "state": 9}
_RIGHT = frozenset({"iter", "age", "size"})


def title(snapshot: Snapshot, look: Look) -> str:
    parts = ["Checkpoints"]
    risk = snapshot.verdict.risk
    if risk is not None:
        parts += [harmless(risk.line), f"limit {_limit(risk.limit_s)}"]
    elif (resumed := _tracked(snapshot)) is not None:
        parts.append(f"a resume loads {resumed.iteration}")
    return drawn_text(f" {glyphs.DOT} ".join(parts), look)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    reading = snapshot.checkpoints
    if isinstance(reading, Unknown):
        said = (*_missed(snapshot), why_not(reading))
        told = words(f"{glyphs.UNKNOWN} {said[0]}", Role.MUTED)
        return drawn((told, *saving_rows(snapshot, None, width)), width, height, look)
    tree = reading.value
    notes = tuple(
        words(f"{glyphs.WARNING} {harmless(n)}", Role.WARNING) for n in _notes(snapshot, tree)
    )
    foot = saving_rows(snapshot, tree, width)
    if not tree.checkpoints:
        none = words(f"none yet in {harmless(tree.root)}", Role.MUTED)
        return drawn((none, *notes, *foot), width, height, look)
    head = (_head(width, look.order),) if height - len(notes) - len(foot) > 3 else ()
    room = max(1, height - len(notes) - len(foot) - len(head))
    listed = ordered(tree.checkpoints, look.order)
    shown = _window(listed, look.selected_iteration, room)
    table = (_entry(snapshot, each, width, look) for each in shown)
    return drawn((*notes, *head, *table, *foot), width, height, look)


def summary(snapshot: Snapshot, width: int, look: Look) -> Row:
    label = cell("Ckpt", 8, Role.LABEL)
    reading, risk = snapshot.checkpoints, snapshot.verdict.risk
    if isinstance(reading, Unknown):
        state = words(f"{glyphs.UNKNOWN} {why_not(reading, 40)}", Role.MUTED)
    else:
        state = _newest(snapshot, reading.value)
    cost: tuple[Row, ...] = ()
    if risk is not None:
        role = Role.WARNING if _is_past(snapshot) else Role.TEXT
        lost = joined(
            (
                words(counted(risk.rollouts, "rollout"), role) if risk.rollouts is not None else (),
                words(age(risk.seconds), role) if risk.seconds is not None else (),
            ),
            ", ",
        )
        cost = (words(harmless(risk.line), role), (Span("crash costs ", Role.LABEL), *lost))
    parts = (Part(0, (state,)), Part(1, _under_way(snapshot)), Part(2, cost))
    return drawn_row((label, *packed(parts, width - 8, "  ")), width, look)


def _under_way(snapshot: Snapshot) -> tuple[Row, ...]:
    """How far a verify is, with its checkpoint's folder where there is room."""
    current = snapshot.verifying
    if current is None or current.fault:
        return ()
    name = harmless(current.path.rpartition("/")[2])
    short = f"{glyphs.BUSY} {progress(current)}"
    return words(f"{short} of {name} verified", Role.BUSY), words(short, Role.BUSY)


def _newest(snapshot: Snapshot, tree: CheckpointTree) -> Row:
    whole = next((c for c in tree.checkpoints if c.state is CheckpointState.WHOLE), None)
    if whole is None:
        some = "none whole" if tree.checkpoints else "none yet"
        return words(some, Role.WARNING if tree.checkpoints else Role.MUTED)
    glyph, role = states.CHECKPOINT[whole.state]
    return (
        Span(f"{glyph} ", role),
        Span(str(whole.iteration), Role.STRONG),
        Span(f" whole, {age(snapshot.now - whole.taken_at)} old", Role.TEXT),
    )


def _limit(seconds: float) -> str:
    return (
        f"{grouped(seconds / 3600)} h" if seconds >= 3600 and seconds % 3600 == 0 else age(seconds)
    )


def _tracked(snapshot: Snapshot) -> Checkpoint | None:
    tree = value_or(snapshot.checkpoints, None)
    return next((each for each in tree.checkpoints if each.tracked), None) if tree else None


def _is_past(snapshot: Snapshot) -> bool:
    risk = snapshot.verdict.risk
    return risk is not None and risk.seconds is not None and risk.seconds > risk.limit_s


def _notes(snapshot: Snapshot, tree: CheckpointTree) -> list[str]:
    notes = [tree.note] if tree.note else []
    risk = snapshot.verdict.risk
    if risk is not None and _is_past(snapshot):
        notes.insert(0, f"no whole checkpoint within the limit of {_limit(risk.limit_s)}")
    return [*notes, *_missed(snapshot)]


def _missed(snapshot: Snapshot) -> list[str]:
    missed = snapshot.missed.get("checkpoints")
    return [] if missed is None else [f"no fresh look: {why_not(missed)}"]


def _window(
    checkpoints: tuple[Checkpoint, ...], selected: int | None, room: int
) -> Sequence[Checkpoint]:
    """As many as fit, moved down as far as the selected one needs."""
    at = next((i for i, each in enumerate(checkpoints) if each.iteration == selected), 0)
    start = max(0, at - room + 1)
    return checkpoints[start : start + room]


def _head(width: int, order: Order) -> Row:
    """The names of the columns, that of the order marked."""
    row = _columns(width, *(_marked(name, order) for name in _NAMES))
    last = Order.CHECKED
    is_shown = width >= _CHECKED_FROM or order is last
    return (*row, Span(*_marked(last.value, order))) if is_shown else row


def _marked(name: str, order: Order) -> tuple[str, Role]:
    return (f"{name}{glyphs.DOWN}", Role.KEY) if name == order.value else (name, Role.LABEL)


def _entry(snapshot: Snapshot, each: Checkpoint, width: int, look: Look) -> Row:
    is_selected = each.iteration == look.selected_iteration
    glyph, role = states.CHECKPOINT[each.state]
    after = f"rollout {grouped(each.after_rollout)}" if each.after_rollout >= 0 else "?"
    seen = checked(snapshot, each)
    row = _columns(
        width,
        (glyphs.SELECTED if is_selected else "", Role.SELECTED),
        (str(each.iteration), Role.STRONG),
        (after, Role.TEXT),
        (age(snapshot.now - each.taken_at), Role.VALUE),
        (size(each.size_bytes), Role.VALUE),
        (f"{glyph} {each.state.value}", role),
    )
    forms = seen.in_one()
    if width >= _CHECKED_FROM:
        row = (*row, *_checked_cell(seen))
        forms = seen.details
    return (*row, *packed(_said(each, forms), max(0, width - row_width(row)), "  "))


def _checked_cell(seen: Told) -> Row:
    forms = seen.forms or (words(glyphs.DASH, Role.MUTED),)
    fitting = (form for form in forms if row_width(form) <= _CHECKED)
    row = fitted_row(next(fitting, forms[-1]), _CHECKED)
    return (*row, Span(" " * (_CHECKED - row_width(row) + 2)))


def _columns(width: int, *cells: tuple[str, Role]) -> Row:
    """The cells in their columns; a narrow table does without those that say least."""
    shown = _WIDE if width >= _WIDE_FROM else _NARROW
    out: list[Span] = []
    for name, (text, role) in zip(_NAMES, cells, strict=True):
        if name in shown:
            out += [cell(text, shown[name], role, right=name in _RIGHT), Span("  ")]
    return tuple(out)


def _said(each: Checkpoint, seen: tuple[Row, ...]) -> tuple[Part, ...]:
    is_whole = each.state is CheckpointState.WHOLE
    resumes: tuple[Row, ...] = ()
    if each.tracked and is_whole:
        long = words(f"resumes at rollout {grouped(each.resumes_at)}", Role.GOOD)
        resumes = (long, words("resumes", Role.GOOD))
    elif each.tracked:
        long = words("a resume would load this", Role.BAD)
        resumes = (long, words("a resume loads it", Role.BAD))
    return (
        Part(0, resumes),
        Part(1, seen),
        Part(1, () if each.has_data_state else (words("no data position", Role.WARNING),)),
        Part(2, (words(harmless(each.reason), Role.MUTED),) if each.reason else ()),
    )
