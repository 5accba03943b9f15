"""Keeps a storm of alerts from a journal, and from a person: so many in a while, then a count."""

from __future__ import annotations

from collections import deque

from tui.model.snapshot import Level

MOST, WINDOW_S = 40, 600.0


class Flood:
    """Critical ones have room of their own."""

    def __init__(self) -> None:
        self._passed: dict[bool, deque[float]] = {True: deque(), False: deque()}
        self._held_back = 0
        self._since = 0.0
        """When the first of them was held back."""

    def lets(self, level: Level, now: float) -> bool:
        """Whether one more may be told."""
        passed = self._passed[level is Level.CRITICAL]
        _forget(passed, now)
        if len(passed) >= MOST:
            self._since = self._since if self._held_back else now
            self._held_back += 1
            return False
        passed.append(now)
        return True

    def held_back(self, now: float) -> int:
        """How many were not told; told itself by that.

        Once there is room again, and in a storm that does not end once in a while.
        """
        for passed in self._passed.values():
            _forget(passed, now)
        is_full = any(len(passed) >= MOST for passed in self._passed.values())
        if is_full and 0.0 <= now - self._since < WINDOW_S:
            return 0
        count, self._held_back = self._held_back, 0
        return count


def _forget(passed: deque[float], now: float) -> None:
    while passed and not 0.0 <= now - passed[0] < WINDOW_S:
        passed.popleft()
