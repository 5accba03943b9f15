"""The header of a safetensors file, and whether it fits the file. The format has no checksum.

Eight bytes say how long the JSON is that follows; it places every tensor in what comes after it.
The rules are those of the safetensors library, so what it refuses is refused here.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass

HEADER_LIMIT_BYTES = 100_000_000
"""What the library accepts."""
READ_LIMIT_BYTES = 16 << 20
"""What is read here: some 100,000 tensors in one file. Longer ones are not judged."""

_BITS = {
    "BOOL": 8,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
    "U8": 8,
    "I8": 8,
    "F8_E5M2": 8,
    "F8_E4M3": 8,
    "F8_E8M0": 8,
    "F8_E5M2FNUZ": 8,
    "F8_E4M3FNUZ": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "I64": 64,
    "U64": 64,
    "F64": 64,
    "C64": 64,
}
DTYPES = {
    "F64": "float64",
    "F32": "float32",
    "F16": "float16",
    "BF16": "bfloat16",
    "F8_E5M2": "float8_e5m2",
    "F8_E4M3": "float8_e4m3fn",
}
"""Floating types by torch's names."""
_COUNT_LIMIT = 1 << 63


class NotSafetensorsError(ValueError):
    """The header does not fit the file. The message is one line for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredTensor:
    """One tensor of a file."""

    name: str
    dtype: str
    """As the header has it: `BF16`."""
    shape: tuple[int, ...]
    offset: int
    """From the start of the file."""
    length: int


def header_length(start: bytes, size_bytes: int) -> int:
    """Bytes of JSON, by the first eight of the file."""
    if len(start) < 8:
        raise NotSafetensorsError("too short for a safetensors file")
    length = int.from_bytes(start[:8], "little")
    if length > HEADER_LIMIT_BYTES:
        raise NotSafetensorsError(f"a header of {length:,} bytes, more than the format allows")
    if length + 8 > size_bytes:
        raise NotSafetensorsError(f"a header of {length:,} bytes in a file of {size_bytes:,}")
    return length


def tensors_of(header: bytes, size_bytes: int) -> tuple[StoredTensor, ...]:
    """The tensors that the JSON places, in the order of the file, which they fill exactly."""
    start = 8 + len(header)
    tensors = sorted(
        (_tensor(name, entry, start) for name, entry in _entries(header).items()),
        key=lambda tensor: (tensor.offset, tensor.length),
    )
    at = start
    for tensor in tensors:
        if tensor.offset != at:
            what = "overlaps the one before it" if tensor.offset < at else "leaves a hole before it"
            raise NotSafetensorsError(f"{_shown(tensor.name)} {what}")
        at += tensor.length
    if at != size_bytes:
        raise NotSafetensorsError(f"{size_bytes:,} bytes long, its header needs {at:,}")
    return tuple(tensors)


def _entries(header: bytes) -> Mapping[str, object]:
    if not header.startswith(b"{"):
        raise NotSafetensorsError("its header is no JSON object")
    try:
        stated = json.loads(header, object_pairs_hook=_unique)
    except (ValueError, RecursionError) as error:
        why = str(error) if isinstance(error, NotSafetensorsError) else "its header is no JSON"
        raise NotSafetensorsError(why) from None
    notes = stated.pop("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
        raise NotSafetensorsError("its header's own notes are no texts")
    return dict(stated)


def _unique(pairs: list[tuple[str, object]]) -> dict[str, object]:
    held = dict(pairs)
    if len(held) != len(pairs):
        raise NotSafetensorsError("a name stands twice in its header")
    return held


def _tensor(name: str, entry: object, start: int) -> StoredTensor:
    if not isinstance(entry, dict) or not entry.keys() == {"dtype", "shape", "data_offsets"}:
        raise NotSafetensorsError(f"{_shown(name)} is not described as a tensor is")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise NotSafetensorsError(f"{_shown(name)} has the unknown type {_shown(str(dtype))}")
    if not _are_counts(shape) or not _are_counts(offsets) or len(offsets) != 2:
        raise NotSafetensorsError(f"{_shown(name)} has a shape or a place that cannot be one")
    begin, end = offsets
    bits = _BITS[dtype]
    for length in shape:
        bits *= length
        if bits >= _COUNT_LIMIT:
            raise NotSafetensorsError(f"{_shown(name)} has a shape that cannot be one")
    if bits != 8 * (end - begin):
        raise NotSafetensorsError(
            f"{_shown(name)} has {end - begin:,} bytes, its shape needs {bits // 8:,}"
        )
    return StoredTensor(
        name=name, dtype=dtype, shape=tuple(shape), offset=start + begin, length=end - begin
    )


def _are_counts(value: object) -> bool:
    return isinstance(value, list) and all(
        type(item) is int and 0 <= item < _COUNT_LIMIT for item in value
    )


def _shown(text: str) -> str:
    """A name from the file, short and printable."""
    return ascii(text[:80])
