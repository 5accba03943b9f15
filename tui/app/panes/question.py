"""The box of a question: its rows, what can be chosen, a note, and the buttons at the foot."""

from __future__ import annotations

from collections.abc import Sequence

from textual import events, on
from textual.geometry import Region
from textual.message import Message

from tui.app.panes.frame import FRAME_CELLS, FRAME_LINES
from tui.app.panes.pane import Pane
from tui.view import confirm
from tui.view.confirm import At
from tui.view.question import Question
from tui.view.rows import Row

_WIDEST = 100


class QuestionPane(Pane):
    """Scrolls where it is higher than the screen; the buttons stay."""

    class Pressed(Message):
        """A click on a button."""

        def __init__(self, at: At) -> None:
            super().__init__()
            self.at = at

    class TurnedOver(Message):
        """A click on a choice."""

        def __init__(self, index: int) -> None:
            super().__init__()
            self.index = index

    def __init__(self, question: Question, choice_keys: Sequence[str]) -> None:
        super().__init__("question")
        self.question = question
        self.at = At.STAY
        self.is_ready = False
        self._choice_keys = choice_keys
        self._top = 0

    def ask(self, question: Question, *, at: At, is_ready: bool) -> None:
        """Show this, the keys going there."""
        self.question, self.at, self.is_ready = question, at, is_ready
        self.redraw()

    def box(self, width: int, height: int) -> Region:
        """Where it stands on a screen of that size: in the middle, as high as it needs."""
        wide = min(width, _WIDEST)
        inner = max(1, wide - FRAME_CELLS)
        wanted = len(self._said(inner)) + len(self._foot(inner, 0)) + FRAME_LINES
        high = min(wanted, height)
        return Region((width - wide) // 2, (height - high) // 2, wide, high)

    def name_line(self, box: Region) -> Region | None:
        """Where the name is typed, when the pane stands there."""
        if not self.question.typed_name:
            return None
        width = max(1, box.width - FRAME_CELLS)
        below = len(self._button_rows(width))
        return Region(box.x + FRAME_CELLS // 2, box.bottom - 2 - below, width, 1)

    def title(self) -> str:
        return confirm.title(self.question, self._snapshot.now, self._look)

    def summary(self, width: int) -> Row:  # noqa: ARG002  a question is never one line
        return ()

    def content(self, width: int, height: int) -> tuple[Row, ...]:
        said = tuple(row for row, _ in self._said(width))
        room = self._room(width, height)
        self._top = min(self._top, max(0, len(said) - room))
        below = max(0, len(said) - self._top - room)
        shown = said[self._top : self._top + room]
        blank = ((),) * (room - len(shown))
        foot = self._foot(width, below)
        return (*shown, *blank, *foot[max(0, len(foot) - (height - room)) :])

    def move(self, lines: int) -> None:
        self._top = max(0, self._top + lines)
        self.redraw()

    @on(events.Click)
    def _clicked(self, event: events.Click) -> None:
        width, height = self.room()
        x, y = event.x - FRAME_CELLS // 2, event.y - FRAME_LINES // 2
        said = self._said(width)
        if y < self._room(width, height):
            index = said[self._top + y][1] if 0 <= self._top + y < len(said) else None
            if index is not None:
                self.post_message(self.TurnedOver(index))
            return
        first = height - len(self._button_rows(width))
        for button in confirm.buttons(self.question, width):
            if y - first == button.y and button.x <= x < button.x + button.width:
                self.post_message(self.Pressed(button.at))

    def _room(self, width: int, height: int) -> int:
        """Lines above the foot; one at least."""
        return max(1, height - len(self._foot(width, 0)))

    def _said(self, width: int) -> list[tuple[Row, int | None]]:
        """Its rows, and which choice each belongs to."""
        said: list[tuple[Row, int | None]] = [
            (row, None) for row in confirm.rows(self.question, width, self._look)
        ]
        choices = confirm.choice_rows(self.question, self._choice_keys, width, self._look)
        if choices:
            said.append(((), None))
        for index, rows in enumerate(choices):
            said += [(row, index) for row in rows]
        return said

    def _foot(self, width: int, below: int) -> tuple[Row, ...]:
        more = confirm.more_row(below, width, self._look)
        typed = ((),) if self.question.typed_name else ()
        note = confirm.note_rows(self.question, width, self._look)
        return (more, *note, *typed, *self._button_rows(width))

    def _button_rows(self, width: int) -> tuple[Row, ...]:
        return confirm.button_rows(
            self.question, width, self._look, at=self.at, is_ready=self.is_ready
        )
