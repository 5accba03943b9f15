"""A run that was seen here before and of which nothing runs any more: killed with the box, say.

Without this, what is attached to after its end is known by a log that falls silent, and silence
alone is no end.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tui.model.events import Event, ProcessesRead
from tui.model.launch import Attachment, ProcessTree
from tui.model.reading import known
from tui.model.snapshot import Snapshot

_SURE_S = 15.0
"""A launcher may have ended, and the driver that it started not look like one yet."""


class GoneProbe:
    """Looks where no driver and no container is known."""

    name = "gone"
    cadence_s = 5.0
    deadline_s = 15.0

    def __init__(self, is_gone: Callable[[Attachment, float], bool]) -> None:
        """`is_gone`: what was seen of it here has ended, and nothing else of it is seen."""
        self._is_gone = is_gone
        self._since = 0.0

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Its processes, of which there are none, once that is sure."""
        attachment = seen.attachment
        is_known = attachment.driver_pid or attachment.container or attachment.job
        if is_known or attachment.log is None or not self._is_gone(attachment, now):
            self._since = 0.0
            return ()
        self._since = min(self._since or now, now)
        if now - self._since < _SURE_S:
            return ()
        tree = ProcessTree(driver_exited_at=self._since)
        return (ProcessesRead(at=now, tree=known(tree, now)),)

    def close(self) -> None:
        """Nothing is held."""
