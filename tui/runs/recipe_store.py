"""The recipe of a run in its state folder, readable by its owner alone; and as it may be shown.

The newest start is `recipe.json`. A few before it stay as `recipe-TIME.json`, by their start.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path

from tui.model.codec import decoded, encoded
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.recipe import Recipe
from tui.runs.state_dir import made

FILE = "recipe.json"
VERSION = 1
_MOST_OLD = 5
_DRAFT_S = 60.0
_FIELDS = frozenset(field.name for field in fields(Recipe))


def kept(folder: Path) -> Recipe | None:
    """The recipe of the newest start; None where none was kept or it cannot be read."""
    found = read(folder)
    return None if isinstance(found, Unknown) else found.value


def read(folder: Path) -> Reading[Recipe]:
    """The recipe of the newest start, or why there is none."""
    file = folder / FILE
    try:
        return known(_decoded(file.read_text(encoding="utf-8")), file.stat().st_mtime)
    except FileNotFoundError:
        return Unknown(why=Absence.MISSING, reason="how it was started was never seen")
    except PermissionError:
        reason = f"{file} belongs to another user: run milepost as that user or with sudo"
        return Unknown(why=Absence.NO_PERMISSION, reason=reason)
    except (OSError, ValueError) as fault:
        return Unknown(why=Absence.ERROR, reason=f"{file} cannot be read: {fault}")


def keep(folder: Path, recipe: Recipe) -> bool:
    """Keep it as the newest. One of another start stays beside it.

    Returns:
        Whether anything had to be written.

    Raises:
        OSError: it cannot be written.
    """
    before = kept(folder)
    if before is not None and _is_equal(before, recipe):
        return False
    made(folder)
    if before is not None and not is_same_start(before, recipe):
        _set_aside(folder, before)
    _write(folder / FILE, json.dumps({"milepost_recipe": VERSION, **encoded(recipe)}))
    return True


def is_same_start(one: Recipe, other: Recipe) -> bool:
    """Whether both are of one start of the run, from whatever source."""
    if one.container_id and one.container_id == other.container_id:
        return True
    if one.submission_id and one.submission_id == other.submission_id:
        return True
    if one.ours and other.ours and one.log == other.log != "":
        return True  # a log of ours is new at each start
    return (one.pid, one.run_started_at) == (other.pid, other.run_started_at)


def _is_equal(one: Recipe, other: Recipe) -> bool:
    """Apart from when it was looked at."""
    return replace(one, captured_at=0.0) == replace(other, captured_at=0.0)


def _decoded(text: str) -> Recipe:
    """Raises ValueError for what is no recipe."""
    try:
        document = json.loads(text)
        if document.pop("milepost_recipe", None) != VERSION:
            raise ValueError(f"not a recipe of version {VERSION}")
        own = {name: value for name, value in document.items() if name in _FIELDS}
        recipe = decoded(own, Recipe)
    except (AttributeError, KeyError, TypeError, RecursionError) as fault:
        raise ValueError(f"not a recipe: {type(fault).__name__}") from fault
    assert isinstance(recipe, Recipe)
    return recipe


def _set_aside(folder: Path, before: Recipe) -> None:
    moment = time.strftime("%Y%m%d-%H%M%S", time.localtime(before.run_started_at))
    with suppress(FileExistsError):  # set aside before, by one who did not come to write the new
        (folder / f"recipe-{moment}.json").hardlink_to(folder / FILE)
    for file in sorted(folder.glob("recipe-*.json"))[:-_MOST_OLD]:
        with suppress(OSError):
            file.unlink()


def _write(file: Path, text: str) -> None:
    """In one step: there is the old recipe or the new, never a part."""
    _remove_left(file)
    draft = file.with_suffix(f".{os.getpid()}.tmp")
    number = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            out.write(text)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
    _sync(file.parent)


def _remove_left(file: Path) -> None:
    """Drafts of processes that were killed: they hold secrets too."""
    for draft in file.parent.glob(f"{file.stem}.*.tmp"):
        with suppress(OSError):
            if time.time() - draft.stat().st_mtime > _DRAFT_S:
                draft.unlink()


def _sync(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)
