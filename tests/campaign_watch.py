"""What must be true of a run whatever is killed: looked at all the time, and held against before."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from places import Place

from tui.model.checkpoint import Checkpoint, CheckpointState
from tui.probes.save_folder import SaveFolder

DRIVER, CONVERTER = b"tui.demo", b"tui.demo.convert"
ENVIRONMENT = "CAMPAIGN"
"""Names the place in the environment of all that runs in it."""
_LOOK_S = 0.05
Listing = dict[str, tuple[int, int]]


def instances(module: bytes, mark: str) -> list[int]:
    """Pids of the programs of this place that run now; a child that is just forked is none."""
    found: dict[int, int] = {}
    for name in os.listdir("/proc"):  # noqa: PTH208 - names are what is wanted
        if not name.isdecimal():
            continue
        with suppress(OSError, IndexError, ValueError):
            words = Path("/proc", name, "cmdline").read_bytes().split(b"\0")
            is_python = words[0].rpartition(b"/")[2].startswith(b"python")
            is_module = [b"-m", module] in (words[1:3], words[2:4])
            if is_python and is_module and _is_of(name, words, mark.encode()):
                stat = Path("/proc", name, "stat").read_bytes()
                found[int(name)] = int(stat.rpartition(b")")[2].split()[1])
    return [pid for pid, parent in found.items() if parent not in found]


def _is_of(pid: str, words: list[bytes], mark: bytes) -> bool:
    """By its command or, where that says the same in every place, by its environment."""
    if any(word.endswith(mark) for word in words):
        return True
    environment = Path("/proc", pid, "environ").read_bytes().split(b"\0")
    return ENVIRONMENT.encode() + b"=" + mark in environment


class Watch(threading.Thread):
    """Samples processes, tracker and folders from its beginning to its end."""

    def __init__(self, place: Place) -> None:
        super().__init__(daemon=True)
        self.faults: set[str] = set()
        self.folders: dict[int, str] = {}
        """Every checkpoint's folder that was seen: inode and name."""
        self.samples = 0
        self._place = place
        self._over = threading.Event()

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(self, *fault: object) -> None:
        self._over.set()
        self.join()

    def run(self) -> None:
        while not self._over.wait(_LOOK_S):
            self.samples += 1
            for module in (DRIVER, CONVERTER):
                if len(pids := instances(module, self._place.mark)) > 1:
                    self.faults.add(f"{len(pids)} of {module.decode()} at once")
            self._look_at(self._place.saves)

    def _look_at(self, saves: Path) -> None:
        with suppress(OSError):
            self.folders |= dict(checkpoint_folders(saves))
        named = tracked(saves)
        if named is not None and not named.is_dir() and named == tracked(saves):
            self.faults.add(f"the tracker named {named.name}, which was not there")


def tracked(saves: Path) -> Path | None:
    """The folder that the tracker names; None where there is none, or it is being written."""
    with suppress(OSError, ValueError):
        text = (saves / "latest_checkpointed_iteration.txt").read_text()
        return saves / f"iter_{int(text):07d}"
    return None


def checkpoint_folders(saves: Path) -> Iterator[tuple[int, str]]:
    """Inode and name of each checkpoint, those moved aside too."""
    for path in (*saves.glob("iter_*"), *saves.glob("quarantine-*/iter_*")):
        yield path.stat().st_ino, path.name


@dataclass(frozen=True, slots=True)
class Kept:
    """What there was at one moment, and must never be lost."""

    logs: dict[Path, bytes] = field(default_factory=dict)
    wholes: dict[int, Listing] = field(default_factory=dict)
    """Each checkpoint up to the one that the tracker names: inode, and what is in it."""

    @classmethod
    def of(cls, place: Place) -> Kept:
        newest = tracked(place.saves)
        return cls(
            logs={path: path.read_bytes() for path in (place.folder / "runs").iterdir()},
            wholes={
                path.stat().st_ino: _listing(path)
                for path in place.saves.glob("iter_*")
                if newest is not None and path.name <= newest.name
            },
        )

    def lost(self, place: Place, seen: dict[int, str]) -> Iterator[str]:
        """What of it is not there any more, and of all folders that were seen since."""
        for path, text in self.logs.items():
            if not path.exists() or not path.read_bytes().startswith(text):
                yield f"{path.name} does not begin with what it said before"
        there = dict(checkpoint_folders(place.saves))
        for inode in seen.keys() - there.keys():
            yield f"{seen[inode]} is lost"
        now = {path.stat().st_ino: path for path in _all_folders(place.saves)}
        for inode, listing in self.wholes.items():
            if inode in now and _listing(now[inode]) != listing:
                yield f"{now[inode].name} was changed"


def _all_folders(saves: Path) -> Iterator[Path]:
    yield from saves.glob("iter_*")
    yield from saves.glob("quarantine-*/iter_*")


def _listing(folder: Path) -> Listing:
    found = {}
    for path in folder.rglob("*"):
        status = path.stat()
        if path.is_file():
            found[str(path.relative_to(folder))] = (status.st_size, status.st_mtime_ns)
    return found


def whole(saves: Path, now: float) -> list[Checkpoint]:
    """The whole checkpoints, the newest first, by milepost's own scan."""
    status = saves.stat()
    tree = SaveFolder((str(saves), status.st_dev, status.st_ino)).scan(status, now)
    return [each for each in tree.checkpoints if each.state is CheckpointState.WHOLE]
