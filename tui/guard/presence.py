"""Lets others see that a guard watches a run, and keeps a second guard from it."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path

from tui.runs.guard_card import LOCK, GuardCard, holder_text, show
from tui.runs.lock import locked
from tui.runs.state_dir import made

BEAT_S = 5.0


class Presence:
    """One guard, as it is seen in the state folder of the run that it watches.

    Args:
        policy: what it may do.
        at: when it began, in epoch seconds.
        channels: asked for whom it tells, and what is wrong with each.
    """

    def __init__(
        self, policy: str, at: float, channels: Callable[[], tuple[str, ...]] = tuple
    ) -> None:
        self._card = GuardCard(pid=os.getpid(), policy=policy, since=at)
        self._channels = channels
        self._shown: GuardCard | None = None
        self._folder: Path | None = None
        self._lock = ExitStack()
        self._beat_at = 0.0
        self.fault = ""
        """Why others cannot see it; empty while they can."""

    def watch(self, folder: Path) -> None:
        """Be seen at this run, and no more at another. Called often: it is the sign of life.

        Raises:
            LockHeldError: another guard watches it.
        """
        self._card = replace(self._card, channels=self._channels())
        is_due = time.monotonic() - self._beat_at >= BEAT_S
        if folder == self._folder and not is_due and self._card == self._shown:
            return
        try:
            if folder != self._folder or self._is_removed(folder):
                self._move(folder)
            os.utime(folder / LOCK)
            self._beat_at = time.monotonic()
            self._show(folder)
        except OSError as fault:
            self.fault = f"{folder}: {fault.strerror or fault}"
        else:
            self.fault = ""

    def say(self, words: str, at: float) -> None:
        """Its last words, until it says others."""
        self._card = replace(self._card, words=words, said_at=at)

    def end(self, at: float) -> None:
        """Say that it ended in order, and let another watch."""
        folder, self._folder = self._folder, None
        if folder is not None:
            with suppress(OSError):
                show(folder, replace(self._card, ended_at=at))
        self._lock.close()

    def _move(self, folder: Path) -> None:
        with ExitStack() as stack:
            stack.enter_context(locked(made(folder), holder_text(self._card.pid), LOCK))
            lock = stack.pop_all()
        self.end(time.time())
        self._lock, self._folder, self._shown = lock, folder, None

    def _is_removed(self, folder: Path) -> bool:
        """Somebody removed the folder, or the lock in it: nobody sees us any more."""
        return not (folder / LOCK).exists()

    def _show(self, folder: Path) -> None:
        if self._card != self._shown:
            show(folder, self._card)
            self._shown = self._card


class Unseen:
    """A guard that does nothing, and so need not be seen."""

    def watch(self, folder: Path) -> None:
        """Nobody is told."""

    def say(self, words: str, at: float) -> None:
        """Nobody is told."""

    def end(self, at: float) -> None:
        """Nobody is told."""
