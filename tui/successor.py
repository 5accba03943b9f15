"""Goes on with the run that a resume started: another log, another process, the same story."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from tui.attach import Target, completed, found, is_of_start
from tui.errors import MilepostError
from tui.model.action import ActionKind
from tui.model.events import Attached, Event
from tui.model.launch import Attachment, Found
from tui.model.snapshot import Snapshot

_SOURCE = "started by milepost"
_STARTS = ("log", "container_id", "submission_id")
"""What the journal of a resume says of what it started."""


class SuccessorFinder:
    """Watches what a resume has started, instead of what it has ended."""

    name = "successor"
    cadence_s = 1.0
    deadline_s = 10.0

    def __init__(self, at: float) -> None:
        self._since = at
        self._followed: Mapping[str, str] = {}

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Change over when the journal tells of a start, then look until there is a driver."""
        started = self._started(seen)
        if not started:
            return ()
        is_new = started != self._followed and not is_of_start(seen.attachment, started)
        if not is_new and seen.attachment.driver_pid is not None:
            return ()
        later = _attachment(started, seen.attachment, now)
        if not is_new and later == seen.attachment:
            return ()
        self._followed = started
        return (Attached(at=now, attachment=later, succeeds=is_new),)

    def close(self) -> None:
        """Nothing is held."""

    def _started(self, seen: Snapshot) -> Mapping[str, str]:
        """What was started since this monitor began, or by an action that was under way then."""
        for record in reversed(seen.actions):
            is_ours = record.began_at >= self._since or record.changed_at >= self._since
            if record.kind is ActionKind.RESUME and is_ours:
                return {key: record.facts[key] for key in _STARTS if record.facts.get(key)}
        return {}


def _attachment(started: Mapping[str, str], before: Attachment, at: float) -> Attachment:
    base = replace(
        before, log=None, container=None, driver_pid=None, job=None, engines=(), notes=()
    )
    if log := started.get("log"):
        base = replace(base, log=Found(value=log, source=_SOURCE))
    try:
        finding = found(_target(started), at=at)
    except MilepostError:
        return base
    later = completed(base, finding.attachment)
    launch = finding.attachment.launch if finding.attachment.launch.argv else before.launch
    return replace(later, name=before.name, launch=launch)


def _target(started: Mapping[str, str]) -> Target:
    if container := started.get("container_id"):
        return Target(container=container)
    if log := started.get("log"):
        return Target(log=Path(log))
    return Target(name=started["submission_id"])
