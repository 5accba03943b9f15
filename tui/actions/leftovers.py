"""What runs before this one left behind: engines that nobody owns, and Ray's stale address.

Owned is what has a living forebear of its run, whatever it is called; so a neighbour's is left
alone, and so is a server that a person started by hand.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import psutil

from tui.actions.ownership import is_orphan, takes_orphans
from tui.actions.process_table import ProcessRow, Table, read_table
from tui.actions.signals import boot_id
from tui.miles.titles import Role, is_spawned, role_of, title_of
from tui.model.reading import Unknown
from tui.model.target import ProcessTarget
from tui.probes.http_get import connect

RAY_ADDRESS = Path("/tmp/ray/ray_current_cluster")  # noqa: S108 - Ray's own place
_HOLDERS = frozenset({Role.TRAINER, Role.ENGINE, Role.SCHEDULER, Role.DETOKENIZER})
"""What holds GPU memory, or the port of one that does."""
_ADDRESS = re.compile(r"(?:[\w.-]+|\[[\w:.]+\]):(\d{1,5})")
_LAST_PORT = 65535
_MOST_BYTES = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class StaleAddress:
    """Ray's note of a cluster that is not there any more. A start may try to join it."""

    path: str
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What a process of a run's kind is by its command line."""

    role: Role | None
    """None for a child that was spawned without a title."""
    title: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Leftovers:
    """All of it."""

    orphans: tuple[ProcessTarget, ...] = ()
    """Each with all below it."""
    stale_ray: StaleAddress | None = None


def find_leftovers(at: float, ray_address: Path = RAY_ADDRESS) -> Leftovers:
    """Look for them."""
    table = read_table()
    workers = {pid: worker for pid in table if (worker := _worker(pid)) is not None}
    boot = boot_id()
    return Leftovers(
        orphans=tuple(
            ProcessTarget(
                pid=row.pid,
                start_ticks=row.start_ticks,
                boot_id=boot,
                title=workers[row.pid].title,
            )
            for row in orphans(table, workers)
        ),
        stale_ray=stale_address(ray_address, at),
    )


def orphans(table: Table, workers: Mapping[int, Worker]) -> tuple[ProcessRow, ...]:
    """The uppermost process of each family that holds a GPU, or an engine's port, for nobody.

    Args:
        table: all processes.
        workers: those that train, serve, or were spawned to, by pid.
    """
    tops = {
        _top(pid, table, workers)
        for pid, worker in workers.items()
        if worker.role in _HOLDERS and pid in table and not table[pid].is_gone
    }
    return tuple(table[pid] for pid in sorted(tops) if is_orphan(pid, table))


def stale_address(file: Path, at: float) -> StaleAddress | None:
    """Ray's address file, if nobody takes a connection there. Silence proves nothing."""
    try:
        with file.open("rb") as opened:
            address = opened.read(_MOST_BYTES).decode("utf-8", "replace").strip()
    except OSError:
        return None
    named = _ADDRESS.fullmatch(address)
    if named and int(named[1]) <= _LAST_PORT:
        answer = connect(f"http://{address}", at)
        if isinstance(answer, Unknown) or answer.value:
            return None
    return StaleAddress(path=str(file), address=address)


def _top(pid: int, table: Table, workers: Mapping[int, Worker]) -> int:
    """The uppermost worker above it, itself where its parent is none."""
    visited: set[int] = set()
    while pid not in visited:
        visited.add(pid)
        parent = table[pid].parent
        if parent not in workers or takes_orphans(parent, table):
            break
        pid = parent
    return pid


def _worker(pid: int) -> Worker | None:
    try:
        argv = psutil.Process(pid).cmdline()
    except psutil.Error:
        return None
    role = role_of(argv)
    if role not in _HOLDERS and not is_spawned(argv):
        return None
    return Worker(role=role, title=title_of(argv))
