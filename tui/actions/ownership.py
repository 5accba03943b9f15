"""Whose a process is, by who of its forebears lives. Never by its name."""

from __future__ import annotations

from collections.abc import Iterable
from enum import StrEnum

from tui.actions.process_table import Table, ancestors, inner_pid
from tui.model.target import ProcessTarget

_FIRST = 1
_RAY_WORKER = "ray::"
_USER_MANAGER = "systemd"
"""Takes in the orphans of its user, as the first process takes in all others."""


class Owner(StrEnum):
    """Whose something is."""

    RUN = "this run"
    NEIGHBOUR = "a neighbour"
    """It belongs to something else that lives."""
    UNKNOWN = "unknown"
    """Nobody that lives owns it, or it may not be seen."""


def owner_of(pid: int, table: Table, run: Iterable[ProcessTarget]) -> Owner:
    """Whose the process is.

    Args:
        pid: the process; 0 where that is not told.
        table: all processes.
        run: what is or was of this run. A dead one may go on holding memory under its pid.
    """
    starts = {each.pid: each.start_ticks for each in run}
    row = table.get(pid)
    if row is None:
        return Owner.RUN if pid in starts else Owner.UNKNOWN
    line = (pid, *ancestors(table, pid))
    if any(each in table and starts.get(each) == table[each].start_ticks for each in line):
        return Owner.RUN
    return Owner.UNKNOWN if is_orphan(pid, table) else Owner.NEIGHBOUR


def is_orphan(pid: int, table: Table) -> bool:
    """Whether nobody that lives stands behind a process.

    Its parent has to be gone, so that it was taken in, and the leader of its process group too: who
    starts a program by itself makes it lead a group of its own. Ray's workers lead one each, but
    are started by nothing else than a raylet.
    """
    row = table.get(pid)
    if row is None or not takes_orphans(row.parent, table):
        return False
    if row.group == pid:
        return row.name.startswith(_RAY_WORKER)
    leader = table.get(row.group)
    return leader is None or leader.is_gone


def takes_orphans(pid: int, table: Table) -> bool:
    """The first process, here or in a container, or a user's own first one."""
    if pid <= _FIRST:
        return True
    row = table.get(pid)
    return row is None or row.name == _USER_MANAGER or inner_pid(pid) == _FIRST
