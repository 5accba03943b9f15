"""What a verify is about to read: files, cut into pieces that can be checked on their own."""

from __future__ import annotations

import os
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path


class Subject(StrEnum):
    """What was found at the path."""

    CHECKPOINT = "checkpoint"
    PART = "part of a checkpoint"
    HF = "Hugging Face folder"
    FILE = "file"


@dataclass(frozen=True, slots=True, kw_only=True)
class FileIdentity:
    """What tells that a file was not written since, without reading it."""

    size_bytes: int
    mtime_ns: int
    inode: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Piece:
    """One stretch of a file with one way to check it."""

    offset: int
    length: int
    is_zip: bool = False
    """A torch zip; else bytes that have no checksum of their own."""
    name: str = ""
    """The item's key or the tensor's name; empty where the piece is the whole file."""
    dtype: str = ""
    """Of a bare tensor; a zip says itself what it holds."""
    is_model: bool = False
    """Its numbers decide whether the checkpoint is finite."""
    tensor_bytes: int | None = None
    """What the index says its tensor has."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedFile:
    """One file to read."""

    name: str
    """Below the plan's home, as shown and as kept in the ledger."""
    path: Path
    identity: FileIdentity
    pieces: tuple[Piece, ...]
    """In the order of the file, from its first byte to its last."""
    anchor: str = ""
    """A file of the same save, whose bytes no other save has; empty where there is none."""
    has_sums: bool = True
    """Its format has checksums, or it is text that is checked by being parsed."""


@dataclass(slots=True, kw_only=True)
class Plan:
    """Everything to read at one path, and what was wrong before a byte of it was."""

    subject: Subject
    home: Path
    """The folder by which results are remembered."""
    is_all: bool = True
    """It covers all of its home, so that its result is the home's."""
    files: list[PlannedFile] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    incomplete: list[str] = field(default_factory=list)
    """What a whole one has and this one never had: the save did not get there."""
    unread: list[str] = field(default_factory=list)
    """What could not be judged: no permission, or it changed meanwhile."""
    notes: list[str] = field(default_factory=list)

    @property
    def total_bytes(self) -> int:
        return sum(piece.length for file in self.files for piece in file.pieces)

    def add(
        self,
        path: Path,
        identity: FileIdentity,
        pieces: Iterable[Piece],
        *,
        anchor: str = "",
        has_sums: bool = True,
    ) -> None:
        """Read this file too."""
        self.files.append(
            PlannedFile(
                name=self.name_of(path),
                path=path,
                identity=identity,
                pieces=tuple(pieces),
                anchor=anchor,
                has_sums=has_sums,
            )
        )

    def add_text(self, path: Path, *, anchor: str = "") -> None:
        """A file that is checked by being parsed, and read for its digest."""
        identity = self.identity_of(path)
        if identity is not None:
            self.add(path, identity, [Piece(offset=0, length=identity.size_bytes)], anchor=anchor)

    def add_zip(self, path: Path, *, anchor: str = "", is_model: bool = False) -> None:
        """A file that is one torch zip."""
        identity = self.identity_of(path)
        if identity is not None:
            whole = Piece(offset=0, length=identity.size_bytes, is_zip=True, is_model=is_model)
            self.add(path, identity, [whole], anchor=anchor)

    def identity_of(self, path: Path) -> FileIdentity | None:
        """The file as it is now; None, and said so, where that cannot be told."""
        try:
            return identity_of(path)
        except FileNotFoundError:
            self.faults.append(f"{self.name_of(path)}: missing")
        except OSError as error:
            self.unread.append(f"{self.name_of(path)}: {error.strerror}")
        return None

    def name_of(self, path: Path) -> str:
        """How a file is called in results."""
        return os.path.relpath(path, self.home)


def identity_of(path: Path) -> FileIdentity:
    return identity_in(path.stat())


def identity_in(status: os.stat_result) -> FileIdentity:
    return FileIdentity(size_bytes=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino)
