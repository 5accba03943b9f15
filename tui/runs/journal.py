"""The journal of a run as a file: appended to and synced, read back whole."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterable, Iterator
from pathlib import Path

from tui.model.action import ActionRecord
from tui.model.journal import (
    Entry,
    Remark,
    actions_of,
    entry_of,
    entry_text,
    remark_of,
    remark_text,
)

FILE = "journal.jsonl"


class Journal:
    """One run's journal, in its state folder."""

    def __init__(self, folder: Path) -> None:
        self._path = folder / FILE

    def write(self, entry: Entry) -> None:
        """Append it, and return when it is on disk. Raises OSError."""
        self._append(entry_text(entry))

    def remark(self, remark: Remark) -> None:
        """The same for a remark."""
        self._append(remark_text(remark))

    def _append(self, line: str) -> None:
        raw = line.encode("utf-8", "backslashreplace") + b"\n"
        number = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        try:
            raw = (b"\n" if _is_torn(number) else b"") + raw
            if os.write(number, raw) < len(raw):  # what a disk does that fills up
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), str(self._path))
            os.fsync(number)
        finally:
            os.close(number)

    def size_bytes(self) -> int:
        """It only grows; 0 where there is none."""
        try:
            return self._path.stat().st_size
        except OSError:
            return 0

    def entries(self) -> Iterator[Entry]:
        """All that can be read, the oldest first; none where there is no journal."""
        for line in self._lines():
            if (entry := entry_of(line)) is not None:
                yield entry

    def remarks(self) -> Iterator[Remark]:
        """The same of what a guard said."""
        for line in self._lines():
            if (remark := remark_of(line)) is not None:
                yield remark

    def actions(self) -> tuple[ActionRecord, ...]:
        """The actions it tells of, in the order they began."""
        return actions_of(self.entries())

    def _lines(self) -> Iterable[str]:
        try:
            return self._path.read_bytes().decode("utf-8", "replace").split("\n")
        except FileNotFoundError:
            return ()


def _is_torn(number: int) -> bool:
    """Whether its last line has no end, as a power failure leaves it."""
    size = os.fstat(number).st_size
    return size > 0 and os.pread(number, 1, size - 1) != b"\n"
