"""What of a save folder came after a checkpoint, or is in the way of the next run. Pure.

A save leaves a folder `iter_N`, the data source's position named by its last rollout, and with
`--dump-details` the events so far in a folder named by that rollout too. FSDP's iterations are one
ahead of their rollouts, so there a copy of events may lie in the folder of the checkpoint before.
"""

from __future__ import annotations

import posixpath
from dataclasses import dataclass

from tui.miles.layout import (
    DATA_FOLDER,
    EVENTS_FOLDER,
    data_state_of,
    iteration_of,
    tracked_name,
)
from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.model.reading import value_or

_BROKEN = frozenset({CheckpointState.PARTIAL, CheckpointState.DAMAGED})


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveListing:
    """Names in one save folder; what a link leads to is not looked at."""

    names: frozenset[str] = frozenset()
    data_names: frozenset[str] = frozenset()
    """In `rollout/`."""
    with_events: frozenset[str] = frozenset()
    """Folders of iterations that hold a copy of events."""


def newer_than(checkpoint: Checkpoint, listing: SaveListing) -> tuple[str, ...]:
    """Paths below the save folder that were saved after this checkpoint, whole or not."""
    own = folder_name(checkpoint)
    folders = [
        name
        for name in listing.names
        if (iteration := iteration_of(name)) is not None and iteration > checkpoint.iteration
    ]
    events = [f"{own}/{EVENTS_FOLDER}"] if own in listing.with_events else []
    positions = [
        f"{DATA_FOLDER}/{name}"
        for name in listing.data_names
        if (rollout := data_state_of(name)) is not None and rollout > checkpoint.after_rollout
    ]
    is_shifted = checkpoint.layout is Layout.FSDP
    return (*(events if is_shifted else ()), *sorted(folders), *sorted(positions))


def aside_for_resume(tree: CheckpointTree) -> tuple[str, ...]:
    """Folders that the next run would save over, left by a save that did not finish.

    One that is being written is not among them: it may yet be whole.
    """
    loaded = iteration_of(tracked_name(value_or(tree.tracker, None)) or "")
    floor = -1 if loaded is None else loaded
    return tuple(
        folder_name(each)
        for each in reversed(tree.checkpoints)
        if each.iteration > floor and each.state in _BROKEN
    )


def folder_name(checkpoint: Checkpoint) -> str:
    """Its name in the save folder."""
    return posixpath.basename(checkpoint.path)


def tracker_for(checkpoint: Checkpoint) -> str:
    """What the tracker has to say for a resume to load it."""
    name = folder_name(checkpoint)
    return name if name == "release" else str(checkpoint.iteration)
