"""What every key does, and what the signs mean."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from tui.app.command import Command, Where
from tui.app.commands import COMMANDS, available
from tui.app.keys import shown
from tui.app.paint import Paint
from tui.app.panes.bars import Keys
from tui.app.panes.view import Page
from tui.app.screens.painted import PageScreen
from tui.view import glyphs
from tui.view.compose import cell, drawn
from tui.view.rows import Role, Row, Span

_KEY_CELLS = max(len(" ".join(c.keys + c.fixed_keys)) for c in COMMANDS) + 2
_NAME_CELLS = max(len(c.name) for c in COMMANDS) + 2
_SIGNS = (
    (glyphs.OK, Role.GOOD, "well"),
    (glyphs.BUSY, Role.BUSY, "at work, or starting"),
    (glyphs.DONE, Role.TEXT, "a step that is done"),
    (glyphs.PAUSED, Role.PAUSED, "paused on purpose: silence is no alarm"),
    (glyphs.WARNING, Role.WARNING, "a reason for concern"),
    (glyphs.BAD, Role.BAD, "bad: act now"),
    (glyphs.UNKNOWN, Role.MUTED, "cannot be told; the reason stands beside it"),
)


class HelpScreen(PageScreen):
    """The registry as a page."""

    WHERE: ClassVar[tuple[Where, ...]] = (Where.HELP,)

    def __init__(self, keys: Keys, paint: Paint, *, read_only: bool) -> None:
        super().__init__(keys, paint, read_only=read_only)
        text = (*_command_rows(keys, available(read_only=read_only)), (), *_sign_rows())
        self.page = Page(
            "help", "Help", lambda _, width, height, look: drawn(text, width, height, look)
        )

    def action_back(self) -> None:
        self.dismiss()


def _command_rows(keys: Keys, commands: Iterable[Command]) -> Iterable[Row]:
    for command in commands:
        yield (
            cell(" ".join(map(shown, keys[command.name])), _KEY_CELLS, Role.KEY),
            cell(command.name, _NAME_CELLS, Role.LABEL),
            Span(command.sentence),
        )


def _sign_rows() -> Iterable[Row]:
    for sign, role, meaning in _SIGNS:
        yield (cell(sign, _KEY_CELLS, role), Span(meaning))
