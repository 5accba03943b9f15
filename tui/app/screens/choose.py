"""The screen of a person who named no run where there are several."""

from __future__ import annotations

from typing import ClassVar

from textual.message import Message

from tui.app.command import Where
from tui.app.paint import Paint
from tui.app.panes.bars import Keys
from tui.app.panes.choices import ChoicesPane
from tui.app.screens.painted import PageScreen
from tui.model.launch import ListedRun


class ChooseScreen(PageScreen):
    """One page, and a key that takes the run under the cursor."""

    WHERE: ClassVar[tuple[Where, ...]] = (Where.CHOICE,)

    class Chosen(Message):
        """The person wants to watch this run."""

        def __init__(self, run: ListedRun) -> None:
            super().__init__()
            self.run = run

    def __init__(self, keys: Keys, paint: Paint, *, read_only: bool) -> None:
        super().__init__(keys, paint, read_only=read_only)
        self.choices = ChoicesPane("choices")
        self.page = self.choices

    def action_choose(self) -> None:
        selected = self.choices.selected
        if selected is not None:
            self.post_message(self.Chosen(selected))
