"""A source of snapshots that records them as they pass, while a screen is open."""

from __future__ import annotations

from collections.abc import Callable

from tui.guard.keeping import RunKeeper
from tui.model.launch import Attachment
from tui.model.snapshot import Snapshot
from tui.monitor import Monitor


class RecordedMonitor:
    """The monitor, with what it publishes kept in the run's black box."""

    def __init__(self, monitor: Monitor) -> None:
        self._monitor = monitor
        self._keeper = RunKeeper(with_log=False)

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        """Begin."""

        def kept(snapshot: Snapshot) -> None:
            self._keeper.record(snapshot)
            publish(snapshot)

        self._monitor.start(kept)

    def attach(self, attachment: Attachment) -> None:
        """Watch this from now on."""
        self._monitor.attach(attachment)

    def verify(self, path: str | None) -> None:
        """Read this checkpoint whole; None: no more."""
        self._monitor.verify(path)

    def stop(self) -> None:
        """Stop, and write what waits."""
        self._monitor.stop()
        self._keeper.close()
