"""The names in a save folder, as what came after a checkpoint is told by."""

from __future__ import annotations

import os
from pathlib import Path

from tui.checkpoints.rollback import SaveListing
from tui.miles.layout import DATA_FOLDER, EVENTS_FOLDER, iteration_of


def listing_of(root: Path) -> SaveListing:
    """What is there now. Raises OSError."""
    data = root / DATA_FOLDER
    names = frozenset(os.listdir(root))  # noqa: PTH208 - names are what is wanted
    return SaveListing(
        names=names,
        data_names=frozenset(os.listdir(data)) if is_folder(data) else frozenset(),  # noqa: PTH208
        with_events=frozenset(
            name
            for name in names
            if iteration_of(name) is not None and is_folder(root / name / EVENTS_FOLDER)
        ),
    )


def is_folder(path: Path) -> bool:
    """A folder itself, not a link to one."""
    return path.is_dir() and not path.is_symlink()
