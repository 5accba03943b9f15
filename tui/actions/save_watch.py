"""What a save leaves behind: checkpoints in the save folder, and lines in the log."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock
from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.model.events import CheckpointSave, SaveStage
from tui.probes.log_bytes import FileFollower, decode
from tui.probes.save_folder import SaveFolder

Wholes = Mapping[str, float]
"""The whole checkpoints at one moment: iteration, as text, and when each was taken."""
_WINDOW_BYTES = 1 << 20


class FolderWatch:
    """A save folder looked at again and again; one that cannot be seen holds nothing."""

    def __init__(self, root: str) -> None:
        self._root = root
        self._folder: SaveFolder | None = None
        self.checkpoints: tuple[Checkpoint, ...] = ()

    def look(self, now: float) -> None:
        """See what is there now."""
        tree = self._scan(now)
        self.checkpoints = tree.checkpoints if tree is not None else ()

    def wholes(self) -> str:
        """The whole checkpoints, as `brought` takes them."""
        return json.dumps({str(each.iteration): each.taken_at for each in self._whole()})

    def brought(self, before: str) -> Checkpoint | None:
        """The newest checkpoint that a resume could load, and that was not there before."""
        old: Wholes = json.loads(before)
        for each in self._whole():
            is_loadable = each.tracked or each.layout is Layout.LORA
            if is_loadable and old.get(str(each.iteration)) != each.taken_at:
                return each
        return None

    def under_way(self) -> Checkpoint | None:
        """The checkpoint that is being written."""
        saving = CheckpointState.SAVING
        return next((each for each in self.checkpoints if each.state is saving), None)

    def _whole(self) -> list[Checkpoint]:
        return [each for each in self.checkpoints if each.state is CheckpointState.WHOLE]

    def _scan(self, now: float) -> CheckpointTree | None:
        try:
            status = Path(self._root).stat()
            identity = (self._root, status.st_dev, status.st_ino)
            if self._folder is None or self._folder.identity != identity:
                self._folder = SaveFolder(identity)
            return self._folder.scan(status, now)
        except OSError:
            return None


class LogWatch:
    """The saves that a log tells of from now on; with `again`, those of its last lines too."""

    def __init__(self, path: str, *, again: bool) -> None:
        self._follower = FileFollower(Path(path)) if path else None
        self._parser = LogParser(LogClock(live=True))
        self.started: set[int] = set()
        self.saved: set[int] = set()
        if self._follower is not None:
            self._follower.open_at_end(_WINDOW_BYTES if again else 0)

    def look(self, now: float) -> None:
        """Read what was added."""
        while self._follower is not None:
            read = self._follower.read()
            for line in read.lines:
                for event in self._parser.feed(decode(line.content), now).events:
                    if isinstance(event, CheckpointSave):
                        is_saved = event.stage is SaveStage.SAVED
                        (self.saved if is_saved else self.started).add(event.iteration)
            if not read.is_behind:
                return
