"""Tells channels what is new: each on a thread of its own, tried again, never waited for."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import replace

from tui.guard.channels import Channel, NotToldError
from tui.guard.notice import Notice
from tui.model.snapshot import Level

WAITING = 64
"""Notices kept for a channel that does not take them; then the oldest that is not critical goes."""
_TRIES = 12
"""Of one notice: what a channel refuses for what it is must not hold up all that follow."""
_FIRST_PAUSE_S, _LONGEST_PAUSE_S = 2.0, 600.0
_PACE_S = 1.0
"""Between two notices: services refuse whoever writes faster."""
_CLOSE_S = 3.0
_LOG = logging.getLogger("milepost")


class Notifier:
    """Hands every notice to every channel, with the name of this box."""

    def __init__(
        self, channels: Sequence[Channel], *, host: str = "", pause_s: float = _FIRST_PAUSE_S
    ) -> None:
        self._posts = tuple(_Post(channel, pause_s) for channel in channels)
        self._host = host

    def start(self) -> None:
        """Begin."""
        for post in self._posts:
            post.thread.start()

    def tell(self, notice: Notice) -> None:
        """Have it told. Any thread; returns at once."""
        for post in self._posts:
            post.put(replace(notice, host=self._host))

    def close(self) -> None:
        """Try once what waits, for a moment; then leave it."""
        end = time.monotonic() + _CLOSE_S
        for post in self._posts:
            post.close()
        for post in self._posts:
            if post.thread.is_alive():
                post.thread.join(max(0.0, end - time.monotonic()))

    @property
    def channels(self) -> tuple[str, ...]:
        """Each channel by its name, with what is wrong with it."""
        return tuple(post.words for post in self._posts)


class _Post:
    """What waits for one channel, and the thread that brings it there."""

    def __init__(self, channel: Channel, pause_s: float) -> None:
        self._channel = channel
        self._first_pause_s = self._pause_s = pause_s
        self._waiting: deque[Notice] = deque()
        self._news = threading.Condition()
        self._closing = threading.Event()
        self._dropped = 0
        self._fault = ""
        self.thread = threading.Thread(target=self._run, name=channel.name, daemon=True)

    @property
    def words(self) -> str:
        """`ntfy://•••`, or with why it tells nothing now."""
        lost = f", {self._dropped} dropped" if self._dropped else ""
        return self._channel.name + (f": not told: {self._fault}{lost}" if self._fault else "")

    def put(self, notice: Notice) -> None:
        with self._news:
            self._waiting.append(notice)
            if len(self._waiting) > WAITING:
                calm = (each for each in self._waiting if each.level is not Level.CRITICAL)
                self._waiting.remove(next(calm, self._waiting[0]))
                self._dropped += 1
            self._news.notify()

    def close(self) -> None:
        self._closing.set()
        with self._news:
            self._news.notify()

    def _run(self) -> None:
        while (notice := self._next()) is not None:
            self._deliver(notice)

    def _next(self) -> Notice | None:
        """The oldest that waits; None: there is none, and none will come."""
        with self._news:
            while not self._waiting:
                if self._closing.is_set():
                    return None
                self._news.wait()
            return self._waiting.popleft()

    def _deliver(self, notice: Notice) -> None:
        for _ in range(_TRIES):
            dropped = self._dropped
            if self._is_taken(notice, dropped):
                self._pause_s = self._first_pause_s
                with self._news:
                    self._dropped -= dropped
                self._closing.wait(_PACE_S)
                return
            if self._closing.wait(self._pause_s):
                break
            self._pause_s = min(2.0 * self._pause_s, _LONGEST_PAUSE_S)
        with self._news:
            self._dropped += 1

    def _is_taken(self, notice: Notice, dropped: int) -> bool:
        try:
            self._channel.send(notice, dropped)
        except NotToldError as fault:
            self._failed(str(fault))
            return False
        except Exception as fault:  # noqa: BLE001 - a service with a bug must not end its thread
            # Its words may hold the address.
            self._failed(type(fault).__name__)
            return False
        if self._fault:
            _LOG.info("%s tells again", self._channel.name)
        self._fault = ""
        return True

    def _failed(self, told: str) -> None:
        if told != self._fault:
            _LOG.warning("%s: not told: %s", self._channel.name, told)
        self._fault = told
