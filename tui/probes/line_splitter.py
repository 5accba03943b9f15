"""Bytes into lines, with bounded memory whatever comes."""

from __future__ import annotations

from collections.abc import Sequence

KIB = 1024


class LineSplitter:
    """Chunks in, whole lines out. The same bytes give the same lines however they are cut.

    Of a line longer than `max_line` bytes the first and last `kept` stay, with a count of what was
    left out between them: what matters stands at either end.
    """

    def __init__(self, max_line: int = 256 * KIB, kept: int = 64 * KIB) -> None:
        if not 0 < 2 * kept <= max_line:
            raise ValueError("both kept ends must fit into a line")
        self._max_line = max_line
        self._kept = kept
        self._held = bytearray()
        self._length = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` ends, without their newline."""
        return self.join(chunk.split(b"\n"))

    def join(self, pieces: Sequence[bytes]) -> list[bytes]:
        """The same for a chunk already split at newlines; the last piece is not ended."""
        first, *rest = pieces
        self._hold(first)
        if not rest:
            return []
        lines = [self.pending]
        lines += [
            piece if len(piece) <= self._max_line else self._cut(piece) for piece in rest[:-1]
        ]
        self.clear()
        self._hold(rest[-1])
        return lines

    @property
    def pending(self) -> bytes:
        """The unfinished last line; empty when there is none."""
        if self._length <= self._max_line:
            return bytes(self._held)
        return self._cut(self._held, self._length)

    def clear(self) -> None:
        """Forget the unfinished line."""
        self._held = bytearray()
        self._length = 0

    def _hold(self, piece: bytes) -> None:
        self._held += piece
        self._length += len(piece)
        if len(self._held) > self._max_line:
            self._held[self._kept : -self._kept] = b""

    def _cut(self, line: bytes | bytearray, length: int | None = None) -> bytes:
        left_out = (len(line) if length is None else length) - 2 * self._kept
        marker = b" ...[%d bytes left out]... " % left_out
        return bytes(line[: self._kept]) + marker + bytes(line[-self._kept :])
