"""What earlier verifies found, kept outside the checkpoints: digests of files, and the last result.

A format without checksums, as safetensors, loads a flipped bit without a word, and so does torch;
a digest from the first verify is what a later one can be held against. One JSON file a folder.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

from tui.checkpoints.files import read_start
from tui.checkpoints.ledger_pages import Digest, NotALedgerError, Page, Result, parsed, written
from tui.checkpoints.plan import FileIdentity, identity_in
from tui.config import state_home
from tui.model.checkpoint import Verification

_LIMIT_BYTES = 64 << 20


def ledger_folder() -> Path:
    """One page a folder that was verified."""
    return state_home() / "ledger"


def page_path(home: Path) -> Path:
    """Where it is kept what is known of `home`."""
    name = hashlib.blake2b(os.fsencode(os.path.realpath(home)), digest_size=16).hexdigest()
    return ledger_folder() / f"{name}.json"


def remembered(home: Path) -> Verification | None:
    """The result of the last deep verify of all of `home`, unless a file has changed since."""
    return Recall().of(home)


class Recall:
    """The same for one who asks again and again: a page is read once, its files are looked at."""

    def __init__(self) -> None:
        self._pages: dict[Path, tuple[FileIdentity, Result | None]] = {}
        self._paths: dict[Path, Path] = {}

    def of(self, home: Path) -> Verification | None:
        """As `remembered`."""
        path = self._paths.get(home) or self._paths.setdefault(home, page_path(home))
        try:
            identity = identity_in(path.stat())
        except OSError:
            return None
        known = self._pages.get(path)
        if known is None or known[0] != identity:
            known = self._pages[path] = (identity, _result_in(path))
        result = known[1]
        if result is None or not _is_unchanged(home, result.files):
            return None
        return result.verification


def _result_in(path: Path) -> Result | None:
    try:
        return parsed(_read(path)).result
    except (OSError, NotALedgerError):
        return None


def _is_unchanged(home: Path, files: Mapping[str, FileIdentity]) -> bool:
    try:
        for name, identity in files.items():
            if identity_in(os.stat(f"{home}/{name}")) != identity:  # noqa: PTH116 - a scan's cost
                return False
        folders = {folder for name in files if (folder := folder_in(name)) is not None}
        return all(files.keys() >= set(names_in(home, folder)) for folder in folders)
    except OSError:
        return False


def folder_in(name: str) -> str | None:
    """The folder of a file by its name below the home; None where it lies outside."""
    folder = name.rpartition("/")[0]
    return None if folder.startswith("..") else folder


def names_in(home: Path, folder: str) -> Iterator[str]:
    """Files in one folder below `home`, as the ledger names them."""
    with os.scandir(home / folder) as entries:
        for entry in entries:
            if not entry.is_dir(follow_symlinks=False):
                yield f"{folder}/{entry.name}" if folder else entry.name


def page_of(home: Path) -> Page:
    """What is remembered of `home`. A page that cannot be read is set aside, and said so."""
    path = page_path(home)
    try:
        return parsed(_read(path))
    except FileNotFoundError:
        return Page()
    except OSError as error:
        return Page(note=f"the ledger cannot be read: {path}: {error.strerror}")
    except NotALedgerError:
        aside = _set_aside(path)
        return Page(note=f"the ledger of this folder was damaged and was set aside as {aside}")


def keep(home: Path, digests: Mapping[str, Digest], result: Result | None) -> str:
    """Add to what is remembered of `home`; why that failed, or nothing.

    Digests of files that are not named stay. Without a result the last one stays: it is void as
    soon as one of its files changes.
    """
    path = page_path(home)
    try:
        path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        with _locked(path.parent):
            page = page_of(home)
            kept = Page(digests={**page.digests, **digests}, result=result or page.result)
            _write(path, written(home, kept))
    except OSError as error:
        return f"the ledger cannot be written: {path}: {error.strerror}"
    return ""


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """One writer at a time, of all processes. The lock goes with the descriptor."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _read(path: Path) -> str:
    raw, _ = read_start(path, _LIMIT_BYTES)
    if len(raw) > _LIMIT_BYTES:
        raise NotALedgerError("too long")
    return raw.decode("utf-8", "replace")


def _write(path: Path, text: str) -> None:
    """The old page or the new one, whenever the power fails."""
    descriptor, name = tempfile.mkstemp(dir=path.parent, prefix=path.stem, suffix=".new")
    try:
        with os.fdopen(descriptor, "w", encoding="utf-8") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        Path(name).replace(path)
    except OSError:
        with suppress(OSError):
            Path(name).unlink()
        raise
    folder = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)


def _set_aside(path: Path) -> Path:
    number = 1
    while (aside := path.with_suffix(f".damaged-{number}")).exists():
        number += 1
    with suppress(OSError):
        path.rename(aside)
    return aside
