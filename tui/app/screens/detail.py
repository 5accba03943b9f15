"""All that is known of the checkpoint under the cursor."""

from __future__ import annotations

from dataclasses import replace
from typing import ClassVar

from tui.app.command import Where
from tui.app.paint import Paint
from tui.app.panes.bars import Keys
from tui.app.panes.view import Page
from tui.app.screens.painted import PageScreen
from tui.model.snapshot import Snapshot
from tui.view import detail
from tui.view.rows import Look, Row


class DetailScreen(PageScreen):
    """One checkpoint on a page; it goes on being true while it is open."""

    WHERE: ClassVar[tuple[Where, ...]] = (Where.CHECKPOINT,)

    def __init__(self, keys: Keys, paint: Paint, *, read_only: bool) -> None:
        super().__init__(keys, paint, read_only=read_only)
        self.selected_iteration: int | None = None
        """Which checkpoint; None is the newest."""
        self.page = Page("detail", "Checkpoint", self._rows)

    def _rows(self, snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
        chosen = replace(look, selected_iteration=self.selected_iteration)
        return detail.rows(snapshot, width, height, chosen)

    def action_back(self) -> None:
        self.dismiss()
