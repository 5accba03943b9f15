"""A container name that is taken: what may be done about it. Never remove a running one for it."""

from __future__ import annotations

from enum import StrEnum

from tui.model.launch import Container

_STILL_THERE = frozenset({"running", "paused", "restarting"})


class NameUse(StrEnum):
    """What stands behind a name, looked up with stopped containers too."""

    FREE = "free"
    RENAME_ASIDE = "rename aside"
    """An ended container has it: renamed, it keeps its log and exit code."""
    WAIT = "wait"
    """Its removal is under way, and ends by itself."""
    REFUSE = "refuse"
    """A running container has it."""


def name_use(owner: Container | None) -> NameUse:
    """What to do to get the name that `owner` has."""
    if owner is None or owner.status == "gone":
        return NameUse.FREE
    if owner.status == "removing":
        return NameUse.WAIT
    return NameUse.REFUSE if owner.status in _STILL_THERE else NameUse.RENAME_ASIDE
