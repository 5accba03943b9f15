"""Where the screen's snapshots come from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tui.model.launch import Attachment
from tui.model.snapshot import Snapshot


class SnapshotSource(Protocol):
    """Makes snapshots on threads of its own. They are daemons: nobody waits for them at the end."""

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        """Begin; `publish` takes a snapshot from any thread, at once, and keeps only the newest."""

    def attach(self, attachment: Attachment) -> None:
        """Watch this from now on; a person chose it. Returns at once."""

    def stop(self) -> None:
        """Let go of what is held. What it has not done after a moment is left undone."""
