"""One action a run at a time, across processes; and one guard, by a file of its own.

An open-file-description lock is gone with the last process that has the file open, however it ends,
and who holds it can be asked without taking it.
"""

from __future__ import annotations

import fcntl
import os
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

FILE = "lock"
_FLOCK = struct.Struct("hhxxxxqqixxxx")
"""`struct flock` of 64-bit Linux: type, whence, start, length, pid."""


class LockHeldError(Exception):
    """Another process has it."""

    def __init__(self, holder: str) -> None:
        super().__init__(f"{holder} is under way")
        self.holder = holder


@contextmanager
def locked(folder: Path, holder: str, file: str = FILE) -> Iterator[None]:
    """Hold the run's lock of that name, saying who does.

    Raises:
        LockHeldError: another has it.
        OSError: the lock file cannot be used.
    """
    number = os.open(folder / file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        try:
            fcntl.fcntl(number, fcntl.F_OFD_SETLK, _whole(fcntl.F_WRLCK))
        except (BlockingIOError, PermissionError):
            raise LockHeldError(_holder(number)) from None
        os.ftruncate(number, 0)
        os.pwrite(number, holder.encode(), 0)
        yield
    finally:
        os.close(number)


def holder_of(folder: Path, file: str = FILE) -> str | None:
    """Who holds it now, such as the id of the action that is being carried out; None: nobody."""
    with suppress(OSError):
        number = os.open(folder / file, os.O_RDWR | os.O_CLOEXEC)
        try:
            answer = fcntl.fcntl(number, fcntl.F_OFD_GETLK, _whole(fcntl.F_WRLCK))
            held = _FLOCK.unpack(answer)[0] != fcntl.F_UNLCK
            return _holder(number) if held else None
        finally:
            os.close(number)
    return None


def _whole(kind: int) -> bytes:
    return _FLOCK.pack(kind, os.SEEK_SET, 0, 0, 0)


def _holder(number: int) -> str:
    return os.pread(number, 200, 0).decode("utf-8", "replace")
