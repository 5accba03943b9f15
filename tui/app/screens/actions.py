"""The action under way, step by step, and all before it."""

from __future__ import annotations

from enum import Enum, auto
from typing import ClassVar

from textual.message import Message

from tui.app.command import Where
from tui.app.paint import Paint
from tui.app.panes.bars import Keys
from tui.app.panes.view import Page
from tui.app.screens.painted import PageScreen
from tui.view import action


class Wish(Enum):
    """What can be done about an action that is open."""

    FINISH = auto()
    GIVE_UP = auto()
    LEAVE_OFF = auto()


class ActionsScreen(PageScreen):
    """One page; it goes on being true while it is open."""

    WHERE: ClassVar[tuple[Where, ...]] = (Where.ACTIONS,)

    class Wished(Message):
        """The person wants this of the action that is open."""

        def __init__(self, wish: Wish) -> None:
            super().__init__()
            self.wish = wish

    def __init__(self, keys: Keys, paint: Paint, *, read_only: bool) -> None:
        super().__init__(keys, paint, read_only=read_only)
        self.page = Page("actions", "Actions", action.rows)

    def action_back(self) -> None:
        self.dismiss()

    def action_finish(self) -> None:
        self.post_message(self.Wished(Wish.FINISH))

    def action_give_up(self) -> None:
        self.post_message(self.Wished(Wish.GIVE_UP))

    def action_leave_off(self) -> None:
        self.post_message(self.Wished(Wish.LEAVE_OFF))
