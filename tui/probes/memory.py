"""The memory pool of the box, and the disk that checkpoints are really written to."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.model.events import DiskRead, Event, MemoryRead
from tui.model.memory import Disk, Memory
from tui.model.reading import NOT_ASKED, Absence, Reading, Unknown, known
from tui.model.snapshot import Snapshot
from tui.probes.save_path import save_path


class MemoryProbe:
    """`/proc/meminfo` and the kernel's own measure of memory pressure."""

    name = "memory"
    cadence_s = 0.5
    deadline_s = 2.0

    def __init__(
        self,
        meminfo_path: str = "/proc/meminfo",
        pressure_path: str = "/proc/pressure/memory",
    ) -> None:
        self._meminfo = Path(meminfo_path)
        self._pressure = Path(pressure_path)

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:  # noqa: ARG002 of the protocol
        """The pool now."""
        return (MemoryRead(at=now, memory=self._memory(now)),)

    def close(self) -> None:
        """Nothing is held."""

    def _memory(self, now: float) -> Reading[Memory]:
        try:
            fields = meminfo_fields(self._meminfo.read_text())
            return known(pool(fields, self._pressure_full_ratio(now)), now)
        except OSError as error:
            return os_fault(error, now)
        except (ValueError, KeyError) as error:
            reason = f"{self._meminfo} is not understood: {error!r}"
            return Unknown(why=Absence.ERROR, reason=reason, at=now)

    def _pressure_full_ratio(self, now: float) -> Reading[float]:
        try:
            found = _FULL.search(self._pressure.read_text())
        except OSError:
            # Without the file, or with one that refuses to be read, the kernel does not measure it.
            found = None
        if found is None:
            reason = "the kernel does not measure pressure (psi=0)"
            return Unknown(why=Absence.NOT_SUPPORTED, reason=reason, at=now)
        return known(float(found[1]) / 100, now)


_FULL = re.compile(r"^full avg10=(\d+\.\d+)", re.MULTILINE)


def meminfo_fields(text: str) -> dict[str, int]:
    """The numbers of `/proc/meminfo` by name: bytes where the line says kB, else a count."""
    fields = {}
    for line in text.splitlines():
        name, _, value = line.partition(":")
        number, *unit = value.split()
        fields[name] = int(number) * (1024 if unit == ["kB"] else 1)
    return fields


def pool(fields: dict[str, int], pressure_full_ratio: Reading[float] = NOT_ASKED) -> Memory:
    """The pool out of meminfo's fields; raises KeyError without the essential ones."""
    shmem_bytes = fields.get("Shmem", 0)
    cached_bytes = fields.get("Cached", 0) + fields.get("SReclaimable", 0) - shmem_bytes
    return Memory(
        total_bytes=fields["MemTotal"],
        available_bytes=fields["MemAvailable"],
        free_bytes=fields["MemFree"],
        cached_bytes=max(0, cached_bytes),
        shmem_bytes=shmem_bytes,
        swap_total_bytes=fields.get("SwapTotal", 0),
        swap_free_bytes=fields.get("SwapFree", 0),
        cma_total_bytes=fields.get("CmaTotal", 0),
        cma_free_bytes=fields.get("CmaFree", 0),
        huge_pages_total=fields.get("HugePages_Total", 0),
        huge_pages_free_bytes=fields.get("HugePages_Free", 0) * fields.get("Hugepagesize", 0),
        pressure_full_ratio=pressure_full_ratio,
    )


class DiskProbe:
    """The filesystem of the save path, whether the folder is there yet or not."""

    name = "disk"
    cadence_s = 10.0
    deadline_s = 5.0

    def __init__(self, mountinfo_path: str = "/proc/self/mountinfo") -> None:
        self._mountinfo = Path(mountinfo_path)

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """The disk now."""
        path = save_path(seen, now)
        if isinstance(path, Unknown):
            return (DiskRead(at=now, disk=path),)
        if seen.attachment.checkpoints is None and not Path(path).parent.is_dir():
            # A path of another mount namespace says nothing about the disks of this one.
            reason = f"{path} is not on this machine"
            return (DiskRead(at=now, disk=Unknown(why=Absence.MISSING, reason=reason, at=now)),)
        return (DiskRead(at=now, disk=self._disk(path, now)),)

    def close(self) -> None:
        """Nothing is held."""

    def _disk(self, path: str, now: float) -> Reading[Disk]:
        try:
            existing = nearest_existing(path)
            table = self._mountinfo.read_bytes().decode(errors="surrogateescape")
            mount = mount_of(existing, existing.stat().st_dev, mounts(table))
            space = os.statvfs(existing)
        except OSError as error:
            return os_fault(error, now)
        return known(
            Disk(
                path=path,
                mount=mount.point,
                filesystem=mount.filesystem,
                total_bytes=space.f_blocks * space.f_frsize,
                free_bytes=space.f_bavail * space.f_frsize,
                inodes_free_ratio=space.f_favail / space.f_files if space.f_files else 1.0,
                read_only=bool(space.f_flag & os.ST_RDONLY),
            ),
            now,
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Mount:
    """One line of mountinfo."""

    point: str
    device: str
    """major:minor."""
    filesystem: str
    read_only: bool = False


_NO_MOUNT = Mount(point="/", device="", filesystem="unknown")
_OCTAL = re.compile(r"\\([0-7]{3})")


def mounts(table: str) -> tuple[Mount, ...]:
    """The mounts of a mountinfo table, in its order: a later one may lie over an earlier one."""
    return tuple(
        Mount(
            point=_OCTAL.sub(lambda code: chr(int(code[1], 8)), fields[4]),
            device=fields[2],
            filesystem=fields[fields.index("-") + 1],
            read_only="ro" in (*fields[5].split(","), *fields[-1].split(",")),
        )
        for fields in (line.split(" ") for line in table.split("\n") if line)
    )


def mount_of(path: Path, device: int, table: Iterable[Mount]) -> Mount:
    """The mount that an existing, resolved path is on.

    The deepest one above it that has the path's own device number: a deeper one may be hidden
    under a later mount. Where none has it, as with btrfs subvolumes, the deepest.
    """
    above = [mount for mount in table if path.is_relative_to(mount.point)]
    number = f"{os.major(device)}:{os.minor(device)}"
    same = [mount for mount in above if mount.device == number]
    deepest = _NO_MOUNT
    for mount in same or above:
        if len(mount.point) >= len(deepest.point):
            deepest = mount
    return deepest


def nearest_existing(path: str) -> Path:
    """The path with symbolic links followed, or the nearest folder above it that exists."""
    resolved = Path(os.path.realpath(path))
    for candidate in (resolved, *resolved.parents):
        try:
            candidate.stat()
        except (FileNotFoundError, NotADirectoryError):
            continue
        return candidate
    return resolved


def os_fault(error: OSError, at: float) -> Unknown:
    """A refused or failed system call as an absence."""
    why = Absence.ERROR
    if isinstance(error, PermissionError):
        why = Absence.NO_PERMISSION
    elif isinstance(error, FileNotFoundError):
        why = Absence.MISSING
    where = f"{error.filename}: " if error.filename else ""
    return Unknown(why=why, reason=f"{where}{error.strerror}", at=at)
