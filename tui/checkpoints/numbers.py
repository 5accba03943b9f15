"""How many numbers in a block of raw tensor bytes are nan or inf, without unpacking any of them.

A number is not finite when all bits of its exponent are set. They lie in its two highest bytes, of
which the higher is rare among weights, so a strided copy and two searches settle most blocks.
Tensors are little-endian, as on every machine that trains.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

Count = Callable[[bytearray, int, int], int]
"""Not finite numbers in `block[start:stop]`, which holds whole numbers."""


@dataclass(frozen=True, slots=True)
class _Format:
    """Where the exponent of one number type lies."""

    width: int
    tops: bytes
    """Values that the highest byte of a nan or inf has."""
    below_bits: int = 0
    """Bits that must all be set in the byte below; 0 where the highest byte decides alone."""


_SIGNED_7F = bytes((0x7F, 0xFF))
_FORMATS = {
    "float64": _Format(8, _SIGNED_7F, 0xF0),
    "float32": _Format(4, _SIGNED_7F, 0x80),
    "bfloat16": _Format(2, _SIGNED_7F, 0x80),
    "float16": _Format(2, bytes((*range(0x7C, 0x80), *range(0xFC, 0x100)))),
    "float8_e5m2": _Format(1, bytes((*range(0x7C, 0x80), *range(0xFC, 0x100)))),
    "float8_e4m3fn": _Format(1, _SIGNED_7F),
}


def counter(dtype: str) -> Count | None:
    """The count for a tensor type by torch's name for it; None where every value is finite."""
    return _COUNTS.get(dtype)


def width_of(dtype: str) -> int:
    """Bytes of one number of a floating type."""
    return _FORMATS[dtype].width


def _counting(form: _Format) -> Count:
    width, tops = form.width, form.tops
    is_top = bytes(value in tops for value in range(256))
    is_below = bytes(value & form.below_bits == form.below_bits for value in range(256))

    def count(block: bytearray, start: int, stop: int) -> int:
        highest = block[start + width - 1 : stop : width]
        if not any(value in highest for value in tops):
            return 0
        if not form.below_bits:
            return len(highest) - len(highest.translate(None, tops))
        below = block[start + width - 2 : stop : width]
        marks = highest.translate(is_top), below.translate(is_below)
        candidates, filled = (int.from_bytes(mark, "little") for mark in marks)
        return (candidates & filled).bit_count()

    return count


_COUNTS = {dtype: _counting(form) for dtype, form in _FORMATS.items()}
