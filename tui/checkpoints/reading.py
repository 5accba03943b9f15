"""Reading gigabytes next to a run that must not feel it.

Small blocks into one buffer a thread, the page cache given back behind each (on a unified-memory
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
_PAGE_BYTES = os.sysconf("SC_PAGE_SIZE")
_STEP_BYTES = 8
"""A run that is not the last of its tensor ends on a multiple of this: no number is cut."""

_NICENESS = 19
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
        self._descriptor = -1

    def open(self, path: Path) -> None:
        """Go on with another file."""
        self.close()
        self._descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
        os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_SEQUENTIAL)

    def close(self) -> None:
        """Give the file back, with all that is cached of it."""
        if self._descriptor >= 0:
            os.posix_fadvise(self._descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
            os.close(self._descriptor)
        self._descriptor = -1
        self._start = self._end = 0

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
        self._drop_block()
        self._start = self._end = offset
        while self._end < offset + length:
            place = self._view[self._end - offset : length]
            count = os.preadv(self._descriptor, [place], self._end)
            if not count:
                raise CutShortError
            self._end += count

    def _drop_block(self) -> None:
        """Give back the cache of the block that is left. Only whole pages go; the cut one waits."""
        start, end = (place - place % _PAGE_BYTES for place in (self._start, self._end))
        if start < end:
            os.posix_fadvise(self._descriptor, start, end - start, os.POSIX_FADV_DONTNEED)


def be_polite() -> None:
    """Let the calling thread come last, at the disk and at the processor, where that is allowed."""
    with suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, threading.get_native_id(), _NICENESS)
    number = _IOPRIO_SET.get(platform.machine())
    if number is not None:
        ctypes.CDLL(None).syscall(number, _IOPRIO_WHO_THREAD, 0, _IOPRIO_IDLE)
