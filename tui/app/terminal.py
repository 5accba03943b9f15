"""The terminal: Textual's Linux driver, made to leave whatever happens.

It never blocks the loop on a slow terminal, notices one that is gone, keeps stray output of
libraries off the screen, and restores what it changed even when half a sequence was under way.
"""

from __future__ import annotations

import os
import select
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from textual.drivers.linux_driver import LinuxDriver

from tui.app.outlet import Outlet

_CUT_SHORT = "\x18"
"""CAN: whatever sequence was under way ends here, undone."""
_RESTORE = (
    "\x1b[?2026l"  # a synchronised update that was begun
    "\x1b[0m"
    "\x1b[?1016l"  # mouse positions in pixels
)
_PATIENCE_S = 0.3
_STDOUT, _STDERR = 1, 2


class Terminal(LinuxDriver):
    """Standard output, for the app to draw on."""

    encoding = "utf-8"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._outlet: Outlet | None = None
        self._painting = False
        self._stderr_copy: int | None = None

    @property
    def unsent_bytes(self) -> int:
        """What the terminal has not taken yet."""
        return self._outlet.unsent_bytes if self._outlet else 0

    @property
    def gone(self) -> bool:
        """The terminal was closed: nothing can be read or written any more."""
        if self._outlet is not None and self._outlet.broken:
            return True
        poll = select.poll()
        poll.register(self.fileno, 0)
        return any(flags & (select.POLLHUP | select.POLLERR) for _, flags in poll.poll(0))

    def write(self, data: str) -> None:
        if self._outlet is not None:
            self._outlet.write(data, picture=self._painting)

    @contextmanager
    def painting(self, *, whole_screen: bool) -> Iterator[None]:
        """All that is written here is a picture; a whole one makes those before it worthless."""
        if whole_screen and self.unsent_bytes:
            self._drop_pictures()
        self._painting = True
        try:
            yield
        finally:
            self._painting = False

    def _drop_pictures(self) -> None:
        if self._outlet is not None:
            self._outlet.drop_pictures()
            self._outlet.write(_CUT_SHORT)

    def start_application_mode(self) -> None:
        # A stray SIGCONT asks for this while it runs; a second input thread would never end.
        if self._outlet is not None:
            return
        self._outlet = Outlet(_STDOUT, self.encoding)
        self._hush_stderr()
        super().start_application_mode()  # type: ignore[no-untyped-call]

    def stop_application_mode(self) -> None:
        if self._outlet is None:
            return
        self._drop_pictures()
        self.write(_RESTORE)
        super().stop_application_mode()
        self._outlet.drain(_PATIENCE_S)
        self._outlet.close()
        self._outlet = None
        self._restore_stderr()

    def run_input_thread(self) -> None:
        try:
            super().run_input_thread()
        except OSError:
            # A closed terminal. `gone` tells the app, which leaves in order.
            return

    def _hush_stderr(self) -> None:
        """What C libraries print would land on the picture."""
        if not os.isatty(_STDERR):
            return
        self._stderr_copy = os.dup(_STDERR)
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, _STDERR)
        os.close(nowhere)

    def _restore_stderr(self) -> None:
        if self._stderr_copy is not None:
            os.dup2(self._stderr_copy, _STDERR)
            os.close(self._stderr_copy)
            self._stderr_copy = None


class AsciiTerminal(Terminal):
    """One that is sent ASCII only; what Textual's own widgets draw besides becomes `?`."""

    encoding = "ascii"
