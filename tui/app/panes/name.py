"""The line in which a name is typed to confirm."""

from __future__ import annotations

from textual.geometry import Region
from textual.widgets import Input


class NameLine(Input):
    """Takes the keys while it is the place that they go to."""

    def __init__(self) -> None:
        super().__init__(id="name", select_on_focus=False)
        self.cursor_blink = False
        self.display = False

    def place(self, line: Region | None) -> None:
        """Stand there; None: no name is asked for."""
        self.display = line is not None
        if line is not None:
            self.styles.offset = (line.x, line.y)
            self.styles.width = line.width
