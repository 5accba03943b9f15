"""The threads of a verify: they take piece after piece, and one thread is told how far they are."""

from __future__ import annotations

import errno
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tui.checkpoints.plan import Piece, Plan, PlannedFile
from tui.checkpoints.reading import CutShortError, Window, be_polite
from tui.checkpoints.sums import Tally, check_plain, check_zip

THREADS = 2
_TELL_S = 0.1

Report = Callable[[int, int], None]
"""Told now and then, by the calling thread: bytes done, and all there are."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    """One piece and what it came to."""

    file: PlannedFile
    piece: Piece
    tally: Tally
    unread: str = ""
    """Why nothing can be said of it."""


def check_all(
    plan: Plan,
    cancel: threading.Event,
    report: Report | None = None,
    *,
    threads: int = THREADS,
) -> list[Checked]:
    """Check every piece. Raises `CancelledError` when it is cancelled."""
    queue = deque((file, piece) for file in plan.files for piece in file.pieces)
    over = threading.Event()
    workers = [_Worker(queue, lambda: over.is_set() or cancel.is_set()) for _ in range(threads)]
    done, total = 0, plan.total_bytes
    try:
        for worker in workers:
            worker.start()
        while running := [worker for worker in workers if worker.is_alive()]:
            running[0].join(_TELL_S)
            done = max(done, sum(worker.done_bytes for worker in workers))
            if report:
                report(done, total)
    finally:
        over.set()
    for worker in workers:
        if worker.error is not None:
            raise worker.error
    return [checked for worker in workers for checked in worker.results]


class _Worker(threading.Thread):
    """Takes pieces in the order of the plan until none is left."""

    def __init__(
        self, queue: deque[tuple[PlannedFile, Piece]], is_over: Callable[[], bool]
    ) -> None:
        super().__init__(daemon=True, name="verify")
        self.results: list[Checked] = []
        self.error: Exception | None = None
        self._queue = queue
        self._window = Window(is_over)
        self._finished_bytes = 0
        self._file: PlannedFile | None = None

    @property
    def done_bytes(self) -> int:
        """Of whole pieces, and of the one at hand."""
        return self._finished_bytes + self._window.run_bytes

    def run(self) -> None:
        be_polite()
        try:
            while taken := self._next():
                self._take(*taken)
        except Exception as error:  # noqa: BLE001 - raised again in the thread that waits
            self.error = error
        finally:
            self._window.close()

    def _next(self) -> tuple[PlannedFile, Piece] | None:
        try:
            return self._queue.popleft()
        except IndexError:
            return None

    def _take(self, file: PlannedFile, piece: Piece) -> None:
        tally, unread = Tally(), ""
        try:
            if file is not self._file:
                self._file = None
                self._window.open(file.path)
                self._file = file
            check = check_zip if piece.is_zip else partial(check_plain, dtype=piece.dtype)
            tally = check(self._window, piece.offset, piece.length)
        except CutShortError:
            tally.faults.append("the file ends within it")
        except OSError as error:
            if error.errno == errno.EIO:
                tally.faults.append("the disk cannot read it")
            else:
                unread = error.strerror or str(error)
        self.results.append(Checked(file=file, piece=piece, tally=tally, unread=unread))
        self._window.run_bytes = 0
        self._finished_bytes += piece.length
