"""Panes that show what a view module says, from some row on."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tui.app.panes.pane import Pane
from tui.model.snapshot import Snapshot
from tui.view.rows import Look, Row

Rows = Callable[[Snapshot, int, int, Look], tuple[Row, ...]]
"""At most so many rows of so many cells."""


class View(Protocol):
    """A view module: three pure functions."""

    def title(self, snapshot: Snapshot, look: Look) -> str: ...

    def rows(self, snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]: ...

    def summary(self, snapshot: Snapshot, width: int, look: Look) -> Row: ...


class ScrolledPane(Pane):
    """Rows, and the first of them that is shown."""

    def __init__(self, name: str, rows: Rows) -> None:
        super().__init__(name)
        self._view_rows = rows
        self._top = 0

    def content(self, width: int, height: int) -> tuple[Row, ...]:
        rows = self._view_rows(self._snapshot, width, height + self._top, self._look)
        self._top = min(self._top, max(0, len(rows) - height))
        return rows[self._top :]

    def move(self, lines: int) -> None:
        self._top = max(0, self._top + lines)
        self.redraw()


class ViewPane(ScrolledPane):
    """A part of the main screen."""

    def __init__(self, name: str, view: View) -> None:
        super().__init__(name, view.rows)
        self._view = view

    def title(self) -> str:
        return self._view.title(self._snapshot, self._look)

    def summary(self, width: int) -> Row:
        return self._view.summary(self._snapshot, width, self._look)


class Page(ScrolledPane):
    """A screen of its own; never in one line."""

    def __init__(self, name: str, title: str, rows: Rows) -> None:
        super().__init__(name, rows)
        self._title = title

    def title(self) -> str:
        return self._title

    def summary(self, width: int) -> Row:  # noqa: ARG002  a page has none, whatever the width
        return ()
