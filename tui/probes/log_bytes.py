"""A growing file as bytes and lines, whoever writes it and however.

Lines end at a line feed and nowhere else. An unfinished line is held back but can be looked at.
Nothing is read into memory whole, nothing is mapped: a mapped file that shrinks ends the process.
"""

from __future__ import annotations

import os
import stat
import weakref
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tui.model.reading import Absence, Unknown
from tui.probes.line_splitter import KIB, LineSplitter

BLOCK_BYTES = 4 * KIB * KIB
FINGERPRINT_BYTES = KIB
FIRST_REDRAWS, LAST_REDRAWS = 4, 8


def decode(line: bytes) -> str:
    """A line as text: bad UTF-8 marked, NULs and the carriage returns at its end dropped."""
    return line.replace(b"\0", b"").rstrip(b"\r").decode("utf-8", "replace")


def last_redraws(text: str) -> tuple[str, ...]:
    """A line cut at its carriage returns: bars drawn over each other, and what followed them.

    Of many, the first and last few. A record may stand behind the last bar without a break.
    """
    if "\r" not in text:
        return (text,)
    drawn = [segment for segment in text.split("\r") if segment]
    if len(drawn) > FIRST_REDRAWS + LAST_REDRAWS:
        drawn = drawn[:FIRST_REDRAWS] + drawn[-LAST_REDRAWS:]
    return tuple(drawn)


class Break(StrEnum):
    """Why the bytes do not follow on from those before."""

    TRUNCATED = "truncated"
    """The same file was emptied, or written anew, and begins again."""
    REPLACED = "replaced"
    """Another file has the name now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """A line and where its first byte stands in its file."""

    offset: int
    content: bytes


@dataclass(frozen=True, slots=True, kw_only=True)
class FileRead:
    """One look at the file. All lines are of one file."""

    lines: tuple[Line, ...] = ()
    pending: bytes = b""
    """The unfinished last line as it stands."""
    size_bytes: int = 0
    written_at: float = 0.0
    """Modification time, epoch seconds."""
    is_behind: bool = False
    """There is more to read at once."""
    broke: Break | None = None
    """What happened before the first of these lines."""
    fault: Unknown | None = None
    """Why the path cannot be read now. A file held open is read on all the same."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Block:
    """Whole lines out of the history."""

    content: bytes
    end_offset: int
    """Where the next block begins."""


class FileFollower:
    """Follows what is written to a path: past truncation, past another file under the name.

    A file that lost its name is read to its end before the next one is begun, and kept as long as
    the next one is empty. An unfinished line at a break is handed over as a line of its own.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._held: _HeldFile | None = None

    def open_at_end(self, window_bytes: int) -> tuple[int, int]:
        """Begin at the first whole line of the last `window_bytes`: where that is, and the size.

        (0, 0) where the path cannot be opened; `read` says why and tries again.
        """
        self.close()
        held = _opened(self.path)
        if isinstance(held, Unknown):
            return 0, 0
        self._held = held
        return held.seek_line(held.status.st_size - window_bytes), held.status.st_size

    def read(self, max_bytes: int = 1024 * KIB) -> FileRead:
        """What was added since the last look, at most `max_bytes` of it."""
        named = _regular(self.path)
        fault = named if isinstance(named, Unknown) else None
        if self._held is None:
            held = fault or _opened(self.path)
            if isinstance(held, Unknown):
                return FileRead(fault=held)
            self._held = held
        try:
            if self._held.is_over(named):
                return self._next_file(max_bytes)
            return self._more_of(self._held, max_bytes, fault)
        except OSError as error:
            self._held.ends_at = self._held.offset
            return FileRead(fault=_fault(self.path, error))

    def history(self, until: int, block_bytes: int = BLOCK_BYTES) -> Iterator[Block]:
        """The file now open from its start to `until`, in blocks of whole lines.

        For another thread: it keeps that file open and shares no position, so a break here does
        not concern it. Ends early where the file was truncated; a disk's errors are the caller's.
        """
        return iter(()) if self._held is None else _blocks(self._held, until, block_bytes)

    def close(self) -> None:
        """Let go of the file."""
        self._held = None

    def _more_of(
        self, held: _HeldFile, max_bytes: int, fault: Unknown | None, broke: Break | None = None
    ) -> FileRead:
        chunk = held.pull(max_bytes)
        if chunk is None and held.pending:
            return held.result((held.end_line(),), is_behind=True, fault=fault)
        if chunk is None:
            held.rewind()
            broke = broke or Break.TRUNCATED
            chunk = held.pull(max_bytes) or b""
        return held.result(held.split(chunk), broke=broke, fault=fault)

    def _next_file(self, max_bytes: int) -> FileRead:
        held = self._held
        if held is not None and held.pending:
            return held.result((held.end_line(),), is_behind=True)
        opened = _opened(self.path)
        if isinstance(opened, Unknown):
            return FileRead(fault=opened)
        self.close()
        self._held = opened
        return self._more_of(opened, max_bytes, None, Break.REPLACED)


class _HeldFile:
    """An open file, how far it was read, and what was read last, to know it again.

    Closed when nobody holds it: the follower, or a history that is still being read.
    """

    def __init__(self, descriptor: int, status: os.stat_result) -> None:
        self.descriptor = descriptor
        weakref.finalize(self, os.close, descriptor)
        self.status = status
        """As of the last look."""
        self.identity = (status.st_dev, status.st_ino)
        self.offset = 0
        self.ends_at: int | None = None
        """How far to read, once another file has the name."""
        self._line_start = 0
        self._splitter = LineSplitter()
        self._head = b""
        self._tail = b""
        self._read_at: tuple[int, int] | None = None

    @property
    def pending(self) -> bytes:
        return self._splitter.pending

    def seek_line(self, position: int) -> int:
        """Go to the first line that begins at `position` or later; without one, right there."""
        self._begin_at(max(0, position))
        place = self.offset - 1
        while self.offset > 0 and (block := os.pread(self.descriptor, 64 * KIB, place)):
            if (found := block.find(b"\n")) >= 0:
                self._begin_at(place + found + 1)
                break
            place += len(block)
        self._head = os.pread(self.descriptor, min(FINGERPRINT_BYTES, self.offset), 0)
        known = min(FINGERPRINT_BYTES, self.offset)
        self._tail = os.pread(self.descriptor, known, self.offset - known)
        return self.offset

    def rewind(self) -> None:
        """Begin again."""
        self._begin_at(0)
        self._head = self._tail = b""
        self._read_at = self.ends_at = None

    def is_over(self, named: os.stat_result | Unknown) -> bool:
        """Another file has the name and has been written to, and this one was read until then."""
        if (
            isinstance(named, Unknown)
            or (named.st_dev, named.st_ino) == self.identity
            or named.st_size == 0
        ):
            self.ends_at = None
            return False
        if self.ends_at is None:
            self.ends_at = os.fstat(self.descriptor).st_size
        return self.offset >= self.ends_at

    def pull(self, max_bytes: int) -> bytes | None:
        """The next bytes; None when they do not follow on from those before.

        Looked for after the read: a truncation before it shows, one after it changes nothing.
        """
        self.status = os.fstat(self.descriptor)
        looked_at = (self.status.st_size, self.status.st_mtime_ns)
        if self.status.st_size < self.offset:
            return None
        if self.status.st_size == self.offset and looked_at == self._read_at:
            return b""
        if self.offset == 0:
            self._begin_at(_first_data(self.descriptor))
        chunk = os.pread(self.descriptor, max_bytes, self.offset)
        if not self._is_the_same():
            return None
        self._read_at = looked_at
        if self.offset == len(self._head) < FINGERPRINT_BYTES:
            self._head += chunk[: FINGERPRINT_BYTES - len(self._head)]
        self._tail = (self._tail + chunk[-FINGERPRINT_BYTES:])[-FINGERPRINT_BYTES:]
        self.offset += len(chunk)
        return chunk

    def split(self, chunk: bytes) -> tuple[Line, ...]:
        """The lines that the bytes just pulled end."""
        pieces = chunk.split(b"\n")
        place = self.offset - len(chunk)
        lines = []
        for content, piece in zip(self._splitter.join(pieces), pieces, strict=False):
            lines.append(Line(offset=self._line_start, content=content))
            place += len(piece) + 1
            self._line_start = place
        return tuple(lines)

    def end_line(self) -> Line:
        """The unfinished line as one that will not be finished."""
        line = Line(offset=self._line_start, content=self.pending)
        self._splitter.clear()
        self._line_start = self.offset
        return line

    def result(
        self,
        lines: tuple[Line, ...],
        *,
        is_behind: bool = False,
        broke: Break | None = None,
        fault: Unknown | None = None,
    ) -> FileRead:
        return FileRead(
            lines=lines,
            pending=self.pending,
            size_bytes=self.status.st_size,
            written_at=self.status.st_mtime,
            is_behind=is_behind or self.offset < self.status.st_size or self.ends_at is not None,
            broke=broke,
            fault=fault,
        )

    def _begin_at(self, offset: int) -> None:
        self.offset = self._line_start = offset
        self._splitter.clear()

    def _is_the_same(self) -> bool:
        before = self.offset - len(self._tail)
        return (
            os.pread(self.descriptor, len(self._tail), before) == self._tail
            and os.pread(self.descriptor, len(self._head), 0) == self._head
        )


def _regular(path: Path) -> os.stat_result | Unknown:
    """The file under a path. Looked at before it is opened: opening a pipe disturbs its writer."""
    try:
        status = path.stat()
    except OSError as error:
        return _fault(path, error)
    if stat.S_ISREG(status.st_mode):
        return status
    if stat.S_ISDIR(status.st_mode):
        return Unknown(why=Absence.ERROR, reason=f"{path} is a folder; name the log file in it")
    if stat.S_ISFIFO(status.st_mode):
        remedy = "let tee write it to a file and name that"
        return Unknown(
            why=Absence.NOT_SUPPORTED, reason=f"{path} is a pipe and can be read once; {remedy}"
        )
    return Unknown(why=Absence.NOT_SUPPORTED, reason=f"{path} is not a regular file")


def _fault(path: Path, error: OSError) -> Unknown:
    match error:
        case FileNotFoundError():
            return Unknown(why=Absence.MISSING, reason=f"{path} is not there")
        case PermissionError():
            remedy = "run as its owner or as root"
            return Unknown(why=Absence.NO_PERMISSION, reason=f"{path} may not be read; {remedy}")
        case _:
            return Unknown(why=Absence.ERROR, reason=f"{path}: {error.strerror}")


def _opened(path: Path) -> _HeldFile | Unknown:
    named = _regular(path)
    if isinstance(named, Unknown):
        return named
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | os.O_NOCTTY)
    except OSError as error:
        return _fault(path, error)
    return _HeldFile(descriptor, os.fstat(descriptor))


def _first_data(descriptor: int) -> int:
    """Past the hole that a writer without O_APPEND leaves where its file was truncated."""
    try:
        return os.lseek(descriptor, 0, os.SEEK_DATA)
    except OSError:  # empty, all hole, or a file system that does not tell
        return 0


def _blocks(held: _HeldFile, until: int, block_bytes: int) -> Iterator[Block]:
    descriptor = held.descriptor
    offset = _first_data(descriptor)
    while offset < until:
        block = os.pread(descriptor, min(block_bytes, until - offset), offset)
        if not block:
            return
        is_last = offset + len(block) >= until
        ended = len(block) if is_last else block.rfind(b"\n") + 1
        start = offset
        if ended:
            content, offset = block[:ended], offset + ended
        else:
            content, offset = _long_line(descriptor, offset, until)
        # Where GPU and system share one memory, page cache is memory that CUDA does not get.
        os.posix_fadvise(descriptor, start, offset - start, os.POSIX_FADV_DONTNEED)
        yield Block(content=content, end_offset=offset)


def _long_line(descriptor: int, offset: int, until: int) -> tuple[bytes, int]:
    """A line longer than a block, cut as any long line, and where the next one begins."""
    splitter = LineSplitter()
    while offset < until:
        block = os.pread(descriptor, min(BLOCK_BYTES, until - offset), offset)
        if not block:
            break
        if (end := block.find(b"\n")) >= 0:
            return splitter.feed(block[: end + 1])[0] + b"\n", offset + end + 1
        splitter.feed(block)
        offset += len(block)
    return splitter.pending, offset
