"""Indexes of whole checkpoints, each read once for as long as it stays the same file.

An index of 50,000 items takes two seconds, so a scan reads a few and leaves the rest to the next
scans. What is kept of one is small: the lengths of its shards and one count.
"""

from __future__ import annotations

import os
from collections.abc import Collection
from pathlib import Path

from tui.checkpoints.dcp import read_index
from tui.checkpoints.files import read_start
from tui.checkpoints.index import DcpIndex, NotAnIndexError
from tui.miles.indexed import IndexSeen, model_elements
from tui.miles.layout import FileSeen

SCAN_BYTES = 2 << 20
"""A scan begins no further index after this much, some 0.4 s of work."""
INDEX_BYTES = 16 << 20
"""A larger index would keep the scan from answering in time."""


class IndexReader:
    """What is known of the indexes below one save folder."""

    def __init__(self, root: Path) -> None:
        self._root = root
        self._known: dict[str, dict[FileSeen, IndexSeen]] = {}
        self._left_bytes = 0

    @property
    def is_spent(self) -> bool:
        """Whether a scan has read enough."""
        return self._left_bytes <= 0

    def begin(self, names: Collection[str]) -> None:
        """A new scan; checkpoints that are not among `names` are gone."""
        self._known = {name: known for name, known in self._known.items() if name in names}
        self._left_bytes = SCAN_BYTES

    def known(self, name: str, files: Collection[FileSeen]) -> tuple[IndexSeen, ...]:
        """What is known of a checkpoint's indexes, without reading; other indexes are forgotten."""
        known = {file: index for file, index in self._known.get(name, {}).items() if file in files}
        self._known[name] = known
        return tuple(known.values())

    def read(self, name: str, files: Collection[FileSeen]) -> None:
        """Get to know what is not known yet, as far as this scan goes."""
        known = self._known.setdefault(name, {})
        for file in files:
            if file not in known and not self.is_spent:
                self._left_bytes -= file.size_bytes + 1
                found = _read(self._root / name, file)
                if found is not None:
                    known[file] = found


def file_seen(path: str, status: os.stat_result) -> FileSeen:
    """A file as its status shows it."""
    return FileSeen(
        path=path,
        size_bytes=status.st_size,
        written_at=status.st_mtime,
        inode=status.st_ino,
    )


def _read(folder: Path, file: FileSeen) -> IndexSeen | None:
    """None where it is no longer the file that was seen: the next look tells."""
    if file.size_bytes > INDEX_BYTES:
        size = f"{file.size_bytes >> 20} MiB"
        return IndexSeen(path=file.path, unread=f"({size}) is too large to be read in passing")
    try:
        raw, status = read_start(folder / file.path, INDEX_BYTES)
        if file_seen(file.path, status) != file:
            return None
        return _seen(file.path, read_index(raw))
    except NotAnIndexError as fault:
        return IndexSeen(path=file.path, fault=str(fault))
    except FileNotFoundError:
        return None
    except PermissionError:
        return IndexSeen(path=file.path, unread="may not be read")
    except OSError as error:
        return IndexSeen(path=file.path, fault=f"not readable: {error.strerror}")


def _seen(path: str, index: DcpIndex) -> IndexSeen:
    return IndexSeen(
        path=path,
        shards=tuple(index.file_bytes.items()),
        parameter_count=model_elements(path, index.tensors),
    )
