"""The files of a black box: appended to, a new one each hour, the oldest dropped.

How long a file has been written to is told by the clock that cannot be set, so a clock that jumps
drops nothing.
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import ExitStack
from pathlib import Path

from tui.guard.sample import Moment
from tui.runs.lock import locked

DAYS = 7
LIMIT_BYTES = 64 << 20
HOUR_S = 3600.0
_FILES = 16
"""At least so many make up the limit."""
_NAME = re.compile(r"(?P<number>\d{8})-(?P<begun_at>\d{1,12})\.samples")


class Ring:
    """What is recorded of one run, by one recorder at a time."""

    def __init__(self, folder: Path, *, days: int = DAYS, limit_bytes: int = LIMIT_BYTES) -> None:
        self._folder = folder
        self._most_files = days * 24 + 1
        self._file_bytes = limit_bytes // _FILES
        self._old_bytes = limit_bytes - self._file_bytes
        self._lock: ExitStack | None = None
        self._file: int | None = None
        self._opened_uptime_s = 0.0

    def begin(self, moment: Moment, holder: str) -> bool:
        """Have a file to append to, and whether another one was begun.

        Raises:
            LockHeldError: another records this run.
            OSError: the folder cannot be used.
        """
        self._hold(holder)
        if self._file is not None and not self._is_over(self._file, moment):
            return False
        self._close()
        self._open(moment)
        return True

    def append(self, lines: bytes) -> None:
        """Write, and see it on the disk. Raises OSError."""
        assert self._file is not None
        while lines:
            lines = lines[os.write(self._file, lines) :]
        os.fdatasync(self._file)

    def release(self) -> None:
        """Let another record."""
        self._close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _hold(self, holder: str) -> None:
        if self._lock is not None:
            return
        self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        with ExitStack() as stack:
            stack.enter_context(locked(self._folder, holder))
            self._lock = stack.pop_all()

    def _is_over(self, file: int, moment: Moment) -> bool:
        status = os.fstat(file)
        if status.st_nlink == 0:
            # Whoever removed it may have removed the lock with it: begin from the lock on.
            raise FileNotFoundError(errno.ENOENT, "the recorded samples were removed")
        is_old = moment.uptime_s - self._opened_uptime_s >= HOUR_S
        return is_old or status.st_size >= self._file_bytes

    def _open(self, moment: Moment) -> None:
        files = ring_files(self._folder)
        last = files[-1] if files else None
        if last is not None and self._goes_on(last, moment):
            files.pop()
        else:
            number = _named(last)[0] + 1 if last is not None else 1
            last = self._folder / f"{number:08d}-{max(0, int(moment.at))}.samples"
        self._drop(files)
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_NOFOLLOW | os.O_CLOEXEC
        self._file = os.open(last, flags, 0o600)
        self._opened_uptime_s = moment.uptime_s
        _sync_folder(self._folder)

    def _goes_on(self, last: Path, moment: Moment) -> bool:
        """A recorder that begins within the hour goes on in the file of the one before."""
        is_young = 0.0 <= moment.at - _named(last)[1] < HOUR_S
        return is_young and last.stat().st_size < self._file_bytes

    def _drop(self, old: list[Path]) -> None:
        """Drop the oldest until there are few enough, and all together are small enough."""
        sizes = [file.stat().st_size for file in old]
        while len(old) >= self._most_files or sum(sizes) > self._old_bytes:
            old.pop(0).unlink(missing_ok=True)
            sizes.pop(0)

    def _close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


def ring_files(folder: Path) -> list[Path]:
    """The files in a folder, oldest first. Raises OSError."""
    named = (file for file in folder.iterdir() if _NAME.fullmatch(file.name))
    return sorted(named, key=_named)


def _named(file: Path) -> tuple[int, float]:
    name = _NAME.fullmatch(file.name)
    assert name is not None
    return int(name["number"]), float(name["begun_at"])


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
