"""Families of processes for tests: all of one, wherever it hid itself, ends with its test."""

from __future__ import annotations

import os
import subprocess
import time
import uuid
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import psutil

_MARK = "MILEPOST_TEST_FAMILY"


def until(condition: Callable[[], bool]) -> None:
    """Wait until it is true; never is a failure."""
    deadline = time.monotonic() + 30.0
    while not condition():
        assert time.monotonic() < deadline, "it never came true"
        time.sleep(0.01)


class Families:
    """Starts processes, each leading a session, and knows all that they start by a mark in it."""

    def __init__(self) -> None:
        self._mark = str(uuid.uuid4())
        self._started: list[subprocess.Popen[bytes]] = []

    def start(self, *argv: str | os.PathLike[str], **options: Any) -> subprocess.Popen[bytes]:
        """Start one."""
        process = subprocess.Popen(
            argv,
            env={**os.environ, _MARK: self._mark},
            **{"start_new_session": True, "stdout": subprocess.PIPE, **options},
        )
        self._started.append(process)
        return process

    def living(self) -> list[psutil.Process]:
        """All that lives of them."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                if process.environ().get(_MARK) == self._mark:
                    found.append(process)
        return found

    def end(self) -> None:
        """All of them, whatever they do."""
        while living := self.living():
            for process in living:
                with suppress(psutil.Error):
                    process.kill()
            time.sleep(0.01)
        for started in self._started:
            started.kill()
            started.wait()
            if started.stdout is not None:
                started.stdout.close()
