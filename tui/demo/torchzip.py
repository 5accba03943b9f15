"""The container of `torch.save`: a stored zip with aligned records, as torch 2.13 lays it out.

`zipfile` cannot pad a record to 64 bytes or leave sizes to a data descriptor, both of which torch
does, so the records are laid down here.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass

from tui.demo.pickled import Called, Named, Stored, pickled

_ALIGNMENT = 64
_LOCAL_HEADER_SIZE = 30
# Sizes by data descriptor, names in UTF-8.
_FLAGS = 0x0808
# torch hashes the set of record names with its C++ library's hash; only these two sets occur here.
_NAMES_HASH = {0: 2908468677762923104, 1: 15728199511854643026}

_STORAGES = {"float32": "FloatStorage", "uint8": "ByteStorage"}
_WIDTHS = {"float32": 4, "uint8": 1}


@dataclass(frozen=True, slots=True)
class Tensor:
    """A dense tensor on the CPU: raw little-endian values and their shape."""

    raw: bytes | bytearray | memoryview
    shape: tuple[int, ...]
    dtype: str = "float32"


def saved_value(value: object, *, name: str = "archive") -> bytes:
    """What `torch.save` writes for a value without tensors."""
    return _archive(name, pickled(value, protocol=2), ())


def saved_tensor(tensor: Tensor) -> bytes:
    """What `torch.save` writes for one bare tensor."""
    return _archive("archive", pickled(tensor_reference(tensor), protocol=2), (tensor.raw,))


def saved_with_tensor(value: object, tensor: Tensor, *, name: str) -> bytes:
    """What `torch.save` writes for a value that holds `tensor_reference(tensor)`."""
    return _archive(name, pickled(value, protocol=2), (tensor.raw,))


def tensor_reference(tensor: Tensor) -> Called:
    """How a pickle names the file's first storage as a tensor."""
    count = len(tensor.raw) // _WIDTHS[tensor.dtype]
    storage = Named("torch", _STORAGES[tensor.dtype])
    return Called(
        Named("torch._utils", "_rebuild_tensor_v2"),
        (
            Stored(("storage", storage, "0", "cpu", count)),
            0,
            tensor.shape,
            _strides(tensor.shape),
            False,
            Called(Named("collections", "OrderedDict"), ()),
        ),
    )


def _strides(shape: tuple[int, ...]) -> tuple[int, ...]:
    strides, step = [], 1
    for size in reversed(shape):
        strides.append(step)
        step *= size
    return tuple(reversed(strides))


def _archive(name: str, pickle: bytes, storages: Sequence[bytes | bytearray | memoryview]) -> bytes:
    records: list[tuple[str, bytes | bytearray | memoryview]] = [
        ("data.pkl", pickle),
        (".format_version", b"1"),
        (".storage_alignment", b"64"),
        ("byteorder", b"little"),
        *((f"data/{index}", raw) for index, raw in enumerate(storages)),
        ("version", b"3\n"),
    ]
    zipped = _Zip()
    for record, raw in records:
        zipped.add(f"{name}/{record}", raw)
    identity = f"{_NAMES_HASH[len(storages)]:020d}{zipped.checksum:020d}"
    zipped.add(f"{name}/.data/serialization_id", identity.encode())
    return zipped.closed()


class _Zip:
    def __init__(self) -> None:
        self._body = bytearray()
        self._directory = bytearray()
        self._count = 0
        self.checksum = 0
        """The records' CRCs, folded together as torch does."""

    def add(self, name: str, raw: bytes | bytearray | memoryview) -> None:
        encoded, start, crc, size = name.encode(), len(self._body), zlib.crc32(raw), len(raw)
        padding = -(start + _LOCAL_HEADER_SIZE + len(encoded) + 4) % _ALIGNMENT
        extra = b"FB" + struct.pack("<H", padding) + b"Z" * padding
        self._body += struct.pack(
            "<4s5H3I2H", b"PK\3\4", 0, _FLAGS, 0, 0, 0, 0, 0, 0, len(encoded), len(extra)
        )
        self._body += encoded + extra
        self._body += raw
        self._body += struct.pack("<4s3I", b"PK\7\10", crc, size, size)
        self._directory += struct.pack(
            "<4s6H3I5H2I",
            *(b"PK\1\2", 0, 0, _FLAGS, 0, 0, 0, crc, size, size),
            *(len(encoded), 0, 0, 0, 0, 0, start),
        )
        self._directory += encoded
        self._count += 1
        self.checksum = _folded(self.checksum, crc)

    def closed(self) -> bytes:
        start, size, count = len(self._body), len(self._directory), self._count
        self._body += self._directory
        end = len(self._body)
        self._body += struct.pack(
            "<4sQ2H2I4Q", b"PK\6\6", 44, 0x031E, 0x002D, 0, 0, count, count, size, start
        )
        self._body += struct.pack("<4sIQI", b"PK\6\7", 0, end, 1)
        self._body += struct.pack("<4s4H2IH", b"PK\5\6", 0, 0, count, count, size, start, 0)
        return bytes(self._body)


def _folded(seed: int, value: int) -> int:
    return (seed ^ (value + 0x9E3779B9 + (seed << 6) + (seed >> 2))) & 0xFFFFFFFFFFFFFFFF
