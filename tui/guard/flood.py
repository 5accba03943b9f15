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

    def lets(self, level: Level, now: float) -> bool:
        """Whether one more may be told."""
        passed = self._passed[level is Level.CRITICAL]
        _forget(passed, now)
        if len(passed) >= MOST:
            self._held_back += 1
            return False
        passed.append(now)
        return True

    def held_back(self, now: float) -> int:
        """How many were not told, once there is room again; told itself by that."""
        for passed in self._passed.values():
            _forget(passed, now)
        if any(len(passed) >= MOST for passed in self._passed.values()):
            return 0
        count, self._held_back = self._held_back, 0
        return count


def _forget(passed: deque[float], now: float) -> None:
    while passed and not 0.0 <= now - passed[0] < WINDOW_S:
        passed.popleft()
