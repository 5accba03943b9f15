"""The deep verify that a person asked for: the side that never blocks.

It runs in a process of its own, which is ended as soon as nobody wants its result. What it finds
comes back by the ledger, as part of a scan of the save folder.
"""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace

from tui.model.checkpoint import Verifying
from tui.model.events import Event, VerifyTold
from tui.model.snapshot import Snapshot
from tui.probes import child

READER = (*child.PYTHON, "tui.probes.verify_reader")
_CHUNK_BYTES = 1 << 16


class VerifyProbe:
    """Follows what the snapshot says is wanted."""

    name = "verify"
    cadence_s = 0.5
    deadline_s = 5.0

    def __init__(self, command: Sequence[str] = READER) -> None:
        self._command = command
        self._reader: _Reader | None = None
        self._asked_at: float | None = None
        """Of the newest one that was started."""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Start, stop or follow a verify."""
        wanted = seen.verifying
        if wanted is None or wanted.fault:
            self.close()
            return ()
        try:
            if wanted.asked_at != self._asked_at:
                self.close()
                self._asked_at = wanted.asked_at
                self._reader = _Reader((*self._command, wanted.path))
            if self._reader is None:  # it ended, and the snapshot is from before that
                return ()
            told = self._reader.follow(wanted)
        except OSError as error:
            told = replace(wanted, fault=f"no process could be started: {error.strerror}")
        except ValueError:  # closed by another thread, at exit
            return ()
        if told is None or told.fault:
            self.close()
        return (VerifyTold(at=now, asked_at=wanted.asked_at, verifying=told),)

    def close(self) -> None:
        """End it."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()


class _Reader:
    """The process that verifies, and what it has told."""

    def __init__(self, command: Sequence[str]) -> None:
        with ExitStack() as undone:
            self._stderr = undone.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(  # noqa: S603 our own command
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
                bufsize=0,
            )
            undone.pop_all()
        assert self._process.stdout is not None
        self._answers = self._process.stdout
        os.set_blocking(self._answers.fileno(), False)
        self._received = b""

    def follow(self, verifying: Verifying) -> Verifying | None:
        """As far as it is now; None where its result is kept."""
        is_over = self._receive()
        *lines, self._received = self._received.split(b"\n")
        for told in map(json.loads, lines):
            if "fault" in told:
                return replace(verifying, fault=told["fault"]) if told["fault"] else None
            verifying = replace(
                verifying,
                done_bytes=told["done"],
                total_bytes=told["total"],
                seconds=told["seconds"],
            )
        if is_over:
            words = child.last_words(self._process, self._stderr)
            return replace(verifying, fault=f"the process that read it {words}")
        return verifying

    def close(self) -> None:
        """End it, wherever it is."""
        child.end(self._process)
        self._answers.close()
        self._stderr.close()

    def _receive(self) -> bool:
        """Take what has come; whether nothing more will."""
        while True:
            try:
                chunk = os.read(self._answers.fileno(), _CHUNK_BYTES)
            except BlockingIOError:
                return False
            if not chunk:
                return True
            self._received += chunk
