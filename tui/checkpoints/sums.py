"""Checking one piece of a file as it streams by: its checksums, its digest, its numbers."""

from __future__ import annotations

import hashlib
import zlib
from dataclasses import dataclass, field

from tui.checkpoints import zipped
from tui.checkpoints.numbers import Count, counter, width_of
from tui.checkpoints.reading import Window
from tui.checkpoints.storages import PICKLE_LIMIT_BYTES, storage_dtypes

FAULT_LIMIT = 20
"""Of one piece. What has more is damaged all over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite:
    """A tensor with numbers that are nan or inf."""

    name: str
    """Record of a torch zip or key of a safetensors file; empty where the piece is the tensor."""
    count: int
    total: int


@dataclass(slots=True, kw_only=True)
class Tally:
    """What one piece came to."""

    digest: bytes = b""
    """Over every byte; of a zip over all headers and the sums of its records."""
    faults: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    """Records whose bytes do not have their checksum."""
    right: int = 0
    """Records that have theirs."""
    non_finite: list[NonFinite] = field(default_factory=list)
    tensor_bytes: int | None = None
    """Of a zip: bytes of its first storage."""


def check_plain(window: Window, offset: int, length: int, dtype: str = "") -> Tally:
    """Bytes without a checksum of their own, perhaps of one tensor."""
    tally, digest, count = Tally(), hashlib.sha256(), counter(dtype)
    bad, at, end = 0, offset, offset + length
    while at < end:
        start, stop = window.run(at, end - at)
        digest.update(window.view(start, stop))
        if count:
            bad += count(window.block, start, stop)
        at += stop - start
    if bad:
        total = length // width_of(dtype)
        tally.non_finite.append(NonFinite(name="", count=bad, total=total))
    tally.digest = digest.digest()
    return tally


def check_zip(window: Window, offset: int, length: int) -> Tally:
    """A torch zip of `length` bytes at `offset`."""
    tally = Tally()
    try:
        _ZipCheck(window, offset, length, tally).run()
    except zipped.NotATorchZipError as error:
        tally.faults.append(str(error))
    return tally


def check_outline(window: Window, length: int) -> Tally:
    """The end and the directory of a file that is one torch zip; not its records."""
    tally = Tally()
    try:
        _ZipCheck(window, 0, length, tally).directory()
    except zipped.NotATorchZipError as error:
        tally.faults.append(str(error))
    return tally


class _ZipCheck:
    """One pass over a zip, front to back, after a look at its directory."""

    def __init__(self, window: Window, offset: int, length: int, tally: Tally) -> None:
        self._window = window
        self._offset = offset
        self._length = length
        self._tally = tally
        self._digest = hashlib.sha256()
        self._dtypes: dict[str, str] = {}

    def run(self) -> None:
        if self._length <= len(self._window.block):
            self._window.load(self._offset, self._length)
        directory, records = self.directory()
        at = 0
        for record in records:
            if record.offset != at:
                raise zipped.NotATorchZipError(f"{record.name}: not where the one before it ends")
            at = self._check(record, directory.offset)
        if at != directory.offset:
            raise zipped.NotATorchZipError(
                "its last record does not end where its directory begins"
            )
        self._tally.digest = self._digest.digest()

    def directory(self) -> tuple[zipped.Directory, tuple[zipped.Record, ...]]:
        """What its end says it holds."""
        size = min(self._length, zipped.TAIL_BYTES)
        tail = self._window.copied(self._offset + self._length - size, size)
        directory = zipped.directory_of(tail, self._length)
        raw = self._window.copied(self._offset + directory.offset, directory.length)
        self._digest.update(raw + tail)
        return directory, zipped.records_of(raw, directory)

    def _check(self, record: zipped.Record, limit: int) -> int:
        """Check one record; where it ends."""
        head = self._copied(record.offset, zipped.LOCAL_BYTES, limit)
        head += self._copied(record.offset + len(head), zipped.header_lengths(head), limit)
        is_wide = zipped.check_header(record, head)
        start = record.offset + len(head)
        end = start + record.size
        after = zipped.descriptor_bytes(record, is_wide=is_wide)
        if end + after > limit:
            raise zipped.NotATorchZipError(f"{record.name}: longer than the file has room for")
        crc = self._sum(record, start)
        descriptor = self._copied(end, after, limit)
        zipped.check_descriptor(record, descriptor)
        self._digest.update(head + crc.to_bytes(4, "little") + descriptor)
        if crc == record.crc:
            self._tally.right += bool(record.size)
        else:
            self._tally.wrong.append(record.name)
        return end + after

    def _sum(self, record: zipped.Record, start: int) -> int:
        """The CRC-32 of a record's bytes; on the way its types, or its numbers, are looked at."""
        if record.base_name == "data.pkl" and record.size <= PICKLE_LIMIT_BYTES:
            pickle = self._copied(start, record.size, start + record.size)
            self._dtypes = storage_dtypes(pickle)
            return zlib.crc32(pickle)
        key = record.base_name.removeprefix("data/")
        is_storage = key != record.base_name
        if is_storage and self._tally.tensor_bytes is None:
            self._tally.tensor_bytes = record.size
        dtype = self._dtypes.get(key, "") if is_storage else ""
        crc, bad = _streamed(self._window, self._offset + start, record.size, counter(dtype))
        if bad:
            total = record.size // width_of(dtype)
            self._tally.non_finite.append(NonFinite(name=record.name, count=bad, total=total))
        return crc

    def _copied(self, at: int, length: int, limit: int) -> bytes:
        if at + length > limit:
            raise zipped.NotATorchZipError("a record reaches beyond the place of its directory")
        return self._window.copied(self._offset + at, length)


def _streamed(window: Window, at: int, left: int, count: Count | None) -> tuple[int, int]:
    """CRC-32 and numbers that are not finite of `left` bytes."""
    crc = bad = 0
    while left:
        start, stop = window.run(at, left)
        crc = zlib.crc32(window.view(start, stop), crc)
        if count:
            bad += count(window.block, start, stop)
        at += stop - start
        left -= stop - start
    return crc, bad
