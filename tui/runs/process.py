"""Drivers on this machine: their arguments, their folder, and where what they print ends up."""

from __future__ import annotations

import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil

from tui.miles.flags import launch_from_argv
from tui.miles.titles import DEMO_MODULE, Role, role_of
from tui.model.launch import LaunchArgs
from tui.model.reading import Absence, Reading, Unknown, known

_LONGEST_CHAIN = 4
"""Pipes followed: `train.py | ts | tee run.log`."""
_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Driver:
    """One `train.py`, `train_async.py` or demo process."""

    pid: int
    started_at: float
    """Epoch seconds; with the pid an identity."""
    argv: tuple[str, ...] = field(repr=False)
    """Unmasked; `launch` has it masked."""
    launch: LaunchArgs
    cwd: str
    """Empty when it is not readable."""
    output: Reading[str]
    """The file that its standard output, or else its standard error, ends up in."""
    foreign_mounts: bool = False
    """It lives in another mount namespace, a container's: its paths are as seen there."""
    demo: bool = False


def find_drivers(at: float) -> tuple[Driver, ...]:
    """Every driver that can be seen, the newest first; forked copies of one are left out."""
    found: dict[int, tuple[psutil.Process, tuple[str, ...], int]] = {}
    for pid in psutil.pids():
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            argv = tuple(process.cmdline())
            if role_of(argv) is Role.DRIVER:
                found[pid] = (process, argv, process.ppid())
    drivers: list[Driver] = []
    for process, argv, parent in found.values():
        if parent not in found:
            with suppress(psutil.Error):
                drivers.append(_driver(process, argv, at))
    return tuple(sorted(drivers, key=lambda driver: driver.started_at, reverse=True))


def output_of(pid: int, at: float) -> Reading[str]:
    """The regular file that a process prints into, by itself or through pipes and `tee`."""
    faults = []
    for descriptor in (1, 2):
        reading = _end_of(pid, descriptor, at, _LONGEST_CHAIN)
        if not isinstance(reading, Unknown):
            return reading
        faults.append(reading)
    return faults[0]


def _driver(process: psutil.Process, argv: tuple[str, ...], at: float) -> Driver:
    cwd = ""
    with suppress(psutil.AccessDenied):
        cwd = process.cwd()
    return Driver(
        pid=process.pid,
        started_at=process.create_time(),
        argv=argv,
        launch=launch_from_argv(argv),
        cwd=cwd,
        output=output_of(process.pid, at),
        foreign_mounts=_has_foreign_mounts(process.pid),
        demo=DEMO_MODULE in argv,
    )


def _end_of(pid: int, descriptor: int, at: float, pipes_left: int) -> Reading[str]:
    link = Path(f"/proc/{pid}/fd/{descriptor}")
    try:
        target, mode = str(link.readlink()), link.stat().st_mode
    except PermissionError:
        reason = f"the output of process {pid} is readable by its user and root only"
        return Unknown(why=Absence.NO_PERMISSION, reason=reason, at=at)
    except OSError:
        return Unknown(why=Absence.MISSING, reason=f"process {pid} has no such output", at=at)
    if stat.S_ISREG(mode):
        return _file(target, at)
    if not stat.S_ISFIFO(mode):
        return Unknown(why=Absence.MISSING, reason=f"it prints to {target}, no file", at=at)
    if pipes_left == 0:
        return Unknown(why=Absence.MISSING, reason="it prints into a long chain of pipes", at=at)
    for reader in _readers_of(target):
        written = next(_files_written_by_tee(reader), None)
        if written is not None:
            return _file(written, at)
        further = _end_of(reader.pid, 1, at, pipes_left - 1)
        if not isinstance(further, Unknown):
            return further
    return Unknown(why=Absence.MISSING, reason="it prints into a pipe that ends in no file", at=at)


def _file(target: str, at: float) -> Reading[str]:
    if target.endswith(_DELETED):
        path = target.removesuffix(_DELETED)
        return Unknown(why=Absence.MISSING, reason=f"its log {path} was deleted", at=at)
    return known(target, at)


def _readers_of(pipe: str) -> Iterator[psutil.Process]:
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if str(Path(f"/proc/{pid}/fd/0").readlink()) == pipe:
                yield psutil.Process(pid)


def _files_written_by_tee(process: psutil.Process) -> Iterator[str]:
    """The files `tee` holds open, which are absolute whatever it was told."""
    with suppress(OSError, psutil.Error):
        if process.name() != "tee":
            return
        for link in sorted(Path(f"/proc/{process.pid}/fd").iterdir(), key=lambda at: int(at.name)):
            if int(link.name) > 2 and stat.S_ISREG(link.stat().st_mode):
                yield str(link.readlink())


def _has_foreign_mounts(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/ns/mnt").readlink() != Path("/proc/self/ns/mnt").readlink()
    except OSError:
        return False
