"""The command palette: the registry, found by typing."""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

from textual.command import DiscoveryHit, Hit, Hits, Provider

from tui.app.command import Command
from tui.app.keys import shown
from tui.app.screens.painted import PaintedScreen

_BY_SENTENCE = 0.5
"""A name is what a person types; its sentence counts for less."""
_BY_LENGTH = 1e-4
"""Of two names that match alike the shorter one is meant."""


class CommandSearch(Provider):
    """Every command that can be had where the palette was opened."""

    async def discover(self) -> Hits:
        for command in self._here():
            run = partial(self.app.run_action, command.action)
            yield DiscoveryHit(_titled(command), run, help=self._help(command))

    async def search(self, query: str) -> Hits:
        matcher = self.matcher(query)
        for command in self._here():
            title = _titled(command)
            score = max(matcher.match(title), matcher.match(command.sentence) * _BY_SENTENCE)
            if score > 0:
                score -= len(title) * _BY_LENGTH
                run = partial(self.app.run_action, command.action)
                display = matcher.highlight(title)
                yield Hit(score, display, run, text=title, help=self._help(command))

    def _here(self) -> Iterable[Command]:
        return self.screen.commands if isinstance(self.screen, PaintedScreen) else ()

    def _help(self, command: Command) -> str:
        keys = self.screen.keys[command.name] if isinstance(self.screen, PaintedScreen) else ()
        return f"{command.sentence} {', '.join(map(shown, keys))}"


def _titled(command: Command) -> str:
    return command.name.replace("-", " ").capitalize()
