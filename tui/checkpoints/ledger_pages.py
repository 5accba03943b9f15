"""A page of the ledger: what is remembered of one folder, as values and as JSON."""

from __future__ import annotations

import json
import os
import types
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from tui.checkpoints.plan import FileIdentity
from tui.model.checkpoint import Soundness, Verification

VERSION = 1

T = TypeVar("T")


class NotALedgerError(ValueError):
    """The text is no page, or of another version."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Digest:
    """The bytes of one file as a verify found them sound."""

    identity: FileIdentity
    digest: str
    since: float
    """Epoch seconds of the first verify that found these bytes."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """A verification and the files it is good for."""

    verification: Verification
    files: Mapping[str, FileIdentity]


@dataclass(frozen=True, slots=True, kw_only=True)
class Page:
    """Everything remembered of one folder."""

    digests: Mapping[str, Digest] = field(default_factory=dict)
    """By the file's path below the folder."""
    result: Result | None = None
    note: str = ""
    """Why less is known than could be."""


def written(home: Path, page: Page) -> str:
    """The page as text."""
    result = page.result
    return json.dumps(
        {
            "version": VERSION,
            "folder": os.path.realpath(home),
            "files": {
                name: {**asdict(kept.identity), "digest": kept.digest, "since": kept.since}
                for name, kept in page.digests.items()
            },
            "result": None
            if result is None
            else {
                "verification": asdict(result.verification),
                "files": {name: asdict(identity) for name, identity in result.files.items()},
            },
        }
    )


def parsed(text: str) -> Page:
    """Raises `NotALedgerError` for whatever `written` does not write."""
    try:
        stated = json.loads(text)
        if stated["version"] != VERSION:
            raise NotALedgerError("another version")
        digests = {name: _digest(entry) for name, entry in stated["files"].items()}
        result = None if stated["result"] is None else _result(stated["result"])
    except (KeyError, TypeError, AttributeError, ValueError, RecursionError) as error:
        raise NotALedgerError("not a ledger") from error
    return Page(digests=digests, result=result)


def _digest(entry: Mapping[str, object]) -> Digest:
    return Digest(
        identity=_identity(entry),
        digest=_expected(entry["digest"], str),
        since=float(_expected(entry["since"], float | int)),
    )


def _identity(entry: Mapping[str, object]) -> FileIdentity:
    size, mtime, inode = (
        _expected(entry[name], int) for name in ("size_bytes", "mtime_ns", "inode")
    )
    return FileIdentity(size_bytes=size, mtime_ns=mtime, inode=inode)


def _result(entry: Mapping[str, Mapping[str, Any]]) -> Result:
    stated = entry["verification"]
    verification = Verification(
        soundness=Soundness(stated["soundness"]),
        at=float(_expected(stated["at"], float | int)),
        seconds=float(_expected(stated["seconds"], float | int)),
        checked_bytes=_expected(stated["checked_bytes"], int),
        faults=tuple(_expected(fault, str) for fault in stated["faults"]),
        non_finite=_expected(stated["non_finite"], int),
    )
    files = {name: _identity(identity) for name, identity in entry["files"].items()}
    return Result(verification=verification, files=files)


def _expected(value: object, kind: type[T] | types.UnionType) -> T:
    if not isinstance(value, kind) or isinstance(value, bool):
        raise NotALedgerError("not a ledger")
    return value
