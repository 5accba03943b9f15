"""Moves within a save folder, and the tracker file: by rename alone, so that no byte is copied.

Whenever this process is killed, each thing is in one of its two places, whole, and the tracker has
its old text or its new one. What is in its new place already was moved by an earlier entry.
"""

from __future__ import annotations

import errno
import json
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from tui.actions.context import Context, Done
from tui.actions.errors import StepFailed
from tui.actions.save_listing import listing_of
from tui.checkpoints.files import read_start
from tui.checkpoints.rollback import newer_than
from tui.miles.layout import iteration_of, tracked_name
from tui.model.judge.words import counted
from tui.model.plan import MoveAside, MoveBack, WriteTracker

_TRACKER_LIMIT_BYTES = 4096


def move_aside(step: MoveAside, context: Context) -> Done:
    """Move what came later out of the way."""
    root, quarantine = Path(step.root), Path(step.root, step.quarantine)
    with _told(root):
        if quarantine.exists() and not context.again:
            raise StepFailed(f"{quarantine} is there already: nothing was moved")
        paths = _paths_aside(step, context)
        for path in paths:
            if os.path.lexists(root / path):
                _make_folders(root, quarantine / path)
                _move(root / path, quarantine / path)
        _sync(root, quarantine, paths)
    return Done(line=f"{_things(paths)} moved to {quarantine}")


def _paths_aside(step: MoveAside, context: Context) -> tuple[str, ...]:
    """All of it. Written down before the first is moved, for later entries and for an undo."""
    key = moved_fact(context.step)
    if key not in context.facts:
        late = newer_than(step.keeps, listing_of(Path(step.root))) if step.keeps else ()
        paths = (*step.paths, *(path for path in late if path not in step.paths))
        line = f"moving {_things(paths)} to {Path(step.root, step.quarantine)}"
        context.note(line, **{key: json.dumps(paths)})
    return tuple(json.loads(context.facts[key]))


def moved_fact(step: int) -> str:
    """The fact that tells what a step has moved aside."""
    return f"moved_{step}"


def tracker_fact(step: int) -> str:
    """The fact that tells what a tracker said before a step wrote it."""
    return f"tracker_before_{step}"


def move_back(step: MoveBack, context: Context) -> Done:
    """Put what was moved aside where it was, and take away the folders made for it."""
    root, quarantine = Path(step.root), Path(step.root, step.quarantine)
    with _told(root):
        context.note(f"moving {_things(step.paths)} back from {quarantine}")
        for path in step.paths:
            if os.path.lexists(quarantine / path):
                _move(quarantine / path, root / path)
        if gone := [path for path in step.paths if not os.path.lexists(root / path)]:
            raise StepFailed(f"{', '.join(gone[:3])} is neither in {quarantine} nor where it was")
        _sync(root, quarantine, step.paths)
        for folder in reversed(_folders(step.quarantine, step.paths)):
            with suppress(OSError):  # somebody keeps something of their own in it
                (root / folder).rmdir()
        _sync_folder(root)
    return Done(line=f"{_things(step.paths)} moved back", facts=_undid(step.undoes))


def write_tracker(step: WriteTracker, context: Context) -> Done:
    """Have a resume load another checkpoint, if the tracker says what the plan saw."""
    path = Path(step.path)
    with _told(path):
        found = tracker_text(path)
        if found != step.text:
            _check(step, found)
            fact = {tracker_fact(context.step): json.dumps([step.path, found])}
            context.note(f"the tracker says {words_of(found)}", **fact)
            if step.text is None:
                path.unlink()
            else:
                _replace(path, step.text, context.plan.id)
        _sync_folder(path.parent)
    return Done(line=f"{path} says {words_of(step.text)}", facts=_undid(step.undoes))


def tracker_text(path: Path) -> str | None:
    """What the tracker says, to the byte; None where there is none. Raises OSError."""
    try:
        start, _ = read_start(path, _TRACKER_LIMIT_BYTES)
    except FileNotFoundError:
        return None
    if len(start) > _TRACKER_LIMIT_BYTES:
        raise OSError(errno.EFBIG, "too long to be a tracker", str(path))
    return start.decode("utf-8", "surrogateescape")


def words_of(text: str | None) -> str:
    """A tracker's text for people."""
    return "nothing: there is none" if text is None else text.strip()[:40] or "nothing: it is empty"


def quarantine_name(root: Path, at: float) -> str:
    """A name for a new folder in `root`, made of the time."""
    name = time.strftime("quarantine-%Y%m%d-%H%M%S", time.localtime(at))
    number = 1
    free = name
    while os.path.lexists(root / free):
        number += 1
        free = f"{name}-{number}"
    return free


def _check(step: WriteTracker, found: str | None) -> None:
    if found != step.old_text and not (step.saved_since and _is_later(found, step.old_text)):
        raise StepFailed(
            f"the tracker says {words_of(found)} now, not {words_of(step.old_text)}: "
            "it was left as it is",
            "somebody has saved or changed it since: look again, and make a new plan",
        )
    folder = tracked_name(step.text)
    if not step.undoes and (folder is None or not (Path(step.path).parent / folder).is_dir()):
        raise StepFailed(f"checkpoint {words_of(step.text)} is not there any more")


def _is_later(found: str | None, before: str | None) -> bool:
    """It names a checkpoint, and a later one."""
    now, then = (iteration_of(tracked_name(text or "") or "") for text in (found, before))
    return now is not None and (then is None or now > then)


def _replace(path: Path, text: str, mark: str) -> None:
    """The old text or the new one, whenever the power fails. Its reader may be another user."""
    temporary = path.with_name(f".{path.name}.{mark}")
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    number = os.open(temporary, flags, 0o644)
    try:
        with os.fdopen(number, "wb") as file:
            _make_alike(number, path if path.exists() else path.parent)
            file.write(text.encode("utf-8", "surrogateescape"))
            file.flush()
            os.fsync(number)
        temporary.replace(path)
    except OSError:
        temporary.unlink(missing_ok=True)
        raise


def _make_alike(descriptor: int, model: Path) -> None:
    """Give an open file the owner of another, and its mode where that is a file's.

    A tracker that the run may not write ends the run at its next save.
    """
    status = model.stat()
    if model.is_file():
        os.fchmod(descriptor, status.st_mode & 0o777)
    if os.fstat(descriptor).st_uid != status.st_uid and status.st_uid != 0:
        os.fchown(descriptor, status.st_uid, status.st_gid)


def _make_folders(root: Path, target: Path) -> None:
    """The folders above `target` that are missing, owned as the save folder is."""
    for folder in reversed(target.relative_to(root).parents[:-1]):
        try:
            (root / folder).mkdir()
        except FileExistsError:
            continue
        with suppress(PermissionError):
            status = root.stat()
            os.chown(root / folder, status.st_uid, status.st_gid)


def _move(source: Path, target: Path) -> None:
    if os.path.lexists(target):
        raise StepFailed(f"{target} is there already: {source} was left where it is")
    source.rename(target)


def _folders(quarantine: str, paths: tuple[str, ...]) -> list[Path]:
    """The folders below the root that hold what was moved aside, outer ones first."""
    return sorted({Path(quarantine, path).parent for path in paths} | {Path(quarantine)})


def _sync(root: Path, quarantine: Path, paths: tuple[str, ...]) -> None:
    """Have every folder that something was moved out of or into on disk."""
    parents = {Path(path).parent for path in paths}
    for folder in sorted(
        {root / each for each in parents} | {quarantine / each for each in parents}
    ):
        with suppress(FileNotFoundError):
            _sync_folder(folder)


def _sync_folder(folder: Path) -> None:
    number = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def _undid(action: str) -> dict[str, str]:
    return {"undid": action} if action else {}


def _things(paths: tuple[str, ...]) -> str:
    return paths[0] if len(paths) == 1 else counted(len(paths), "item")


@contextmanager
def _told(place: Path) -> Iterator[None]:
    """Errors of the disk as outcomes."""
    try:
        yield
    except OSError as error:
        where = error.filename or place
        match error.errno:
            case errno.EXDEV | errno.EBUSY:
                raise StepFailed(
                    f"{where} is a mount point and cannot be moved", "unmount it"
                ) from error
            case errno.EACCES | errno.EPERM:
                remedy = "do it as its owner or as root; what was done so far can be undone"
                raise StepFailed(f"{where} may not be changed", remedy) from error
            case errno.EROFS:
                raise StepFailed(f"{where} is on a filesystem mounted read-only") from error
            case _:
                raise StepFailed(f"{where}: {error.strerror}") from error
