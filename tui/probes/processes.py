"""The run's processes: who drives, trains and generates, with CPU and memory.

One pass over the process table per read. A process that is of no run is looked at again only now
and then, so the cost is that of the run's own processes.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import psutil

from tui.miles.titles import Role, is_spawned, role_of, title_of
from tui.model.events import Event, ProcessesRead
from tui.model.launch import Process, ProcessTree
from tui.model.reading import Absence, Unknown, known
from tui.model.snapshot import Snapshot

RELOOK_S = 30.0
"""For a process of no run: it may become another program under the same pid."""
YOUNG_S = 60.0
"""Until this age a process is looked at each time: Ray's workers get their title late."""
MOST_PROCESSES = 256

Identity = tuple[int, float]
_ORDER = {role: place for place, role in enumerate(Role)}


@dataclass(slots=True)
class _Entry:
    """What was last seen of one process. The handle stays, for CPU time between two reads."""

    handle: psutil.Process
    started_at: float
    parent: int
    role: Role | None
    title: str
    spawned: bool
    looked_at: float

    @property
    def identity(self) -> Identity:
        return self.handle.pid, self.started_at


class ProcessesProbe:
    """Follows the processes of the driver that the attachment names, or of the newest one."""

    name = "processes"
    cadence_s = 3.0
    deadline_s = 2.0

    def __init__(self) -> None:
        self._table: dict[int, _Entry] = {}
        self._asked_for: int | None = None
        self._driver: Identity | None = None
        self._driver_exited_at = 0.0
        self._members: frozenset[Identity] = frozenset()

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Look at the table once. What may not be read is left out."""
        try:
            self._refresh(now)
        except (OSError, psutil.Error) as error:
            fault = Unknown(why=Absence.ERROR, reason=f"no process table: {error}", at=now)
            return (ProcessesRead(at=now, tree=fault),)
        found = seen.attachment.driver_pid
        asked_for = int(found.value) if found is not None and found.value.isdecimal() else None
        self._follow_driver(asked_for, now)
        entries = self._of_run(asked_for)
        self._members = frozenset(entry.identity for entry in entries)
        tree = ProcessTree(
            processes=tuple(_measured(entry, self._role(entry)) for entry in entries),
            driver_exited_at=self._driver_exited_at,
        )
        return (ProcessesRead(at=now, tree=known(tree, now)),)

    def close(self) -> None:
        """Nothing is held."""

    def _refresh(self, now: float) -> None:
        pids = psutil.pids()
        for gone in self._table.keys() - set(pids):
            del self._table[gone]
        for pid in pids:
            known_entry = self._table.get(pid)
            if known_entry is not None and _is_settled(known_entry, now):
                continue
            entry = _looked_at(pid, known_entry, now)
            if entry is None:
                self._table.pop(pid, None)
            else:
                self._table[pid] = entry

    def _follow_driver(self, asked_for: int | None, now: float) -> None:
        """Note who drives, and when a driver that was seen, or named, is not there any more."""
        if asked_for != self._asked_for:
            self._asked_for, self._driver, self._driver_exited_at = asked_for, None, 0.0
        if self._driver is not None and self._alive(self._driver) is not None:
            return
        successor = self._named(asked_for) if asked_for is not None else self._newest_driver()
        if successor is not None:
            self._driver, self._driver_exited_at = successor.identity, 0.0
        elif (self._driver is not None or asked_for is not None) and not self._driver_exited_at:
            self._driver_exited_at = now

    def _named(self, pid: int) -> _Entry | None:
        """The process of the pid that was named; once it was seen, no other of the same pid.

        A pid that was kept over a restart of the box may be a stranger's by now.
        """
        entry = self._table.get(pid) if self._driver is None else None
        return entry if entry is not None and entry.role is not None else None

    def _newest_driver(self) -> _Entry | None:
        drivers = (entry for entry in self._table.values() if self._role(entry) is Role.DRIVER)
        return max(drivers, key=lambda entry: entry.started_at, default=None)

    def _alive(self, identity: Identity) -> _Entry | None:
        entry = self._table.get(identity[0])
        return entry if entry is not None and entry.identity == identity else None

    def _role(self, entry: _Entry) -> Role | None:
        """The role by title, or by the parent's; a forked copy of a driver is none itself."""
        parent = self._table.get(entry.parent)
        parents_role = parent.role if parent is not None else None
        if entry.spawned and parents_role is Role.ENGINE:
            return Role.ENGINE
        if entry.role is Role.DRIVER and parents_role is Role.DRIVER:
            return None
        if entry.identity == self._driver:
            return Role.DRIVER
        return entry.role

    def _of_run(self, asked_for: int | None) -> list[_Entry]:
        with_role = [entry for entry in self._table.values() if self._role(entry) is not None]
        if asked_for is not None:
            driver = self._alive(self._driver) if self._driver is not None else None
            if driver is None:
                with_role = [entry for entry in with_role if entry.identity in self._members]
            else:
                with_role = [entry for entry in with_role if _Kin(self._table, driver).has(entry)]
        with_role.sort(key=lambda entry: (_ORDER[self._role(entry) or Role.RAY], entry.handle.pid))
        return with_role[:MOST_PROCESSES]


class _Kin:
    """The processes that belong to one driver.

    A driver under Ray is a child of the raylet, and so are the trainers and engines: the family is
    then all below that raylet, with Ray's own daemons and the launcher, which hang elsewhere.
    """

    def __init__(self, table: Mapping[int, _Entry], driver: _Entry) -> None:
        self._table = table
        raylet = next((entry for entry in _line(table, driver) if _is_raylet(entry)), None)
        self._under_ray = raylet is not None
        self._root = (raylet or driver).handle.pid
        self._session = _session(driver.handle.pid)

    def has(self, entry: _Entry) -> bool:
        """Whether it is below the root, in the driver's session, or Ray's own."""
        if self._under_ray and entry.role in (Role.LAUNCHER, Role.RAY):
            return True
        if any(ancestor.handle.pid == self._root for ancestor in _line(self._table, entry)):
            return True
        return self._session is not None and _session(entry.handle.pid) == self._session


def _line(table: Mapping[int, _Entry], entry: _Entry) -> Iterable[_Entry]:
    """The process, its parent, and so on up."""
    visited: set[int] = set()
    at: _Entry | None = entry
    while at is not None and at.handle.pid not in visited:
        visited.add(at.handle.pid)
        yield at
        at = table.get(at.parent)


def _is_raylet(entry: _Entry) -> bool:
    return entry.title.split(" ")[0].rpartition("/")[2] == "raylet"


def _session(pid: int) -> int | None:
    try:
        return os.getsid(pid)
    except OSError:
        return None


def _is_settled(entry: _Entry, now: float) -> bool:
    return (
        entry.role is None
        and 0 <= now - entry.looked_at < RELOOK_S
        and now - entry.started_at > YOUNG_S
    )


def _looked_at(pid: int, before: _Entry | None, now: float) -> _Entry | None:
    """The process now; None when it is gone, which a zombie is too."""
    try:
        handle = psutil.Process(pid)
        if before is not None and before.handle == handle:
            handle = before.handle
        with handle.oneshot():
            if handle.status() == psutil.STATUS_ZOMBIE:
                return None
            argv = handle.cmdline()
            return _Entry(
                handle=handle,
                started_at=handle.create_time(),
                parent=handle.ppid(),
                role=role_of(argv),
                title=title_of(argv),
                spawned=is_spawned(argv),
                looked_at=now,
            )
    except psutil.Error:
        return None


def _measured(entry: _Entry, role: Role | None) -> Process:
    cpu_ratio, rss_bytes = 0.0, 0
    try:
        with entry.handle.oneshot():
            cpu_ratio = entry.handle.cpu_percent() / 100.0
            rss_bytes = entry.handle.memory_info().rss
    except psutil.Error:
        pass  # it ended since, or is another user's: the row stays, without numbers
    return Process(
        pid=entry.handle.pid,
        started_at=entry.started_at,
        role=str(role or ""),
        title=entry.title,
        cpu_ratio=cpu_ratio,
        rss_bytes=rss_bytes,
    )
