"""A program in a real terminal of some size, its screen emulated so that a test can read it."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import select
import struct
import termios
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

import pyte


class Terminal:
    """Runs `argv`; use as a context, which ends the program if it is still there."""

    def __init__(self, argv: Sequence[str], size: tuple[int, int] = (160, 50), **env: str) -> None:
        self.screen = pyte.Screen(*size)
        self._stream = pyte.ByteStream(self.screen)
        self.code: int | None = None
        self.raw = bytearray()
        """All that was received."""
        self.pid, self._fd = pty.fork()
        if self.pid == 0:
            os.environ.update(TERM="xterm-256color", LANG="C.UTF-8", **env)
            os.execvp(argv[0], list(argv))
        size_words = struct.pack("HHHH", size[1], size[0], 0, 0)
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, size_words)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self.code is None:
            os.kill(self.pid, 9)
            os.waitpid(self.pid, 0)
        if self._fd >= 0:
            os.close(self._fd)

    @property
    def text(self) -> str:
        """What stands on the screen. Of a wide character the second cell holds nothing."""
        columns = range(self.screen.columns)
        rows = (self.screen.buffer[y] for y in range(self.screen.lines))
        return "\n".join("".join(row[x].data for x in columns) for row in rows)

    def until(self, seen: Callable[[str], bool], deadline_s: float = 200.0) -> str:
        """Wait until the screen fulfils the condition; the screen."""
        end = time.monotonic() + deadline_s
        while not seen(self.text):
            assert time.monotonic() < end, f"never came true:\n{self.text}"
            self._feed(0.1)
        return self.text

    def shows(self, *words: str, deadline_s: float = 200.0) -> str:
        """Wait until all words stand on the screen."""
        return self.until(lambda text: all(word in text for word in words), deadline_s)

    def type(self, keys: str) -> None:
        """Press keys."""
        self.send(keys.encode())

    def send(self, typed: bytes) -> None:
        """Bytes as a terminal sends them."""
        while typed:
            typed = typed[os.write(self._fd, typed[:512]) :]
            self._feed(0.0)

    def leave(self, keys: str = "q", deadline_s: float = 120.0) -> int:
        """Press keys and wait for the end; the exit code."""
        self.type(keys)
        return self.ends(deadline_s)

    def ends(self, deadline_s: float = 120.0, bytes_per_s: int | None = None) -> int:
        """Wait for the end; the exit code."""
        end = time.monotonic() + deadline_s
        while self.code is None:
            assert time.monotonic() < end, f"it does not end:\n{self.text}"
            self._feed(0.02, bytes_per_s)
            ended, status = os.waitpid(self.pid, os.WNOHANG)
            if ended:
                self.code = os.waitstatus_to_exitcode(status)
        while self._feed(0.0):
            pass
        return self.code

    def wait(self, seconds: float, bytes_per_s: int | None = None) -> None:
        """Take what comes within this time, no faster than that."""
        end = time.monotonic() + seconds
        while (left := end - time.monotonic()) > 0:
            self._feed(left, bytes_per_s)

    def resize(self, width: int, height: int) -> None:
        """Take another size, and say so."""
        fcntl.ioctl(self._fd, termios.TIOCSWINSZ, struct.pack("HHHH", height, width, 0, 0))
        self.screen.resize(height, width)

    def hang_up(self) -> None:
        """Be closed, as by a lost connection."""
        os.close(self._fd)
        self._fd = -1

    @property
    def resident_bytes(self) -> int:
        """Memory of the program."""
        with Path(f"/proc/{self.pid}/statm").open(encoding="ascii") as statm:
            return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def _feed(self, patience_s: float, bytes_per_s: int | None = None) -> bool:
        """Take what came, waiting for it no longer than that; whether anything did."""
        if self._fd < 0:
            time.sleep(patience_s)
            return False
        if not select.select([self._fd], [], [], patience_s)[0]:
            return False
        try:
            received = os.read(self._fd, 65536 if bytes_per_s is None else bytes_per_s // 10)
        except OSError:  # the program has ended
            time.sleep(patience_s)
            return False
        self.raw += received
        self._stream.feed(received)
        if bytes_per_s is not None:
            time.sleep(len(received) / bytes_per_s)
        return True

    @property
    def received_bytes(self) -> int:
        """How many of them."""
        return len(self.raw)

    @property
    def is_clean(self) -> bool:
        """The shell gets it back as it was: its own screen, its cursor, no mouse or paste mode."""
        modes = {
            mode: state == b"h" for mode, state in re.findall(rb"\x1b\[\?(\d+)([hl])", self.raw)
        }
        return modes.get(b"25") is True and {mode for mode, on in modes.items() if on} <= {
            b"25",
            b"7",
        }
