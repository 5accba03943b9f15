"""Docker's log stream of a container without a TTY, taken apart.

Each frame is one byte for the stream, three zeros, a big-endian length, and that many bytes, which
need not be a line or even whole characters. So each stream gathers its own bytes, and only whole
lines leave, in the order in which they became whole.
"""

from __future__ import annotations

_HEADER = 8
_STREAMS = frozenset((0, 1, 2, 3))
"""stdin, stdout, stderr, and the engine's own errors."""
LONGEST_LINE = 1 << 20
"""A longer one is passed on in pieces, so that memory stays bounded."""


class FrameDemultiplexer:
    """Feed it the stream in pieces of any size; it gives whole lines as bytes.

    A progress bar redraws its line with carriage returns, so that counts as an end too. Bytes that
    are no frames (the container has a TTY after all) are passed on as they are.
    """

    def __init__(self) -> None:
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
