"""Starts a guard as a process of its own, which goes on without us."""

from __future__ import annotations

import os
import subprocess
import time
from collections.abc import Iterable
from pathlib import Path

from tui.guard.service import milepost
from tui.model.launch import Attachment, Found
from tui.runs.guard_card import LOCK
from tui.runs.lock import holder_of
from tui.runs.state_dir import made, run_folder, runs_folder

OUTPUT = "guard.out"
_BEGIN_S = 20.0
_LOOK_S = 0.05


def begin(run: str, log: Path, policy: str) -> str:
    """Guard the run that prints into this log; empty once the guard watches, else why it does not.

    Args:
        run: its id.
        log: what it is found by.
        policy: empty: as the configuration says.
    """
    folder = runs_folder() / run
    act = ("--act", policy) if policy else ()
    try:
        number = os.open(
            made(folder) / OUTPUT, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600
        )
        try:
            process = subprocess.Popen(  # noqa: S603 - ourselves
                [*milepost(), "guard", "--log", str(log), *act],
                stdin=subprocess.DEVNULL,
                stdout=number,
                stderr=number,
                cwd="/",
                start_new_session=True,
            )
            by_log = Attachment(log=Found(value=str(log), source="milepost run"))
            return _waited(process, (folder, run_folder(by_log)), number)
        finally:
            os.close(number)
    except OSError as fault:
        return str(fault)


def _waited(process: subprocess.Popen[bytes], folders: Iterable[Path], output: int) -> str:
    """Until its lock is seen in one of these, or it has ended."""
    end = time.monotonic() + _BEGIN_S
    while time.monotonic() < end:
        if process.poll() is not None:
            told = os.pread(output, 4096, 0).decode("utf-8", "replace").strip()
            return (
                told.removeprefix("milepost: ") or f"it ended with exit code {process.returncode}"
            )
        if any(holder_of(folder, LOCK) is not None for folder in folders):
            return ""
        time.sleep(_LOOK_S)
    return f"nothing was seen of it in {_BEGIN_S:.0f} s"
