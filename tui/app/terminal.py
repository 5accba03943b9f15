"""The terminal: Textual's Linux driver, made to leave whatever happens.

It never blocks the loop on a slow terminal, notices one that is gone, leaves at once, keeps stray
output of libraries off the screen, and restores what it changed even when half a sequence was under
way. What is pasted is text from outside like any other.
"""

from __future__ import annotations

import os
import select
from codecs import getincrementaldecoder
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from textual._xterm_parser import XTermParser
from textual.drivers.linux_driver import LinuxDriver
from textual.events import Paste
from textual.message import Message

from tui.app.outlet import Outlet
from tui.app.pasted import PasteGuard
from tui.model.text import harmless

_CUT_SHORT = "\x18"
"""CAN: whatever sequence was under way ends here, undone."""
_RESTORE = (
    "\x1b[?2026l"  # a synchronised update that was begun
    "\x1b[0m"
    "\x1b[?1016l"  # mouse positions in pixels
)
_PATIENCE_S = 2.0
_TICK_MS = 100
"""How often the parser is asked whether an escape key was only that."""
_READ_BYTES = 4096
_STDOUT, _STDERR = 1, 2


class Terminal(LinuxDriver):
    """Standard output, for the app to draw on."""

    encoding = "utf-8"

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._outlet: Outlet | None = None
        self._wake: int | None = None
        """Written to, it ends the input thread's wait."""
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
        self._wake = os.eventfd(0, os.EFD_CLOEXEC)
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
        if self._wake is not None:
            os.close(self._wake)
            self._wake = None
        self._restore_stderr()

    def disable_input(self) -> None:
        if self._wake is not None:
            os.eventfd_write(self._wake, 1)
        super().disable_input()

    def run_input_thread(self) -> None:
        """Pass on what the terminal sends until `disable_input`, or until there is none any more.

        Textual's own loop takes 0.2 s to end, and ends the app at a byte that is no UTF-8.
        """
        assert self._wake is not None
        parser = XTermParser(self._debug)
        decoder, guard = getincrementaldecoder("utf-8")("replace"), PasteGuard()
        poll = select.poll()
        poll.register(self.fileno, select.POLLIN)
        poll.register(self._wake, select.POLLIN)
        while not self.exit_event.is_set():
            if any(fd == self.fileno for fd, _ in poll.poll(_TICK_MS)):
                sent = self._received()
                if not sent:
                    return  # `gone` tells the app, which leaves in order
                text = guard.feed(decoder.decode(sent))
                # To the parser an empty text is the end; here it is half a character.
                for message in parser.feed(text) if text else ():
                    self.process_message(message)
            for message in parser.tick():
                self.process_message(message)

    def process_message(self, message: Message) -> None:
        if isinstance(message, Paste):
            message = Paste(harmless(message.text))
        super().process_message(message)

    def _received(self) -> bytes:
        """Bytes from the terminal; none from one that was closed."""
        try:
            return os.read(self.fileno, _READ_BYTES)
        except OSError:
            return b""

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
