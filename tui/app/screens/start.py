"""The screen of a person who has no run: what was looked for, and what to do instead."""

from __future__ import annotations

from typing import ClassVar

from tui.app.command import Where
from tui.app.leaving import Leaving
from tui.app.paint import Paint
from tui.app.panes.bars import Keys
from tui.app.panes.view import Page
from tui.app.screens.painted import PageScreen
from tui.view import start


class StartScreen(PageScreen):
    """One page, and a key that starts the demo."""

    WHERE: ClassVar[tuple[Where, ...]] = (Where.START,)

    def __init__(self, keys: Keys, paint: Paint, *, read_only: bool) -> None:
        super().__init__(keys, paint, read_only=read_only)
        self.page = Page("start", "No run found", start.rows)

    def action_demo(self) -> None:
        self.app.exit(return_code=Leaving.DEMO_REQUESTED)
