"""Miles' timers (utils/timer.py), which only rank 0 of the trainer prints."""

from __future__ import annotations

import time

from tui.demo.console import Console
from tui.demo.lines import Actor


class Timers:
    """Miles' timers: two log lines each, and a value for the next `perf N`."""

    def __init__(self, console: Console, actor: Actor) -> None:
        self._console, self._actor = console, actor
        self._started: dict[str, float] = {}
        self._ended: dict[str, float] = {}

    def start(self, name: str) -> None:
        self._started[name] = time.monotonic()
        self._console.log(self._actor, "timer.py:31", f"Timer {name} start")

    def end(self, name: str) -> None:
        elapsed_s = time.monotonic() - self._started.pop(name)
        self._ended[name] = elapsed_s
        self._console.log(
            self._actor, "timer.py:42", f"Timer {name} end (elapsed: {elapsed_s:.1f}s)"
        )

    def taken(self) -> dict[str, float]:
        """Every timer that ended since the last call."""
        ended, self._ended = self._ended, {}
        return ended
