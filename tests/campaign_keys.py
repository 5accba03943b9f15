"""The same by the keys of the screen, which is what is killed beside the action's process."""

from __future__ import annotations

import sys
from collections.abc import Mapping

from campaign_trial import DYING, Scene
from dying import Point, Signs
from terminal import Terminal

from tui.runs.lock import holder_of

KEYS: Mapping[str, tuple[str, str]] = {
    "save": ("s", "save now"),
    "resume": ("k", "save, then kill and resume"),
    "resume-gone": ("r", "resume"),
}
"""Of an action its key, and what its confirm is called."""


class ByKeys(Scene):
    """A person at the screen, who opens it again when it is gone."""

    def dying(self, point: Point, signs: Signs, *words: str) -> tuple[int, str]:
        name = words[0] if self.drivers() else f"{words[0]}-gone"
        key, go = KEYS[name]
        program = self.place.box.words(sys.executable, DYING, point.text, signs.folder)
        with Terminal(program, DOCKER_HOST=self.place.box.docker_host) as terminal:
            _choose(terminal, "step")
            terminal.type(key)
            terminal.shows("[ Cancel ]", go)
            terminal.type("\t")
            terminal.shows(f"[ {go} ]")
            begun = signs.writes.exists
            terminal.type("\r")
            terminal.until(lambda _: bool(begun() or signs.reached))
            terminal.until(lambda _: holder_of(self.folder) is None)
            return 1, terminal.text

    def finish(self) -> tuple[int, str]:
        with self.place.box.screen() as terminal:
            _choose(terminal, "interrupted")
            terminal.type("x")
            terminal.shows("f finish")
            terminal.type("f")
            terminal.until(lambda _: not any(record.is_open for record in self.records()))
            return 0, terminal.text


def _choose(terminal: Terminal, word: str) -> None:
    """Come to the run's screen; where it is gone, by the list of those that were seen."""
    terminal.until(lambda text: word in text or "watch it" in text)
    if "watch it" in terminal.text:
        terminal.type("\r")
        terminal.shows(word)
