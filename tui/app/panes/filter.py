"""The line in which a filter for the log is typed, over the foot of the log's box."""

from __future__ import annotations

from textual.geometry import Region
from textual.widgets import Input

_LEAD_CELLS = 2


class FilterLine(Input):
    """Filters as it is typed. Enter leaves it and keeps the filter."""

    def __init__(self) -> None:
        super().__init__(id="filter", placeholder="text to look for", select_on_focus=False)
        self.cursor_blink = False
        self.display = False

    def place(self, box: Region | None) -> None:
        """Stand at the foot of this box; without one there is nothing to filter."""
        if box is None:
            self.close()
            return
        self.styles.offset = (box.x + _LEAD_CELLS, box.bottom - 1)
        self.styles.width = max(1, box.width - 2 * _LEAD_CELLS)

    def open(self) -> None:
        """Take the keys."""
        self.display = True
        self.focus()

    def close(self) -> None:
        """Give the keys back."""
        self.display = False
        self.screen.set_focus(None)

    def on_input_submitted(self) -> None:
        self.close()
