"""Where the run saves its checkpoints, as a path of this machine."""

from __future__ import annotations

from tui.model.launch import host_path
from tui.model.reading import Absence, Known, Unknown
from tui.model.snapshot import Snapshot


def save_path(seen: Snapshot, now: float) -> str | Unknown:
    """The save folder as this machine sees it: what a person named, else what the run was told."""
    if seen.attachment.checkpoints is not None:
        return seen.attachment.checkpoints.value
    launch = seen.story.launch if seen.story.launch.argv else seen.attachment.launch
    if launch.save is None:
        saves_nothing = bool(launch.argv)
        reason = (
            "the run has no --save: it saves nothing" if saves_nothing else "no folder is known"
        )
        return Unknown(why=Absence.MISSING, reason=f"{reason}; --checkpoints DIR names one", at=now)
    if not launch.save.startswith("/"):
        return Unknown(
            why=Absence.MISSING,
            reason=f"--save {launch.save} is relative to the run; name it with --checkpoints DIR",
            at=now,
        )
    if not isinstance(seen.container, Known):
        return launch.save
    mapped = host_path(launch.save, seen.container.value.mounts)
    if mapped is None:
        reason = f"--save {launch.save} is on no mount of the container and vanishes with it"
        return Unknown(why=Absence.MISSING, reason=reason, at=now)
    return mapped
