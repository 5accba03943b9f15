"""A process of our own beside us: it ends with us, and nobody waits for one that hangs.

The kernel ends it with the thread that started it.
"""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from typing import IO, TextIO

_PR_SET_PDEATHSIG = 1
_END_S = 0.1

# -P keeps the folder we were started in, which may hold anything, off the child's import path.
PYTHON = (sys.executable, "-P", "-m")


def die_with_parent() -> None:
    """In the child: ask the kernel to end it with its parent, also in the middle of a call."""
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)


def own_output() -> TextIO:
    """In the child: where answers go; what a library prints goes to stderr, not between them."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    return answers


def end(process: subprocess.Popen[bytes]) -> None:
    """End the child, without waiting for one that hangs in the kernel."""
    process.kill()
    try:
        process.wait(_END_S)
    except subprocess.TimeoutExpired:  # reap it whenever the kernel lets go of it
        threading.Thread(target=process.wait, daemon=True).start()


def last_words(process: subprocess.Popen[bytes], stderr: IO[bytes]) -> str:
    """How a child that closed its output ended, and the last line it printed for a person."""
    with suppress(subprocess.TimeoutExpired):
        process.wait(_END_S)
    code = process.returncode
    told = "closed its output" if code is None else f"ended with exit code {code}"
    if code is not None and code < 0:
        told = f"was ended by {signal.Signals(-code).name}"
    stderr.seek(0)
    lines = stderr.read().decode(errors="replace").strip().splitlines()
    return ": ".join((told, *lines[-1:]))
