"""What `/proc` tells of how a process was started: environment, standard input, its script.

Words and environment may hold secrets, so only processes of our own user are read, unless we are
root.
"""

from __future__ import annotations

import os
import posixpath
import re
import shlex
import stat
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil

from tui.miles.secrets import masked_words
from tui.runs.process import RunProcess

SHELLS = frozenset(("sh", "bash", "dash", "zsh", "ksh", "fish"))
_PASSING_ON = frozenset(("sudo", "timeout", "nice", "ionice", "stdbuf", "numactl", "env", "time"))
"""Programs that only start the one behind them."""
_START_SLACK_S = 2.0
"""psutil's start times follow the clock of the box, which may be set in between."""
_LONGEST_SHOWN = 80


def may_be_read(process: RunProcess) -> bool:
    """Whether it is ours to read."""
    try:
        owner = os.stat(f"/proc/{process.pid}").st_uid  # noqa: PTH116
    except OSError:
        return False
    return os.geteuid() in (0, owner)


def is_same_start(process: RunProcess, pid: int, started_at: float) -> bool:
    """Whether it is the process that had this pid and began then."""
    return process.pid == pid and abs(process.started_at - started_at) <= _START_SLACK_S


def environment_of(process: RunProcess) -> tuple[tuple[str, str], ...] | None:
    """What it was started with; None where that cannot be read."""
    try:
        text = os.fsdecode(Path(f"/proc/{process.pid}/environ").read_bytes())
        began = psutil.Process(process.pid).create_time()
    except (OSError, psutil.Error):
        return None
    if not is_same_start(process, process.pid, began):
        return None
    pairs = (entry.partition("=") for entry in text.split("\0"))
    return tuple((name, value) for name, equals, value in pairs if equals)


def session_of(process: RunProcess) -> int:
    """The pid of its session's leader, which may be gone; 0 where the process is."""
    try:
        return os.getsid(process.pid)
    except OSError:
        return 0


def is_below_first(process: RunProcess, first: int) -> bool:
    """Whether the container's first process started it, not somebody from outside.

    Args:
        process: one in the container.
        first: the first one's pid, as Docker counts.
    """
    line = (process.pid, *process.ancestors)
    own = _pids_of(process.pid)
    if first in line or len(own) <= 1:  # in the second case it counts pids as we do
        return first in line
    return any(pids[-1] == 1 for each in line if len(pids := _pids_of(each)) == len(own))


def unrepeated(process: RunProcess) -> Iterator[str]:
    """What of its start another start cannot do again."""
    if script := _script_around(process):
        yield (
            f"it was started by `{script}`: only this command is started again, nothing else that "
            "the script does; what the script exported is in its environment"
        )
    output, given = _opened(process, 1), _opened(process, 0)
    if output is not None and stat.S_ISFIFO(output.st_mode):
        yield "its output went through a pipe: a start writes into the new log itself"
    if given is not None and (stat.S_ISFIFO(given.st_mode) or stat.S_ISREG(given.st_mode)):
        yield "it was given something to read as standard input: a start gives it nothing"


def _script_around(process: RunProcess) -> str:
    """The shell script that it was started in; empty where a person typed it, or none is seen."""
    for pid in process.ancestors:
        argv = _argv(pid)
        program = posixpath.basename(argv[0].lstrip("-")) if argv else ""
        if program in SHELLS:
            is_script = any(not word.startswith("-") for word in argv[1:2])
            return shlex.join(masked_words(argv))[:_LONGEST_SHOWN] if is_script else ""
        if program not in _PASSING_ON:
            break
    return ""


def _pids_of(pid: int) -> tuple[int, ...]:
    """Its pid in each namespace, ours first."""
    try:
        text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ()
    told = re.search(r"^NSpid:\s*(.*)$", text, re.MULTILINE)
    return tuple(map(int, told[1].split())) if told else ()


def _argv(pid: int) -> tuple[str, ...]:
    with suppress(psutil.Error):
        return tuple(psutil.Process(pid).cmdline())
    return ()


def _opened(process: RunProcess, descriptor: int) -> os.stat_result | None:
    try:
        return os.stat(f"/proc/{process.pid}/fd/{descriptor}")  # noqa: PTH116
    except OSError:
        return None
