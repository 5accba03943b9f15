"""All that is known of the checkpoint under the cursor."""

from __future__ import annotations

from typing import ClassVar

from tui.app.commands import Where
from tui.app.paint import Paint
from tui.app.panes.bars import Keys
from tui.app.panes.view import Page
from tui.app.screens.painted import PageScreen
from tui.model.snapshot import Snapshot
from tui.view import detail
from tui.view.rows import Look, Row


class DetailScreen(PageScreen):
    """One checkpoint on a page; it goes on being true while it is open."""

    WHERE: ClassVar[Where] = Where.HELP

    def __init__(self, keys: Keys, paint: Paint, *, read_only: bool) -> None:
        super().__init__(keys, paint, read_only=read_only)
        self.iteration: int | None = None
        """Which checkpoint; None is the newest."""
        self.page = Page("detail", "Checkpoint", self._rows)

    def _rows(self, snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
        chosen = Look(
            ascii=look.ascii, selected_iteration=self.iteration, utc_offset_s=look.utc_offset_s
        )
        return detail.rows(snapshot, width, height, chosen)

    def action_back(self) -> None:
        self.dismiss()
