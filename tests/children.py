"""Child processes of tests: let go on at a FIFO, ended with all that they started."""

from __future__ import annotations

import os
import subprocess
import time
from contextlib import suppress
from pathlib import Path

import psutil


def end_session(leader: subprocess.Popen[bytes]) -> None:
    """Kill a child that leads a session, all below it, and orphans that stayed in the session."""
    family = psutil.Process(leader.pid).children(recursive=True)
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if pid != leader.pid and os.getsid(pid) == leader.pid:
                family.append(psutil.Process(pid))
    for member in family:
        with suppress(psutil.Error):
            member.kill()
    leader.kill()
    leader.wait()


def release(fifo: Path) -> None:
    """Give a line to whoever reads the FIFO, or soon will; one that never comes is a failure."""
    deadline = time.monotonic() + 30.0
    while True:
        try:
            writer = os.open(fifo, os.O_WRONLY | os.O_NONBLOCK)
        except OSError:  # nobody reads yet
            assert time.monotonic() < deadline, f"nobody reads {fifo}"
            time.sleep(0.01)
        else:
            os.write(writer, b"\n")
            os.close(writer)
            return
