"""Docker's log stream of a container without a TTY, taken apart.

Each frame is one byte for the stream, three zeros, a big-endian length, and that many bytes, which
need not be a line or even whole characters. So each stream gathers its own bytes, and only whole
lines leave, in the order in which they became whole.

An engine that limits a container's log replays the newest file of it to whoever follows when it
begins another one (seen in 20.10). Its own stamps tell what was there before.
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable

_HEADER = 8
_STREAMS = frozenset((0, 1, 2, 3))
"""stdin, stdout, stderr, and the engine's own errors."""
LONGEST_LINE = 1 << 20
"""A longer one is passed on in pieces, so that memory stays bounded."""


_PRINTED = frozenset((1, 2))
_STAMP = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}Z ")
_STAMP_BYTES = 31
_STEP_S = 1.0
"""A stamp so far ahead of our clock is of before the clock was set back."""


class _Stamps:
    """Takes the engine's stamp off the head of each frame, and tells what it replays.

    Of one stream: the engine takes the two in side by side, so one may overtake the other.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._head = bytearray()
        self._newest = b""
        self._is_ended = True
        """The newest frame ended its line: one of the same time is no more of it."""
        self._is_replay = False

    def open(self) -> None:
        """A frame begins."""
        self._head.clear()

    def taken_off(self, piece: bytes, *, is_last: bool) -> bytes:
        """What to keep of a piece of the frame."""
        missing = _STAMP_BYTES - len(self._head)
        if missing <= 0:
            return self._kept(piece)
        self._head += piece[:missing]
        if len(self._head) < _STAMP_BYTES and not is_last:
            return b""
        head = bytes(self._head)
        if not _STAMP.fullmatch(head):
            self._is_replay = False
            return self._kept(head + piece[missing:])
        self._is_replay = self._was_there(head)
        return self._kept(piece[missing:])

    def _was_there(self, stamp: bytes) -> bool:
        soon = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(self._clock() + _STEP_S)).encode()
        if self._newest > soon or stamp > self._newest:
            self._newest = stamp
            return False
        return stamp < self._newest or self._is_ended

    def _kept(self, piece: bytes) -> bytes:
        if self._is_replay:
            return b""
        if piece:
            self._is_ended = piece.endswith(b"\n")
        return piece


class FrameDemultiplexer:
    """Feed it the stream in pieces of any size; it gives whole lines as bytes.

    A progress bar redraws its line with carriage returns, so that counts as an end too. Bytes that
    are no frames (the container has a TTY after all) are passed on as they are.
    """

    def __init__(self, *, stamped: bool = False, clock: Callable[[], float] = time.time) -> None:
        """`stamped`: each frame begins with the time the engine took it in."""
        self._stamps = {stream: _Stamps(clock) for stream in _PRINTED} if stamped else {}
        self._header = bytearray()
        self._stream = 0
        self._left = 0
        """Bytes of the present frame still to come."""
        self._partial: dict[int, bytearray] = {}
        self._unframed = False

    def feed(self, chunk: bytes) -> bytes:
        """The lines that these bytes complete."""
        lines = bytearray()
        at = 0
        while at < len(chunk) and not self._unframed:
            if self._left:
                piece = chunk[at : at + self._left]
                at += len(piece)
                self._left -= len(piece)
                if stamps := self._stamps.get(self._stream):
                    piece = stamps.taken_off(piece, is_last=not self._left)
                lines += self._whole_lines(piece)
            else:
                piece = chunk[at : at + _HEADER - len(self._header)]
                at += len(piece)
                self._header += piece
                if len(self._header) == _HEADER:
                    lines += self._open_frame()
        return bytes(lines) + chunk[at:]

    def flush(self) -> bytes:
        """What is left of unfinished lines when the stream ends, each as a line."""
        rest = b"".join(bytes(partial) + b"\n" for partial in self._partial.values() if partial)
        self._partial.clear()
        return rest

    def _open_frame(self) -> bytes:
        """Take the header; what comes back are bytes that turned out to be no header."""
        header = bytes(self._header)
        self._header.clear()
        if header[0] not in _STREAMS or any(header[1:4]):
            self._unframed = True
            return self.flush() + header
        self._stream = header[0]
        if stamps := self._stamps.get(self._stream):
            stamps.open()
        self._left = int.from_bytes(header[4:], "big")
        return b""

    def _whole_lines(self, piece: bytes) -> bytes:
        partial = self._partial.setdefault(self._stream, bytearray())
        end = max(piece.rfind(b"\n"), piece.rfind(b"\r")) + 1
        if not end and len(partial) + len(piece) <= LONGEST_LINE:
            partial += piece
            return b""
        end = end or len(piece)
        lines = bytes(partial) + piece[:end]
        partial[:] = piece[end:]
        return lines
