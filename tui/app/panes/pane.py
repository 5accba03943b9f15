"""One pane: its rows in a box, its answer in one line, or nothing.

It reads no clock and asks for nothing: a snapshot comes in, rows come out. Its box is part of its
rows, because the title tells ages.
"""

from __future__ import annotations

from enum import Enum, auto

from textual import events
from textual.message import Message

from tui.app.panes.canvas import Canvas
from tui.app.panes.frame import FRAME_CELLS, FRAME_LINES, box, framed, parted
from tui.model.snapshot import Snapshot
from tui.view.rows import Look, Row

_WHEEL_LINES = 3
_FURTHEST = 10_000
"""More lines than any view has."""


class Shape(Enum):
    """How much of a pane is shown."""

    FRAMED = auto()
    """All of it, in a box."""
    FOLDED = auto()
    """Its answer in one line."""
    HIDDEN = auto()


class Pane(Canvas):
    """A part of the screen with a name, a box and a place to be scrolled to."""

    class Touched(Message):
        """The person clicked on the pane."""

        def __init__(self, name: str) -> None:
            super().__init__()
            self.pane_name = name

    def __init__(self, name: str) -> None:
        super().__init__(name)
        self.pane_name = name
        self.shape = Shape.HIDDEN
        self._active = False
        self._key = ""
        self._snapshot = Snapshot()
        self._look = Look()

    # What the screen tells it

    def show(self, snapshot: Snapshot, look: Look) -> None:
        """Bring the picture up to this snapshot."""
        self._snapshot, self._look = snapshot, look
        self.told = True
        self.redraw()

    def reshape(self, shape: Shape, *, active: bool, key: str) -> None:
        """Take another form; know whether keys go here, and the key that leads here."""
        self.shape, self._active, self._key = shape, active, key
        self.redraw()

    # Moving about in it

    def move(self, lines: int) -> None:
        """Scroll by lines, down when positive."""
        raise NotImplementedError

    def move_pages(self, pages: int) -> None:
        """Scroll by what is visible."""
        self.move(pages * max(1, self.room()[1] - 1))

    def first(self) -> None:
        """Go to the beginning."""
        self.move(-_FURTHEST)

    def last(self) -> None:
        """Go to the end."""
        self.move(_FURTHEST)

    # What a subclass says

    def title(self) -> str:
        """What stands in the border."""
        raise NotImplementedError

    def content(self, width: int, height: int) -> tuple[Row, ...]:
        """The rows inside the box."""
        raise NotImplementedError

    def summary(self, width: int) -> Row:
        """The pane's answer in one line."""
        raise NotImplementedError

    def room(self) -> tuple[int, int]:
        """Width and height inside the box."""
        width, height = self.size
        return max(1, width - FRAME_CELLS), max(0, height - FRAME_LINES)

    def drawn(self) -> tuple[Row, ...]:
        width, height = self.size
        if self.shape is Shape.HIDDEN or not self.told or not width or not height:
            return ()
        if self.shape is Shape.FOLDED:
            return (self.summary(width),)
        look = box(active=self._active, in_ascii=self._look.ascii)
        title = parted(self.title(), in_ascii=self._look.ascii)
        return framed(title, self.content(*self.room()), width, height, look, self._key)

    def on_click(self) -> None:
        self.post_message(self.Touched(self.pane_name))

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        event.stop()
        self.move(_WHEEL_LINES)

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        event.stop()
        self.move(-_WHEEL_LINES)
