"""A widget that paints rows, and repaints only the cells that changed."""

from __future__ import annotations

from textual.geometry import Region, Size
from textual.strip import Strip
from textual.widget import Widget

from tui.app.paint import Paint
from tui.app.panes.difference import changed
from tui.view.rows import Row


class Canvas(Widget):
    """Rows on the screen. A subclass says which: `drawn`."""

    ALLOW_SELECT = False
    told = False
    """Whether there was anything to draw yet."""

    def __init__(self, name: str) -> None:
        super().__init__(id=name)
        self._paint: Paint | None = None
        self._rows: tuple[Row, ...] = ()
        self._rows_size = Size(0, 0)

    def drawn(self) -> tuple[Row, ...]:
        """The rows for the present size, from top to bottom."""
        raise NotImplementedError

    def redraw(self) -> None:
        """Make the rows anew and repaint what differs."""
        before = self._rows
        self._rows, self._rows_size = self.drawn(), self.size
        if regions := tuple(changed(before, self._rows)):
            self.refresh(*regions)

    def use(self, paint: Paint) -> None:
        """Paint in other colours."""
        self._paint = paint
        self.refresh()

    def place(self, region: Region | None) -> None:
        """Stand there on the screen; None: nowhere."""
        self.display = region is not None
        if region is not None:
            self.styles.offset = (region.x, region.y)
            self.styles.width, self.styles.height = region.width, region.height

    def render_line(self, y: int) -> Strip:
        if self._paint is None:
            return Strip.blank(self.size.width)
        if self._rows_size != self.size:  # Textual paints before it tells of a new size
            self._rows, self._rows_size = self.drawn(), self.size
        return self._paint.strip(self._rows[y] if y < len(self._rows) else (), self.size.width)

    def on_resize(self) -> None:
        self.redraw()
