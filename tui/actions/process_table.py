"""The process table as the kernel tells it: parents, groups, sessions, states, start times.

Only `/proc/PID/stat` and `wchan` are read: unlike a command line they never wait for the memory of
a process that hangs.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_ENDED = frozenset("ZX")
_UNINTERRUPTIBLE = "D"


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessRow:
    """One line of `/proc/PID/stat`."""

    pid: int
    name: str
    """`comm`: at most 15 characters."""
    state: str
    """One letter, such as `S` asleep, `D` asleep and deaf to signals, `T` held, `Z` ended."""
    parent: int
    group: int
    session: int
    threads: int
    start_ticks: int

    @property
    def is_gone(self) -> bool:
        """It has ended, whether or not its parent has asked how.

        Not so a process whose first thread alone has: one that ends while another of its threads
        is stuck in a driver looks like that, and holds all it held.
        """
        return self.state in _ENDED and self.threads <= 1


Table = Mapping[int, ProcessRow]


def read_row(pid: int) -> ProcessRow | None:
    """The process of this pid, None where there is none."""
    return _row_in(_PROC / str(pid) / "stat")


def read_table() -> Table:
    """Every process that can be seen, by pid."""
    pids = (int(name) for name in os.listdir(_PROC) if name.isdecimal())  # noqa: PTH208
    rows = (read_row(pid) for pid in pids)
    return {row.pid: row for row in rows if row is not None}


def kin(table: Table, roots: Iterable[int]) -> frozenset[int]:
    """The roots, all below them, and all in a session or process group that one of them leads.

    A session or group whose leader is none of them is somebody else's: a login shell's.
    """
    found = {pid for pid in roots if pid in table}
    while True:
        more = {
            row.pid
            for row in table.values()
            if row.pid > 1
            and row.pid not in found
            and not found.isdisjoint((row.parent, row.group, row.session))
        }
        if not more:
            return frozenset(found)
        found |= more


def ancestors(table: Table, pid: int) -> tuple[int, ...]:
    """Its parent, the parent's parent, and so on up."""
    line: list[int] = []
    row = table.get(pid)
    while row is not None and row.parent and row.parent not in line:
        line.append(row.parent)
        row = table.get(row.parent)
    return tuple(line)


def stuck_in(pid: int) -> str:
    """Where in the kernel a thread of it sleeps that no signal wakes; empty: none does."""
    with suppress(OSError):
        for task in (_PROC / str(pid) / "task").iterdir():
            row = _row_in(task / "stat")
            if row is not None and row.state == _UNINTERRUPTIBLE:
                return waits_in(task) or "the kernel"
    return ""


def waits_in(folder: Path) -> str:
    """The kernel function that a process or thread waits in, empty where that is not told."""
    try:
        name = (folder / "wchan").read_text()
    except OSError:
        return ""
    return "" if name == "0" else name


def inner_pid(pid: int) -> int:
    """Its pid in the innermost namespace it is in, a container's. Anybody may read that."""
    try:
        text = (_PROC / str(pid) / "status").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return pid
    told = (line.split()[-1] for line in text.splitlines() if line.startswith("NSpid:"))
    return int(next(told, pid))


def _row_in(file: Path) -> ProcessRow | None:
    try:
        text = file.read_bytes().decode(errors="replace")
    except OSError:
        return None
    # The name may hold anything, brackets and blanks too; what follows the last bracket does not.
    before, _, after = text.rpartition(")")
    pid, _, name = before.partition(" (")
    fields = after.split()
    return ProcessRow(
        pid=int(pid),
        name=name,
        state=fields[0],
        parent=int(fields[1]),
        group=int(fields[2]),
        session=int(fields[3]),
        threads=int(fields[17]),
        start_ticks=int(fields[19]),
    )
