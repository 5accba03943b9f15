"""The layout of a torch zip, and whether every byte of it is where its writer puts it.

`torch.save` writes stored records, each with a local header, padding up to 64 bytes, its bytes and
a descriptor; then the directory and its end. So the place of every byte follows from the records'
sizes, and one changed bit in any header shows. torch itself looks at few of them, at no checksum.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

_LOCAL = struct.Struct("<4s5H3I2H")
_CENTRAL = struct.Struct("<4s6H3I5H2I")
_END = struct.Struct("<4s4H2IH")
_WIDE_END = struct.Struct("<4sQ2H2I4Q")
_LOCATOR = struct.Struct("<4sIQI")
_CAP_16, _CAP_32 = 0xFFFF, 0xFFFFFFFF
_WIDE_EXTRA, _PADDING_EXTRA = 1, int.from_bytes(b"FB", "little")
_SIZES_FOLLOW = 0x8
"""Flag: sizes and sum stand in a descriptor behind the bytes."""

TAIL_BYTES = _END.size + _LOCATOR.size + _WIDE_END.size
LOCAL_BYTES = _LOCAL.size
DIRECTORY_LIMIT_BYTES = 16 << 20
"""A record takes about a hundred bytes, so this is more than any model has tensors."""


class NotATorchZipError(ValueError):
    """Something is not where torch puts it. The message is one line for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Directory:
    """Where the list of records lies, from the start of the zip."""

    offset: int
    length: int
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Record:
    """One stored record, as the directory has it."""

    name: str
    size: int
    crc: int
    offset: int
    """Of its local header, from the start of the zip."""
    traits: tuple[int, ...]
    """Version needed, flags, method, time and date, which the local header repeats."""

    @property
    def base_name(self) -> str:
        """Its name without the archive's own."""
        return self.name.partition("/")[2]


def length_by_tail(tail: bytes) -> int:
    """How long the zip is that ends with these `TAIL_BYTES` bytes, by its own word."""
    if tail[_WIDE_END.size :][:4] != b"PK\x06\x07":
        raise NotATorchZipError("no end of a zip at its end")
    offset: int = _LOCATOR.unpack_from(tail, _WIDE_END.size)[2]
    return offset + len(tail)


def directory_of(tail: bytes, length: int) -> Directory:
    """Read the last `TAIL_BYTES`, or all there is, of a zip of `length` bytes."""
    if len(tail) < _END.size or tail[-_END.size :][:4] != b"PK\x05\x06":
        raise NotATorchZipError("no end of a zip at its end: cut short, or not written by torch")
    end = _END.unpack(tail[-_END.size :])
    wide = len(tail) == TAIL_BYTES and tail[_WIDE_END.size :][:4] == b"PK\x06\x07"
    if wide:
        found = _wide_directory(tail, length)
    else:
        found = Directory(offset=end[6], length=end[5], count=end[4])
    capped = (
        *(min(found.count, _CAP_16),) * 2,
        min(found.length, _CAP_32),
        min(found.offset, _CAP_32),
    )
    place = length - (TAIL_BYTES if wide else _END.size)
    if end[1:] != (0, 0, *capped, 0) or found.offset + found.length != place:
        raise NotATorchZipError("its end does not agree with itself")
    if found.length > DIRECTORY_LIMIT_BYTES:
        raise NotATorchZipError(f"a directory of {found.length:,} bytes, more than any model needs")
    return found


def _wide_directory(tail: bytes, length: int) -> Directory:
    signature, size, _, _, disk, first, here, count, bytes_, offset = _WIDE_END.unpack_from(tail)
    locator = _LOCATOR.unpack_from(tail, _WIDE_END.size)
    if (
        (signature, size, disk, first, here) != (b"PK\x06\x06", _WIDE_END.size - 12, 0, 0, count)
    ) or locator[1:] != (0, length - TAIL_BYTES, 1):
        raise NotATorchZipError("its end does not agree with itself")
    return Directory(offset=offset, length=bytes_, count=count)


def records_of(raw: bytes, directory: Directory) -> tuple[Record, ...]:
    """The records that the directory's bytes list, in the order of the file."""
    records, at = [], 0
    while at < len(raw):
        record, at = _central_record(raw, at)
        records.append(record)
    if len(records) != directory.count:
        raise NotATorchZipError(f"{len(records)} records listed where {directory.count} are stated")
    return tuple(records)


def _central_record(raw: bytes, at: int) -> tuple[Record, int]:
    try:
        fields = _CENTRAL.unpack_from(raw, at)
    except struct.error:
        raise NotATorchZipError("its directory is cut short") from None
    signature, _, *traits, crc, packed, size = fields[:10]
    name_length, extra_length, comment_length, disk, _, _, offset = fields[10:]
    names = at + _CENTRAL.size
    extras = names + name_length
    after = extras + extra_length
    name = raw[names:extras].decode("utf-8", "backslashreplace")
    if signature != b"PK\x01\x02" or after > len(raw):
        raise NotATorchZipError("its directory is not one")
    if comment_length or disk or traits[2] or "/" not in name:
        raise NotATorchZipError(f"{name}: its entry in the directory is none of torch's")
    wide = iter(_wide_values(raw[extras:after], name))
    size, packed, offset = (
        next(wide, -1) if value == _CAP_32 else value for value in (size, packed, offset)
    )
    if size != packed or min(size, offset) < 0 or next(wide, None) is not None:
        raise NotATorchZipError(f"{name}: its sizes in the directory do not agree")
    return Record(name=name, size=size, crc=crc, offset=offset, traits=tuple(traits)), after


def _wide_values(extra: bytes, name: str) -> tuple[int, ...]:
    """The 64-bit values of a directory's entry; it has no other extra field."""
    if not extra:
        return ()
    kind, length = struct.unpack_from("<2H", extra) if len(extra) >= 4 else (0, 0)
    if kind != _WIDE_EXTRA or length != len(extra) - 4 or length % 8:
        raise NotATorchZipError(f"{name}: its entry in the directory is none of torch's")
    return struct.unpack_from(f"<{length // 8}Q", extra, 4)


def header_lengths(header: bytes) -> int:
    """Bytes of name and padding behind a local header's fixed part."""
    _, *_, name_length, extra_length = _LOCAL.unpack(header)
    return int(name_length + extra_length)


def check_header(record: Record, header: bytes) -> bool:
    """Compare a whole local header with the directory; whether its descriptor has wide sizes."""
    fields = _LOCAL.unpack_from(header)
    signature, *traits, crc, packed, size, name_length, _ = fields
    name = header[_LOCAL.size : _LOCAL.size + name_length]
    if signature != b"PK\x03\x04" or tuple(traits) != record.traits:
        raise NotATorchZipError(f"{record.name}: its header does not agree with the directory")
    if name.decode("utf-8", "backslashreplace") != record.name:
        raise NotATorchZipError(f"{record.name}: its header has another name")
    stated = (0, 0, 0) if traits[1] & _SIZES_FOLLOW else (record.crc, record.size, record.size)
    if (crc, packed, size) != stated:
        raise NotATorchZipError(f"{record.name}: its header states other sizes")
    return _check_extra(record, header[_LOCAL.size + name_length :])


def _check_extra(record: Record, extra: bytes) -> bool:
    is_wide, at = False, 0
    while at < len(extra):
        kind, length = struct.unpack_from("<2H", extra, at) if at + 4 <= len(extra) else (0, 0)
        body = extra[at + 4 : at + 4 + length]
        is_wide = is_wide or kind == _WIDE_EXTRA
        is_right = body in _wide_bodies(record) if not at and is_wide else _is_padding(kind, body)
        if len(body) != length or not is_right:
            raise NotATorchZipError(f"{record.name}: the padding of its header is damaged")
        at += 4 + length
    return is_wide


def _is_padding(kind: int, body: bytes) -> bool:
    return kind == _PADDING_EXTRA and not body.strip(b"Z")


def _wide_bodies(record: Record) -> tuple[bytes, ...]:
    """What a header's 64-bit values may be. The packed size stays open in it, or is the size."""
    offsets = (record.offset,) if record.offset >= _CAP_32 else ()
    sizes = [(record.size, 0), (record.size, record.size)] if record.size >= _CAP_32 else [()]
    rows = [(*pair, *offsets) for pair in sizes]
    return tuple(struct.pack(f"<{len(row)}Q", *row) for row in rows)


def descriptor_bytes(record: Record, *, is_wide: bool) -> int:
    """How much follows a record's bytes before the next."""
    if not record.traits[1] & _SIZES_FOLLOW:
        return 0
    return 24 if is_wide else 16


def check_descriptor(record: Record, descriptor: bytes) -> None:
    """Compare what follows a record's bytes with the directory."""
    if not descriptor:
        return
    sizes = "<4sI2Q" if len(descriptor) == 24 else "<4s3I"
    stated = struct.unpack(sizes, descriptor)
    if stated != (b"PK\x07\x08", record.crc, record.size, record.size):
        raise NotATorchZipError(f"{record.name}: what follows it does not agree with the directory")
