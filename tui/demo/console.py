"""The run's output, as `ray job submit` passes it on: one stream, many writers."""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TextIO

from tui.demo import lines
from tui.demo.lines import Actor
from tui.demo.pace import request_stop

_REPLAYED = 10
_BAR_INTERVAL_S = 0.1


class Console:
    """Whole lines only, flushed at once; keeps the tail Ray repeats when a job fails."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._lock = threading.Lock()
        self._tail: deque[str] = deque(maxlen=_REPLAYED)

    def cli(self, level: str, place: str, message: str) -> None:
        """A line of `ray job submit` itself, which is not part of the job's log."""
        self._write(lines.ray_cli(lines.now(), level, place, message))

    def driver(self, text: str) -> None:
        """A line of the driver's own process."""
        self._write(text, text)

    def main(self, place: str, message: str) -> None:
        self.driver(lines.miles(lines.now(), "main", place, message))

    def actor(self, actor: Actor, text: str) -> None:
        """A bare line of a worker."""
        self.driver(actor.prefix + text)

    def log(self, actor: Actor, place: str, message: str) -> None:
        """A Miles record of a worker; every line of it carries Ray's prefix."""
        record = lines.miles(lines.now(), actor.process, place, message)
        self.driver("\n".join(actor.prefix + line for line in record.split("\n")))

    def bars(self, actor: Actor, *bars: str) -> None:
        """Redraws of a bar: in the job's output each carriage return became a line break."""
        self._write(
            actor.prefix + "\n" + "\n".join(bars),
            actor.prefix + "".join("\r" + bar for bar in bars),
        )

    def replay(self) -> None:
        """Repeat the end of the job's log, carriage returns and all."""
        with self._lock:
            tail = tuple(self._tail)
        self._write("\n".join(tail) + "\n")

    def _write(self, text: str, kept: str | None = None) -> None:
        with self._lock:
            if kept is not None:
                self._tail.extend(kept.split("\n"))
            try:
                self._stream.write(text + "\n")
                self._stream.flush()
            except BrokenPipeError:  # nobody reads any more
                request_stop()


class Bar:
    """One tqdm bar of a worker."""

    def __init__(self, console: Console, actor: Actor, name: str, total: int) -> None:
        self._console, self._actor, self._name, self._total = console, actor, name, total
        self._started = self._drawn_at = time.monotonic()
        self._done = 0
        console.bars(actor, self._text())

    def advance_to(self, done: int) -> None:
        """Redraw, at most every so often, and never without progress."""
        if done == self._done:
            return
        self._done = done
        if done < self._total and time.monotonic() - self._drawn_at >= _BAR_INTERVAL_S:
            self._drawn_at = time.monotonic()
            self._console.bars(self._actor, self._text())

    def close(self) -> None:
        """A finished bar is drawn twice: as the last update, and as it closes."""
        self._console.bars(self._actor, self._text(), self._text())

    def _text(self) -> str:
        elapsed_s = time.monotonic() - self._started
        return lines.bar(self._name, self._done, self._total, elapsed_s)
