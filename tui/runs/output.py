"""Where what a process prints ends up: a file, by itself or through pipes and `tee`."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tui.model.reading import Absence, Reading, Unknown, known

_LONGEST_CHAIN = 4
"""Pipes followed: `train.py | ts | tee run.log`."""
_DELETED = " (deleted)"


@dataclass(frozen=True, slots=True, kw_only=True)
class OutputFile:
    """A file that is printed into. Device and inode are the same from everywhere, its path not."""

    path: str
    """As its process sees it."""
    device: int
    inode: int

    def is_at(self, path: str) -> bool:
        """Whether this very file lies at that path of ours."""
        try:
            here = os.stat(path)  # noqa: PTH116 - `Path` would hide which error it was
        except OSError:
            return False
        return (here.st_dev, here.st_ino) == (self.device, self.inode)


def output_of(pid: int, at: float) -> Reading[OutputFile]:
    """The regular file that a process prints into: standard output first, then standard error."""
    faults = []
    for descriptor in (1, 2):
        reading = _end_of(pid, descriptor, at, _LONGEST_CHAIN)
        if not isinstance(reading, Unknown):
            return reading
        faults.append(reading)
    return faults[0]


def _end_of(pid: int, descriptor: int, at: float, pipes_left: int) -> Reading[OutputFile]:
    link = Path(f"/proc/{pid}/fd/{descriptor}")
    try:
        target, opened = str(link.readlink()), link.stat()
    except PermissionError:
        reason = f"only root and its own user may see where process {pid} prints"
        return Unknown(why=Absence.NO_PERMISSION, reason=reason, at=at)
    except OSError:
        return Unknown(why=Absence.MISSING, reason=f"process {pid} has no such output", at=at)
    if stat.S_ISREG(opened.st_mode):
        return _file(target, opened, at)
    if not stat.S_ISFIFO(opened.st_mode):
        return Unknown(why=Absence.MISSING, reason=f"it prints to {target}, no file", at=at)
    if pipes_left == 0:
        return Unknown(why=Absence.MISSING, reason="it prints into a long chain of pipes", at=at)
    for reader in _readers_of(target):
        for written, file in _files_written_by_tee(reader):
            return _file(written, file, at)
        further = _end_of(reader.pid, 1, at, pipes_left - 1)
        if not isinstance(further, Unknown):
            return further
    return Unknown(why=Absence.MISSING, reason="it prints into a pipe that ends in no file", at=at)


def _file(target: str, opened: os.stat_result, at: float) -> Reading[OutputFile]:
    if target.endswith(_DELETED):
        path = target.removesuffix(_DELETED)
        return Unknown(why=Absence.MISSING, reason=f"its log {path} was deleted", at=at)
    return known(OutputFile(path=target, device=opened.st_dev, inode=opened.st_ino), at)


def _readers_of(pipe: str) -> Iterator[psutil.Process]:
    for pid in psutil.pids():
        with suppress(OSError, psutil.Error):
            if str(Path(f"/proc/{pid}/fd/0").readlink()) == pipe:
                yield psutil.Process(pid)


def _files_written_by_tee(process: psutil.Process) -> Iterator[tuple[str, os.stat_result]]:
    """The files `tee` holds open, which are absolute whatever it was told."""
    with suppress(OSError, psutil.Error):
        if process.name() != "tee":
            return
        for link in sorted(Path(f"/proc/{process.pid}/fd").iterdir(), key=lambda at: int(at.name)):
            opened = link.stat()
            if int(link.name) > 2 and stat.S_ISREG(opened.st_mode):
                yield str(link.readlink()), opened
