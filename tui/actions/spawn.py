"""Becomes a command in a session of its own: `python -I -S spawn.py MARK LOG < ORDER`.

MARK and LOG are open files. What is written into MARK is there before the command begins, and not
where it never began; whoever holds MARK locked waits for that. ORDER is JSON and holds secrets.
Errors are told on standard output, which ends when the command has begun.

Of the standard library alone, and run as a file: nothing of milepost lives on in the command.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import resource
import signal
import sys
from typing import TypedDict

MARK_BYTES = 256
"""Written at once, and always as many: what is there is never a mixture."""


class Bounds(TypedDict):
    """A recipe's, as JSON."""

    limits: list[tuple[str, int, int]]
    umask: int
    nice: int
    oom_score_adj: int


class Order(TypedDict):
    """What to become."""

    key: str
    """Of the action's step, for the mark."""
    boot_id: str
    argv: list[str]
    environment: dict[str, str]
    cwd: str
    bounds: Bounds | None
    """None: ours."""


def main(mark: int, log: int) -> None:
    """Read the order, and let a child go its own way with it."""
    order: Order = json.load(sys.stdin)
    if os.fork():  # whoever asked is not to be the parent of the command
        os._exit(0)
    os.setsid()
    answer = fcntl.fcntl(1, fcntl.F_DUPFD_CLOEXEC, 3)
    try:
        _become(order, mark, log)
    except OSError as fault:
        os.pwrite(mark, b"".ljust(MARK_BYTES), 0)
        name = os.fsdecode(fault.filename or order["argv"][0])
        os.write(answer, os.fsencode(f"{name}: {fault.strerror}"))
    os._exit(127)


def _become(order: Order, mark: int, log: int) -> None:
    os.chdir(order["cwd"])
    null = os.open(os.devnull, os.O_RDONLY)
    for number, target in ((null, 0), (log, 1), (log, 2)):
        os.dup2(number, target)
    for number in (mark, log):
        os.set_inheritable(number, False)
    for each in signal.valid_signals():
        if signal.getsignal(each) is signal.SIG_IGN:
            signal.signal(each, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
    told = json.dumps([order["key"], os.getpid(), _start_ticks(), order["boot_id"]])
    os.pwrite(mark, told.encode().ljust(MARK_BYTES), 0)
    if order["bounds"] is not None:
        _bind(order["bounds"])
    os.execvpe(order["argv"][0], order["argv"], order["environment"])  # noqa: S606 - its purpose


def _bind(bounds: Bounds) -> None:
    """As far as this user may: a limit that can't be as high is as high as it can be."""
    os.umask(bounds["umask"])
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, 0, bounds["nice"])
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:  # noqa: PTH123
        file.write(str(bounds["oom_score_adj"]))
    for name, soft, hard in bounds["limits"]:
        with contextlib.suppress(OSError, ValueError, AttributeError):
            _limit(getattr(resource, f"RLIMIT_{name}"), soft, hard)


def _limit(which: int, soft: int, hard: int) -> None:
    try:
        resource.setrlimit(which, (soft, hard))
    except (OSError, ValueError):
        highest = resource.getrlimit(which)[1]
        is_more = soft == resource.RLIM_INFINITY or soft > highest != resource.RLIM_INFINITY
        resource.setrlimit(which, (highest if is_more else soft, highest))


def _start_ticks() -> int:
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - `pathlib` is slow to import
        return int(file.read().rpartition(b")")[2].split()[19])


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
