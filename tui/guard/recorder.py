"""The black box of a run: what is published is kept on disk, whatever becomes of the machine."""

from __future__ import annotations

import logging
import threading
from collections import deque
from pathlib import Path

from tui.guard.box import this_box, this_moment
from tui.guard.ring import DAYS, LIMIT_BYTES
from tui.guard.sample import Moment
from tui.guard.tape import SAMPLES, Tape
from tui.model.snapshot import Snapshot
from tui.runs.lock import holder_of

_LOG = logging.getLogger("milepost")
_WAITING = 64
"""Looks kept while a write is stuck behind a checkpoint being saved; then the oldest goes."""
_CLOSE_S = 1.0


class Recorder:
    """Records one run from any number of calls of `record`, on a thread of its own.

    Args:
        folder: the run's state folder; samples go to a folder in it.
        days: how many days are kept, by hours in which something was recorded.
        limit_bytes: and how much in all.
    """

    def __init__(self, folder: Path, *, days: int = DAYS, limit_bytes: int = LIMIT_BYTES) -> None:
        self._tape = Tape(folder, this_box(), days=days, limit_bytes=limit_bytes)
        self._waiting: deque[tuple[Moment, Snapshot]] = deque(maxlen=_WAITING)
        self._wake = threading.Event()
        self._closing = False
        self._fault = ""
        self._thread = threading.Thread(target=self._run, name="recorder", daemon=True)

    @property
    def notice(self) -> str:
        """Why nothing is recorded now, another recorder included; empty while it is."""
        return self._tape.notice

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def record(self, snapshot: Snapshot) -> None:
        """Keep this, if it is due. Any thread; returns at once."""
        self._waiting.append((this_moment(), snapshot))
        self._wake.set()

    def close(self) -> None:
        """Write what waits, say that it ended, and let another record."""
        self._closing = True
        self._wake.set()
        self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._closing:
            self._wake.wait()
            self._wake.clear()
            self._take()
        self._take()
        self._tape.end(this_moment())

    def _take(self) -> None:
        looks = [self._waiting.popleft() for _ in range(len(self._waiting))]
        try:
            self._tape.take(looks)
        except Exception as fault:  # noqa: BLE001 - a black box with a bug goes on recording
            if repr(fault) != self._fault:
                self._fault = repr(fault)
                _LOG.exception("a look was not recorded")


def recorder_of(folder: Path) -> str | None:
    """Who records the run of this state folder now, such as `process 4242`; None: nobody does."""
    return holder_of(folder / SAMPLES)
