"""Bytes to the terminal, without ever making the caller wait for the terminal.

A slow SSH link blocks a write for as long as it likes. Here that blocks one daemon thread; the
screen sees how much is still unsent and holds back its next picture instead of queueing it.
"""

from __future__ import annotations

import os
import threading
from collections import deque
from time import monotonic
from typing import NamedTuple

_PIECE_BYTES = 512
"""Small, so that what is discarded at the end is nearly all that was not sent."""


class _Piece(NamedTuple):
    text: bytes
    picture: bool


class Outlet:
    """A queue of text and the thread that writes it to a file descriptor."""

    def __init__(self, fd: int, encoding: str = "utf-8") -> None:
        self._fd = fd
        self._encoding = encoding
        self._queue: deque[_Piece] = deque()
        self._changed = threading.Condition()
        self._unsent_bytes = 0
        self._closing = False
        self._broken = False
        threading.Thread(target=self._run, name="terminal-output", daemon=True).start()

    @property
    def unsent_bytes(self) -> int:
        """What was given to `write` and has not been taken by the kernel."""
        return self._unsent_bytes

    @property
    def broken(self) -> bool:
        """The terminal is gone; everything written is dropped."""
        return self._broken

    def write(self, text: str, *, picture: bool = False) -> None:
        """Queue the text; a picture may be dropped again while it waits."""
        piece = _Piece(text.encode(self._encoding, "replace"), picture)
        with self._changed:
            if not (self._broken or self._closing):
                self._queue.append(piece)
                self._unsent_bytes += len(piece.text)
                self._changed.notify_all()

    def drop_pictures(self) -> None:
        """Drop what was queued of pictures; of one under way, what was not sent."""
        with self._changed:
            kept = [piece for piece in self._queue if not piece.picture]
            dropped = sum(len(piece.text) for piece in self._queue if piece.picture)
            self._queue = deque(kept)
            self._unsent_bytes -= dropped

    def drain(self, patience_s: float) -> bool:
        """Wait until all is sent, not longer than that; whether it was."""
        until = monotonic() + patience_s
        with self._changed:
            while self._unsent_bytes and not self._broken:
                left = until - monotonic()
                if left <= 0:
                    return False
                self._changed.wait(left)
        return not self._broken

    def close(self) -> None:
        """Take no more, and end the thread when the kernel lets go of it."""
        with self._changed:
            self._closing = True
            self._changed.notify_all()

    def _run(self) -> None:
        while (piece := self._next_piece()) is not None:
            try:
                sent = os.write(self._fd, piece.text)
            except OSError:
                self._give_up()
                return
            with self._changed:
                self._unsent_bytes -= sent
                if sent < len(piece.text):
                    self._queue.appendleft(piece._replace(text=piece.text[sent:]))
                self._changed.notify_all()

    def _next_piece(self) -> _Piece | None:
        """Wait for the next piece to write; None at the end."""
        with self._changed:
            while not self._queue:
                if self._closing:
                    return None
                self._changed.wait()
            piece = self._queue.popleft()
            end = _end_of_piece(piece.text)
            if end < len(piece.text):
                self._queue.appendleft(piece._replace(text=piece.text[end:]))
            return piece._replace(text=piece.text[:end])

    def _give_up(self) -> None:
        with self._changed:
            self._broken = True
            self._queue.clear()
            self._unsent_bytes = 0
            self._changed.notify_all()


def _end_of_piece(text: bytes) -> int:
    """Where to cut: before a control sequence, so that what is dropped leaves none half sent."""
    if len(text) <= _PIECE_BYTES:
        return len(text)
    before_sequence = text.rfind(b"\x1b", 1, _PIECE_BYTES)
    return before_sequence if before_sequence > 0 else _PIECE_BYTES
