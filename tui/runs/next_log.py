"""The file that another start prints into: new, and beside the old one where that can be."""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from pathlib import Path

_RESUMED = re.compile(r"(.*?)-resume(?:-\d+)?")


def next_name(path: str, is_taken: Callable[[str], bool]) -> str:
    """`plain-resume.log` behind `plain.log`, then `plain-resume-2.log` and so on. Pure."""
    folder, name = os.path.split(path)
    stem, suffix = os.path.splitext(name)  # noqa: PTH122 - pathlib drops a dot at the end
    resumed = _RESUMED.fullmatch(stem)
    base = os.path.join(folder, f"{resumed[1] if resumed else stem}-resume")  # noqa: PTH118
    number, found = 1, f"{base}{suffix}"
    while is_taken(found):
        number += 1
        found = f"{base}-{number}{suffix}"
    return found


def original_stem(path: str) -> str:
    """`plain` for `plain.log` and for every log of a resume after it."""
    stem = Path(path).stem
    resumed = _RESUMED.fullmatch(stem)
    return resumed[1] if resumed and resumed[1] else stem


def next_log(path: str, folder: Path) -> str:
    """Where the next start is to print.

    Args:
        path: where the one before printed; empty where that was no file.
        folder: the run's state folder, for when nothing can be made beside it.
    """
    old = Path(path) if path else folder / "run.log"
    if not os.access(old.parent, os.W_OK | os.X_OK):
        old = folder / old.name
    return next_name(str(old), os.path.lexists)
