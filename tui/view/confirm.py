"""The confirm: what would be done and to what, what can be chosen, and the two buttons."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import pairwise

from tui.model import plan as plans
from tui.model.snapshot import Level
from tui.model.text import cell_width, fitted, harmless, padded
from tui.view import glyphs, states
from tui.view.compose import cell, drawn, drawn_row, drawn_text, words, wrapped
from tui.view.numbers import ago, counted
from tui.view.question import Question
from tui.view.rows import Look, Role, Row, Span

_LABEL_MOST = 14
_TEXT_FROM = 20
"""Room for a row's text beside its label; with less it goes below."""
_GAP = 3


class At(Enum):
    """What the keys go to."""

    NAME = auto()
    STAY = auto()
    GO = auto()


@dataclass(frozen=True, slots=True, kw_only=True)
class Button:
    """Where a button is, in cells from the first row of buttons."""

    at: At
    x: int
    y: int
    width: int


def title(question: Question, now: float, look: Look) -> str:
    """What it is about, and how old what it says is."""
    parts = [harmless(question.title)]
    if question.made_at:
        parts.append(f"looked {ago(now - question.made_at)}")
    return drawn_text(f" {glyphs.DOT} ".join(parts), look)


def rows(question: Question, width: int, look: Look) -> tuple[Row, ...]:
    """All that it says, as high as it is."""
    told = list(question.rows)
    column = _column(told, width)
    labels = ["", *(row.label for row in told)]
    out: list[Row] = []
    for (before, label), row in zip(pairwise(labels), told, strict=True):
        out += _row("" if label == before else harmless(label), row, column, width)
    return drawn(out, width, len(out), look)


def choice_rows(
    question: Question, keys: Sequence[str], width: int, look: Look
) -> tuple[tuple[Row, ...], ...]:
    """The rows of each choice, with the key that turns it over."""
    told = []
    for key, choice in zip(keys, question.choices, strict=False):
        mark = "[x]" if choice.is_on else "[ ]"
        (_, *text), *rest = _hanging(f"{harmless(key)} {mark} ", choice.label, Role.TEXT, width)
        lead = (Span(harmless(key), Role.KEY), Span(f" {mark} "))
        told.append(drawn(((*lead, *text), *rest), width, 1 + len(rest), look))
    return tuple(told)


def note_rows(question: Question, width: int, look: Look) -> tuple[Row, ...]:
    """Above the buttons: the note, and what has to be typed into the line below it."""
    out: list[Row] = []
    if question.note:
        sign, role = (
            (glyphs.BUSY, Role.BUSY) if question.is_waiting else states.LEVEL[Level.WARNING]
        )
        out += _hanging(f"{sign} ", harmless(question.note), role, width)
    if question.typed_name:
        told = f"To confirm, type its name: {harmless(question.typed_name)}"
        out += _hanging("", told, Role.WARNING, width)
    return drawn(out, width, len(out), look)


def more_row(below: int, width: int, look: Look) -> Row:
    """That there is more below than can be seen."""
    told = f"{glyphs.DOWN} {counted(below, 'more line')}" if below else ""
    return drawn_row(words(told, Role.WARNING), width, look)


def buttons(question: Question, width: int) -> tuple[Button, ...]:
    """Where they are: side by side in the middle, one above the other where that is too wide."""
    said = ((At.STAY, question.stay), (At.GO, question.go))
    wide = [(at, _button_width(text, width)) for at, text in said if text]
    total = sum(cells for _, cells in wide) + _GAP * (len(wide) - 1)
    if total > width:
        return tuple(Button(at=at, x=0, y=y, width=cells) for y, (at, cells) in enumerate(wide))
    x, out = (width - total) // 2, []
    for at, cells in wide:
        out.append(Button(at=at, x=x, y=0, width=cells))
        x += cells + _GAP
    return tuple(out)


def button_rows(
    question: Question, width: int, look: Look, *, at: At, is_ready: bool
) -> tuple[Row, ...]:
    """The buttons, the one that enter presses in brackets; one that is not ready is muted."""
    placed = buttons(question, width)
    out: list[Row] = [()] * (1 + max((button.y for button in placed), default=0))
    for button in placed:
        text = harmless(question.stay if button.at is At.STAY else question.go)
        role = Role.STRONG if button.at is At.STAY or is_ready else Role.MUTED
        if button.at is at:
            drawn_button = Span(f"[ {fitted(text, button.width - 4)} ]", Role.SELECTED)
        else:
            drawn_button = Span(padded(f"  {text}", button.width), role)
        row = out[button.y]
        gap = button.x - sum(cell_width(span.text) for span in row)
        out[button.y] = (*row, Span(" " * gap), drawn_button)
    return drawn(out, width, len(out), look)


def _button_width(text: str, width: int) -> int:
    return max(5, min(cell_width(harmless(text)) + 4, width))


def _column(told: Iterable[plans.Row], width: int) -> int:
    """Cells of the labels; 0 where the texts go below them."""
    widest = max((cell_width(harmless(row.label)) for row in told), default=0)
    if not widest:
        return 0
    column = min(widest, _LABEL_MOST) + 1
    return column if width - column >= _TEXT_FROM else 0


def _hanging(lead: str, text: str, role: Role, width: int) -> Iterator[Row]:
    for line in wrapped(text, max(8, width - cell_width(lead))):
        yield (Span(lead, role), Span(line, role))
        lead = " " * cell_width(lead)


def _row(label: str, row: plans.Row, column: int, width: int) -> Iterator[Row]:
    sign, role = states.LEVEL[row.level]
    if row.level is Level.INFO:
        sign, role = "", Role.TEXT
    indent = column
    if label and not column:
        yield words(label, Role.LABEL)
    lead: Row = (cell(label, column, Role.LABEL),) if column else ()
    if sign:
        lead, indent = (*lead, Span(f"{sign} ", role)), indent + 2
    lines = [
        line
        for text in row.text.split("\n")
        for line in wrapped(harmless(text), max(8, width - indent))
    ]
    for line in lines or [""]:
        yield (*lead, Span(line, role))
        lead = (Span(" " * indent),) if indent else ()
