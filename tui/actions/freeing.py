"""Wait until what a stopped run held is really free, or say who holds it.

A process can be gone and its GPU memory not: the driver gives it back late, on unified memory by
minutes. A start before that is what freezes a box.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from urllib.parse import urlsplit

from tui.actions.ownership import Owner, owner_of
from tui.actions.process_table import Table, read_table
from tui.actions.sockets import listeners
from tui.miles.titles import Role
from tui.model.gpu import GpuReport
from tui.model.judge.words import gib
from tui.model.memory import Memory
from tui.model.reading import Known, Reading, value_or
from tui.model.snapshot import Snapshot
from tui.model.target import ProcessTarget
from tui.probes.gpu_processes import process_title

RAY_PORTS = (6379, 8265)
"""Ray's store of the cluster, and its dashboard with the job interface."""
_BACK_SHARE = 0.9
"""Of what the run held on the GPU; the pool is the neighbours' too, and moves."""
_LOOK_S = 0.2
_RAY_ROLES = frozenset({Role.LAUNCHER, Role.RAY, Role.TRAINER})


@dataclass(frozen=True, slots=True, kw_only=True)
class Holder:
    """One process that has what the next start needs."""

    pid: int
    """0: it may not be seen."""
    title: str
    holds: str
    """`port 15000`, `2.1 GiB of GPU 0`."""
    owner: Owner

    @property
    def line(self) -> str:
        """In words."""
        who = f"process {self.pid} {self.title}".strip() if self.pid else "another user's process"
        return f"{self.holds} held by {who} ({self.owner})"


@dataclass(frozen=True, slots=True, kw_only=True)
class Freed:
    """How the wait ended."""

    seconds: float
    holders: tuple[Holder, ...] = ()
    """Who still holds something, neighbours too."""
    missing_bytes: int = 0
    """Memory of the run that did not come back."""

    @property
    def is_free(self) -> bool:
        """Nothing of the run is left; a neighbour may still be in the way."""
        return not self.missing_bytes and not any(map(_is_awaited, self.holders))

    @property
    def line(self) -> str:
        """In words."""
        told = [each.line for each in self.holders]
        if self.missing_bytes:
            told.append(f"{gib(self.missing_bytes)} of memory did not come back")
        head = (
            f"free after {self.seconds:.1f} s"
            if self.is_free
            else f"not free in {self.seconds:.0f} s"
        )
        return "; ".join((head, *told))


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What has to be free."""

    ports: tuple[int, ...] = ()
    run: tuple[ProcessTarget, ...] = ()
    """All that is or was of the run."""
    available_bytes: int = 0
    """What the memory pool has to have left; 0: it does not matter."""


def ports_of(snapshot: Snapshot) -> tuple[int, ...]:
    """The ports that the run has, and that its next start takes again."""
    urls = [snapshot.story.router_url, *(each.url for each in snapshot.story.engines)]
    urls += [track.probe.url for track in snapshot.engines]
    if snapshot.router is not None:
        urls.append(snapshot.router.url)
    ports = {port for url in urls if (port := urlsplit(url).port)}
    processes = snapshot.processes.value.processes if isinstance(snapshot.processes, Known) else ()
    if any(each.role in _RAY_ROLES for each in processes):
        ports.update(RAY_PORTS)
    return tuple(sorted(ports))


def available_after(snapshot: Snapshot, run: Iterable[ProcessTarget]) -> int:
    """What the pool of a unified-memory box should have left without the run; 0: has no such pool.

    A lower bound: managed memory and what the processes hold outside the GPU come on top.
    """
    if not isinstance(snapshot.memory, Known) or not isinstance(snapshot.gpus, Known):
        return 0
    pids = {each.pid for each in run}
    devices = [each for each in snapshot.gpus.value.devices if each.unified]
    held = sum(
        value_or(process.memory_bytes, 0)
        for device in devices
        for process in value_or(device.processes, ())
        if process.pid in pids
    )
    return snapshot.memory.value.available_bytes + int(_BACK_SHARE * held) if held else 0


def holders(wanted: Wanted, gpus: Reading[GpuReport], table: Table) -> tuple[Holder, ...]:
    """Who has one of the ports, or memory of a GPU, now."""
    held = (*_ports_held(wanted.ports), *_memory_held(gpus))
    return tuple(
        Holder(
            pid=pid,
            title=process_title(pid) if pid in table else "",
            holds=what,
            owner=owner_of(pid, table, wanted.run),
        )
        for pid, what in held
    )


def wait_until_free(
    wanted: Wanted,
    *,
    gpus: Callable[[], Reading[GpuReport]],
    memory: Callable[[], Reading[Memory]],
    deadline_s: float = 60.0,
    held_now: Callable[[Wanted, Reading[GpuReport], Table], Collection[Holder]] = holders,
    clock: Callable[[], float] = time.monotonic,
    pause: Callable[[float], None] = time.sleep,
) -> Freed:
    """Until nothing of the run holds a port or memory. A neighbour is told, not waited for.

    Args:
        wanted: what has to be free.
        gpus: reads the devices.
        memory: reads the pool.
        deadline_s: how long to wait.
        held_now: who holds something.
        clock: any clock that does not go back.
        pause: sleeps.
    """
    begun = clock()
    while True:
        held = tuple(held_now(wanted, gpus(), read_table()))
        missing = _missing(wanted, memory())
        seconds = clock() - begun
        freed = Freed(seconds=seconds, holders=held, missing_bytes=missing)
        if freed.is_free or seconds >= deadline_s:
            return freed
        pause(_LOOK_S)


def _is_awaited(holder: Holder) -> bool:
    return holder.owner is not Owner.NEIGHBOUR


def _missing(wanted: Wanted, memory: Reading[Memory]) -> int:
    available = (
        memory.value.available_bytes if isinstance(memory, Known) else wanted.available_bytes
    )
    return max(0, wanted.available_bytes - available)


def _ports_held(ports: Collection[int]) -> Iterator[tuple[int, str]]:
    for each in listeners(ports):
        yield each.pid, f"port {each.port}"


def _memory_held(gpus: Reading[GpuReport]) -> Iterator[tuple[int, str]]:
    if not isinstance(gpus, Known):
        return
    for device in gpus.value.devices:
        for process in value_or(device.processes, ()):
            size = value_or(process.memory_bytes, None)
            much = "memory" if size is None else gib(size)
            yield process.pid, f"{much} of GPU {device.index}"
