"""Rows to strips: the one place where a role becomes a colour and text becomes what is sent.

Text is taken as it is, never as markup, and nothing but printable characters leaves here, whatever
a view lets through.
"""

from __future__ import annotations

from collections.abc import Iterator

from rich.segment import Segment
from rich.style import Style
from textual.strip import Strip

from tui.app.themes import Theme
from tui.model.text import harmless
from tui.view.glyphs import ascii_twin
from tui.view.rows import Role, Row


class Paint:
    """How to draw rows in one theme."""

    def __init__(self, theme: Theme, *, in_ascii: bool) -> None:
        self._styles = theme.styles
        self._ground = theme.styles[Role.TEXT]
        self._in_ascii = in_ascii

    def strip(self, row: Row, width: int) -> Strip:
        """The row, exactly `width` cells wide."""
        segments = (Segment(text, style) for text, style in self._runs(row))
        return Strip(segments).adjust_cell_length(width, self._ground)

    def _runs(self, row: Row) -> Iterator[tuple[str, Style]]:
        """Texts and styles with as few changes of style as look the same: each costs bytes."""
        text, style = "", self._ground
        for span in row:
            piece, new = self._printable(span.text), self._styles[span.role]
            if new == style or (piece.isspace() and self._bare(new) and self._bare(style)):
                text += piece
            elif (not text or text.isspace()) and self._bare(new) and self._bare(style):
                text, style = text + piece, new
            else:
                if text:
                    yield text, style
                text, style = piece, new
        if text:
            yield text, style

    def _bare(self, style: Style) -> bool:
        """Blanks in this style look like blanks in any other bare one."""
        return not (style.reverse or style.underline) and style.bgcolor == self._ground.bgcolor

    def _printable(self, text: str) -> str:
        if not text.isprintable():
            text = harmless(text)
        return ascii_twin(text) if self._in_ascii else text
