"""GPUs, as the reader process tells them: the side that never blocks.

A tick that the reader misses brings the values known last, with the times they were measured at,
and says how long NVML has been silent. The same reader is waited for: one that hangs in the driver
cannot be hurried, and a second one would hang beside it. The kernel ends the reader with the thread
that started it, which is the one that calls `read`.
"""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import ExitStack

from tui.model.events import Event, GpusRead, ProbeMissed
from tui.model.gpu import GpuReport
from tui.model.reading import NOT_ASKED, Absence, Reading, Unknown
from tui.model.snapshot import Snapshot
from tui.probes import child
from tui.probes.gpu_wire import DECODING_ERRORS, decoded

READER = (*child.PYTHON, "tui.probes.gpu_reader")

STUCK_S = 900.0
"""Longer than any NVML call known to have come back."""
LONGEST_BACKOFF_S = 300.0
STEADY_S = 60.0
"""A reader that lived this long had not failed at its start."""


class _ReaderGoneError(Exception):
    """The reader process ended, or answers with something else."""


class _Reader:
    """One reader process: at most one request on its way."""

    def __init__(self, command: Sequence[str]) -> None:
        with ExitStack() as undone:
            self._stderr = undone.enter_context(tempfile.TemporaryFile())
            self._process = subprocess.Popen(  # noqa: S603 our own command
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=self._stderr,
                start_new_session=True,
                bufsize=0,
            )
            undone.pop_all()
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._answers = self._process.stdin, self._process.stdout
        self._poll = select.poll()
        self._poll.register(self._answers, select.POLLIN)
        self._received = bytearray()
        self._asked_at: float | None = None

    def ask(self, at: float) -> float:
        """Send a request unless one is on its way; the time of the one to wait for."""
        if self._asked_at is None:
            try:
                self._requests.write(json.dumps(at).encode() + b"\n")
            except BrokenPipeError as error:
                raise _ReaderGoneError(self._last_words()) from error
            self._asked_at = at
        return self._asked_at

    def answer(self, until: float) -> Reading[GpuReport] | None:
        """The answer to the request, None when it has not come by `until` (monotonic)."""
        while b"\n" not in self._received:
            if not self._poll.poll(max(0.0, until - time.monotonic()) * 1000):
                return None
            chunk = os.read(self._answers.fileno(), 1 << 16)
            if not chunk:
                raise _ReaderGoneError(self._last_words())
            self._received += chunk
        line, _, rest = bytes(self._received).partition(b"\n")
        self._received = bytearray(rest)
        self._asked_at = None
        try:
            return decoded(line)
        except DECODING_ERRORS as error:
            raise _ReaderGoneError(
                "the process that asks NVML is of another version of milepost"
            ) from error

    def close(self) -> None:
        """End it, without waiting for one that hangs in the driver."""
        child.end(self._process)
        for file in (self._requests, self._answers, self._stderr):
            file.close()

    def _last_words(self) -> str:
        return f"the process that asks NVML {child.last_words(self._process, self._stderr)}"


class GpuProbe:
    """All GPUs of the box, by NVML."""

    name = "gpu"
    cadence_s = 1.0

    def __init__(self, *, command: Sequence[str] = READER, deadline_s: float = 2.0) -> None:
        self.deadline_s = deadline_s
        self._command = command
        self._reader: _Reader | None = None
        self._started_at = 0.0
        self._backoff_s = 0.0
        self._retry_at = 0.0
        self._last: Reading[GpuReport] = NOT_ASKED
        self._end = NOT_ASKED
        """How the reader before ended."""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:  # noqa: ARG002 of the protocol
        """The newest report, and beside it why it is not of now."""
        until = time.monotonic() + 0.9 * self.deadline_s
        try:
            fault = self._renew(now, until)
        except (_ReaderGoneError, OSError, ValueError) as error:
            # ValueError: closed by another thread, at exit, while this one waited.
            fault = self._bury(now, str(error))
        if fault is None:
            return (GpusRead(at=now, report=self._last),)
        report = fault if self._last is NOT_ASKED else self._last
        return (
            GpusRead(at=now, report=report),
            ProbeMissed(at=now, probe=self.name, fault=fault),
        )

    def close(self) -> None:
        """End the reader."""
        reader, self._reader = self._reader, None
        if reader is not None:
            reader.close()

    def _renew(self, now: float, until: float) -> Unknown | None:
        """Bring the report up to date; why it could not be is returned."""
        if self._reader is None:
            if 0 < self._retry_at - now <= self._backoff_s:
                return self._end
            self._started_at = now
            self._reader = _Reader(self._command)
        reader = self._reader
        while True:
            asked_at = reader.ask(now)
            answer = reader.answer(until)
            if answer is None:
                return self._silence(now, asked_at)
            self._last = answer
            if asked_at == now:
                return None

    def _silence(self, now: float, asked_at: float) -> Unknown:
        silent_s = now - asked_at
        if silent_s > STUCK_S:
            return self._bury(
                now, f"NVML has not answered for {silent_s:.0f} s, its process was ended"
            )
        reason = f"NVML has not answered for {silent_s + self.deadline_s:.0f} s"
        return Unknown(why=Absence.TIMED_OUT, reason=reason, at=now)

    def _bury(self, now: float, reason: str) -> Unknown:
        self.close()
        steady = now - self._started_at > STEADY_S
        self._backoff_s = 1.0 if steady else min(LONGEST_BACKOFF_S, 2 * self._backoff_s or 1.0)
        self._retry_at = now + self._backoff_s
        reason = f"{reason}; it is started anew in {self._backoff_s:.0f} s"
        self._end = Unknown(why=Absence.ERROR, reason=reason, at=now)
        return self._end
