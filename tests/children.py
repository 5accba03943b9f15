"""Child processes of tests, ended with all that they started."""

from __future__ import annotations

import os
import subprocess
from contextlib import suppress

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
