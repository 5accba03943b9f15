"""Checkpoints: which there are, which the tracker names, which are whole."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tui.model.checkpoint import CheckpointTree
from tui.model.events import CheckpointsScanned, Event
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.snapshot import Snapshot
from tui.probes.results import Results
from tui.probes.save_folder import SaveFolder
from tui.probes.save_path import save_path


class CheckpointsProbe:
    """Reads the save folder of the run."""

    name = "checkpoints"
    cadence_s = 5.0
    deadline_s = 5.0

    def __init__(self) -> None:
        self._folder: SaveFolder | None = None
        self._results = Results()

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        return (CheckpointsScanned(at=now, tree=self._tree(now, seen)),)

    def close(self) -> None:
        self._folder = None

    def _tree(self, now: float, seen: Snapshot) -> Reading[CheckpointTree]:
        root = save_path(seen, now)
        if isinstance(root, Unknown):
            return root
        try:
            status = Path(root).stat()
            identity = (root, status.st_dev, status.st_ino)
            if self._folder is None or self._folder.identity != identity:
                self._folder = SaveFolder(identity)
            return known(self._results.beside(self._folder.scan(status, now), now), now)
        except OSError as error:
            self._folder = None
            return _unreadable(root, error, now)


def _unreadable(path: str, error: OSError, now: float) -> Unknown:
    match error:
        case FileNotFoundError():
            if Path(path).parent.is_dir():
                reason = f"nothing saved yet: {path} is not there"
            else:
                reason = f"{path} is not there; if it lies in a container, name the host's folder "
                reason += "with --checkpoints DIR"
            return Unknown(why=Absence.MISSING, reason=reason, at=now)
        case PermissionError():
            return Unknown(
                why=Absence.NO_PERMISSION,
                reason=f"{path} may not be read; run as its owner or as root",
                at=now,
            )
        case NotADirectoryError():
            return Unknown(why=Absence.ERROR, reason=f"{path} is not a folder", at=now)
        case _:
            return Unknown(why=Absence.ERROR, reason=f"{path}: {error.strerror}", at=now)
