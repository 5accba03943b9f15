"""Starts a guard as a process of its own, which goes on without us."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable
from pathlib import Path

from tui.guard.service import milepost
from tui.model.launch import Attachment, Found
from tui.runs.guard_card import LOCK
from tui.runs.lock import holder_of
from tui.runs.state_dir import made, run_folder, runs_folder

OUTPUT = "guard.out"
"""What it says as it begins; one that watches says nothing there any more."""
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
    by_log = run_folder(Attachment(log=Found(value=str(log), source="milepost run")))
    argv = (*milepost(), "guard", "--log", str(log), *(("--act", policy) if policy else ()))
    try:
        flags = os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
        output = os.open(made(folder) / OUTPUT, flags, 0o600)
        try:
            return _waited(_spawned(argv, output), (folder, by_log), output)
        finally:
            os.close(output)
    except OSError as fault:
        return str(fault)


def _spawned(argv: tuple[str, ...], output: int) -> int:
    """Its pid. It leads a session of its own, and nobody waits for its end."""
    return os.posix_spawn(
        argv[0],
        argv,
        os.environ,
        file_actions=(
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_DUP2, output, 1),
            (os.POSIX_SPAWN_DUP2, output, 2),
        ),
        setsid=True,
    )


def _waited(pid: int, folders: Iterable[Path], output: int) -> str:
    """Until its lock is seen in one of these, or it has ended."""
    end = time.monotonic() + _BEGIN_S
    while time.monotonic() < end:
        if any(holder_of(folder, LOCK) is not None for folder in folders):
            return ""
        ended, code = os.waitpid(pid, os.WNOHANG)
        if ended:
            told = os.pread(output, 4096, 0).decode("utf-8", "replace").strip()
            code = os.waitstatus_to_exitcode(code)
            return told.removeprefix("milepost: ") or f"it ended with exit code {code}"
        time.sleep(_LOOK_S)
    return f"nothing was seen of it in {_BEGIN_S:.0f} s"
