"""A save folder on disk, read again and again at a cost that what has not changed does not raise.

A read stats the root and two names in it, then looks into folders that are new or unfinished, the
newest two, those that a resume or the next save would touch, and one old one in turn. What is whole
by presence is held against its own indexes, newest first, some at each read. A time marks
a change only once it is a moment old: file systems keep time in ticks, and two changes may fall
into one.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui.checkpoints.files import read_start
from tui.miles.indexed import held_against, indexes_in
from tui.miles.layout import (
    DATA_FOLDER,
    EVENTS_FOLDER,
    META_NAME,
    TRACKER_NAME,
    FileSeen,
    FolderSeen,
    data_state_of,
    folder_note,
    iteration_of,
    tracked_name,
)
from tui.miles.wholeness import checkpoint_of
from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree
from tui.model.reading import Absence, Reading, Unknown, known, value_or
from tui.probes.index_reader import IndexReader, file_seen

SETTLED_S = 2.0
"""A folder whose time is more recent than this may change again without a new time."""
TRACKER_LIMIT_BYTES = 4096
META_LIMIT_BYTES = 65536

Mark = tuple[tuple[int, int], ...]
"""Inodes and modification times of a folder and those below it; empty when not to be trusted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Remembered:
    """One folder as it was last looked at."""

    seen: FolderSeen
    mark: Mark
    checkpoint: Checkpoint | None = None

    @property
    def is_settled(self) -> bool:
        """Nobody is expected to write here."""
        return self.checkpoint is None or self.checkpoint.state is CheckpointState.WHOLE


class SaveFolder:
    """One save folder and what was seen in it before. Its caller answers for errors of the root."""

    def __init__(self, identity: tuple[str, int, int]) -> None:
        self.identity = identity
        """Path, device and inode of the root: another folder is another `SaveFolder`."""
        self._path = Path(identity[0])
        self._root = _Listing(self._path)
        self._data = _Listing(self._path / DATA_FOLDER)
        self._data_written: set[str] = set()
        self._remembered: dict[str, _Remembered] = {}
        self._judged_by: tuple[str | None, frozenset[int]] = (None, frozenset())
        self._indexes = IndexReader(self._path)
        self._waiting: dict[str, tuple[FileSeen, ...]] = {}
        """Checkpoints with indexes that were not read yet."""
        self._turn = 0

    def scan(self, status: os.stat_result, now: float) -> CheckpointTree:
        """Read what may have changed. `status` is the root's."""
        tracker = _read_tracker(self._path / TRACKER_NAME, now)
        kinds = self._root.read(status, now)
        numbers = {
            name: number
            for name, is_folder in kinds.items()
            if is_folder and (number := iteration_of(name)) is not None
        }
        self._remembered = {n: seen for n, seen in self._remembered.items() if n in numbers}
        self._waiting = {name: files for name, files in self._waiting.items() if name in numbers}
        self._indexes.begin(numbers)
        text = value_or(tracker, None)
        order = sorted(numbers, key=lambda name: (-numbers[name], name))
        looked_at = [name for name in self._due(order, text) if self._look(name, now)]
        basis = (text, self._data_states(now))
        is_new, self._judged_by = basis != self._judged_by, basis
        self._judge(tuple(self._remembered) if is_new else looked_at, now)
        self._judge(self._read_indexes(order), now)
        held = [self._remembered[name] for name in order if name in self._remembered]
        return CheckpointTree(
            root=str(self._path),
            tracker=tracker,
            checkpoints=tuple(one.checkpoint for one in held if one.checkpoint is not None),
            note=folder_note(str(self._path), kinds) or _linked_note(kinds),
        )

    def _due(self, order: list[str], tracker: str | None) -> set[str]:
        """Names to look into now."""
        old = [name for name in order if name in self._remembered]
        due = {name for name in order if name not in self._remembered}
        due.update(name for name in old if not self._remembered[name].is_settled)
        due.update([name for name in old if self._remembered[name].checkpoint is not None][:2])
        tracked = tracked_name(tracker)
        if tracked in old:
            place = old.index(tracked)
            due.update(old[max(0, place - 2) : place + 1])
        resting = [name for name in old if name not in due]
        if resting:
            self._turn = (self._turn + 1) % len(resting)
            name = resting[self._turn]
            if self._mark_of(name) != self._remembered[name].mark:
                due.add(name)
        return due

    def _mark_of(self, name: str) -> Mark:
        folders = _below(self._remembered[name].seen.folders)
        try:
            found = [(self._path / name / folder).stat() for folder in ("", *folders)]
        except OSError:
            return ()
        return tuple((status.st_ino, status.st_mtime_ns) for status in found)

    def _look(self, name: str, now: float) -> bool:
        """Look into one folder; False where it is gone."""
        found = _look_into(self._path / name, now)
        if found is None:
            self._remembered.pop(name, None)
            self._waiting.pop(name, None)
        else:
            self._remembered[name] = found
        return found is not None

    def _judge(self, names: Iterable[str], now: float) -> None:
        tracker, data_states = self._judged_by
        for name in names:
            seen = self._remembered[name].seen
            checkpoint = checkpoint_of(
                seen,
                path=str(self._path / name),
                tracker=tracker,
                data_states=data_states,
                now=now,
            )
            self._waiting.pop(name, None)
            if checkpoint is not None and checkpoint.state is CheckpointState.WHOLE:
                files = indexes_in(seen, checkpoint.layout)
                known_indexes = self._indexes.known(name, files)
                if len(known_indexes) < len(files):
                    self._waiting[name] = files
                checkpoint = held_against(checkpoint, seen, known_indexes)
            self._remembered[name] = replace(self._remembered[name], checkpoint=checkpoint)

    def _read_indexes(self, order: Iterable[str]) -> list[str]:
        """Read some of those that wait; the checkpoints to judge again."""
        read = []
        for name in order:
            if name in self._waiting and not self._indexes.is_spent:
                self._indexes.read(name, self._waiting[name])
                read.append(name)
        return read

    def _data_states(self, now: float) -> frozenset[int]:
        """Rollouts with a data source's position. Written in place: an empty file is not yet."""
        path = self._path / DATA_FOLDER
        try:
            names = self._data.read(path.stat(), now)
        except OSError:
            return frozenset()
        self._data_written &= names.keys()
        self._data_written.update(
            name
            for name in names
            if name not in self._data_written and data_state_of(name) is not None
            if _size_of(path / name)
        )
        return frozenset(
            number for name in self._data_written if (number := data_state_of(name)) is not None
        )


class _Listing:
    """Names in one folder; listed again only when the folder's time says so."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._mark: tuple[int, int] | None = None
        self._kinds: dict[str, bool] = {}

    def read(self, status: os.stat_result, now: float) -> dict[str, bool]:
        """Name → whether it is a folder itself, not a link to one."""
        mark = (status.st_ino, status.st_mtime_ns)
        if mark != self._mark:
            with os.scandir(self._path) as entries:
                self._kinds = {e.name: e.is_dir(follow_symlinks=False) for e in entries}
            self._mark = mark if _is_settled(status, now) else None
        return self._kinds


def _is_settled(status: os.stat_result, now: float) -> bool:
    return now - status.st_mtime > SETTLED_S


def _below(folders: Iterable[str]) -> Iterator[str]:
    return (folder for folder in folders if folder != EVENTS_FOLDER)


def _linked_note(kinds: dict[str, bool]) -> str:
    linked = [n for n, is_folder in kinds.items() if iteration_of(n) is not None and not is_folder]
    return f"{min(linked)} is not a folder but a link or a file: left out" if linked else ""


def _size_of(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _look_into(path: Path, now: float) -> _Remembered | None:
    """A checkpoint folder two levels deep; None where it is gone. Files may vanish meanwhile."""
    files: list[FileSeen] = []
    folders: list[str] = []
    marks: list[os.stat_result] = []
    fault = ""
    try:
        marks.append(path.stat())
        folders += _list_into(files, path, "")
        for folder in _below(folders):
            with suppress(FileNotFoundError):
                marks.append((path / folder).stat())
                _list_into(files, path / folder, f"{folder}/")
    except FileNotFoundError:
        return None
    except OSError as error:
        fault = error.strerror or str(error)
    is_trusted = not fault and all(_is_settled(status, now) for status in marks)
    has_meta = any(file.path == META_NAME for file in files)
    seen = FolderSeen(
        name=path.name,
        files=tuple(files),
        folders=tuple(folders),
        written_at=max((status.st_mtime for status in marks), default=0.0),
        meta_text=_read_meta(path / META_NAME) if has_meta else "",
        fault=fault,
    )
    mark = tuple((status.st_ino, status.st_mtime_ns) for status in marks)
    return _Remembered(seen=seen, mark=mark if is_trusted else ())


def _list_into(files: list[FileSeen], path: Path, prefix: str) -> list[str]:
    """Add the files in `path` to `files`; the names of the folders in it."""
    folders = []
    with os.scandir(path) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                folders.append(entry.name)
                continue
            with suppress(FileNotFoundError):
                files.append(file_seen(prefix + entry.name, entry.stat()))
    return sorted(folders)


def _read_meta(path: Path) -> str:
    try:
        return read_start(path, META_LIMIT_BYTES)[0].decode("utf-8", "replace")
    except OSError:
        return ""


def _read_tracker(path: Path, now: float) -> Reading[str]:
    """The tracker's text as it stands, whatever it says."""
    try:
        start, _ = read_start(path, TRACKER_LIMIT_BYTES)
    except FileNotFoundError:
        return Unknown(
            why=Absence.MISSING, reason="no tracker: a restart would begin at rollout 0", at=now
        )
    except PermissionError:
        return Unknown(why=Absence.NO_PERMISSION, reason=f"{path.name} may not be read", at=now)
    except OSError as error:
        return Unknown(why=Absence.ERROR, reason=f"{path.name}: {error.strerror}", at=now)
    if len(start) > TRACKER_LIMIT_BYTES:
        reason = f"{path.name} is too long to be a tracker: it should hold one number"
        return Unknown(why=Absence.ERROR, reason=reason, at=now)
    return known(start.decode("utf-8", "replace"), now)
