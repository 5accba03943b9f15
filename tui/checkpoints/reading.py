"""Reading gigabytes next to a run that must not feel it.

Small blocks into one buffer a thread, the page cache given back behind them (on a unified-memory
box it is GPU memory), the disk's idle class, and a low priority for the processor.
"""

from __future__ import annotations

import ctypes
import os
import platform
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

BLOCK_BYTES = 1 << 20
_UNIT_BYTES = 8 << 20
"""The cache is given back in such parts of a file. The kernel holds it in folios of up to some
megabytes, aligned to their size; a call that covers a part of one makes every processor flush its
lists, and gives nothing back."""
_STEP_BYTES = 8
"""A run that is not the last of its tensor ends on a multiple of this: no number is cut."""

NICENESS = 19
_IOPRIO_SET = {"x86_64": 251, "aarch64": 30}
_IOPRIO_WHO_THREAD = 1
_IOPRIO_IDLE = 3 << 13


class CancelledError(Exception):
    """The caller does not want the rest."""


class CutShortError(Exception):
    """The file ends before what should be in it."""


class Window:
    """One file, seen through one block that moves over it. Offsets are those of the file.

    What it returns as a place in `block` is good until the next call.
    """

    def __init__(self, is_over: Callable[[], bool]) -> None:
        self.block = bytearray(BLOCK_BYTES)
        self.run_bytes = 0
        """Bytes of tensors that were handed out, for progress."""
        self._view = memoryview(self.block)
        self._is_over = is_over
        self._start = self._end = 0
        self._held = 0
        """From here on the cache may hold what was read; a whole unit."""
        self._descriptor = -1

    def open(self, path: Path) -> None:
        """Go on with another file."""
        self.close()
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)

    def close(self) -> None:
        """Give the file back, with all that is cached of it."""
        if self._descriptor >= 0:
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(self._descriptor)
        self._descriptor = -1
        self._start = self._end = self._held = 0

    def copied(self, offset: int, length: int) -> bytes:
        """Bytes of the file; for its small structures."""
        if length > BLOCK_BYTES:
            return b"".join(
                self.copied(offset + done, min(BLOCK_BYTES, length - done))
                for done in range(0, length, BLOCK_BYTES)
            )
        if not self._start <= offset <= offset + length <= self._end:
            self._load(offset, length)
        start = offset - self._start
        return bytes(self._view[start : start + length])

    def run(self, offset: int, left: int) -> tuple[int, int]:
        """The next bytes of a tensor of which `left` are to come, as a place in `block`."""
        length = self._ready(offset, left)
        if not length:
            self._load(offset, min(BLOCK_BYTES, left))
            length = self._ready(offset, left)
        self.run_bytes += length
        start = offset - self._start
        return start, start + length

    def load(self, offset: int, length: int) -> None:
        """Read at once what will be asked for in small parts: no more than a block."""
        self._load(offset, length)

    def view(self, start: int, stop: int) -> memoryview:
        return self._view[start:stop]

    def _ready(self, offset: int, left: int) -> int:
        if not self._start <= offset < self._end:
            return 0
        length = min(left, self._end - offset)
        return length if length == left else length - length % _STEP_BYTES

    def _load(self, offset: int, length: int) -> None:
        if self._is_over():
            raise CancelledError
        self._give_back(offset)
        self._start = self._end = offset
        while self._end < offset + length:
            place = self._view[self._end - offset : length]
            count = os.preadv(self._descriptor, [place], self._end)
            if not count:
                raise CutShortError
            self._end += count

    def _give_back(self, following: int) -> None:
        """Before `following` is read: the units that are behind, all of them before a leap."""
        is_near = abs(following - self._end) < _UNIT_BYTES
        until = _unit_start(self._end if is_near else self._end + _UNIT_BYTES - 1)
        if until > self._held:
            length = until - self._held
            os.posix_fadvise(self._descriptor, self._held, length, os.POSIX_FADV_DONTNEED)
        begin = _unit_start(following)
        self._held = min(max(self._held, until), begin) if is_near else begin


def _unit_start(offset: int) -> int:
    return offset - offset % _UNIT_BYTES


def be_polite() -> None:
    """Let the calling thread come last, at the disk and at the processor, where that is allowed."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), NICENESS)
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None:
        ctypes.CDLL(None).syscall(number, _IOPRIO_WHO_THREAD, 0, _IOPRIO_IDLE)
