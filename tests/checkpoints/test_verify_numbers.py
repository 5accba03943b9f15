"""Counting nan and inf by bytes agrees with looking at every number."""

from __future__ import annotations

import math
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.checkpoints.numbers import counter, width_of
from tui.checkpoints.storages import storage_dtypes
from tui.demo.pickled import pickled
from tui.demo.torchzip import Tensor, tensor_reference

CODES = {"float64": "d", "float32": "f", "float16": "e"}


def counted(dtype: str, raw: bytes) -> int:
    count = counter(dtype)
    assert count is not None
    return count(bytearray(b"#" * 3 + raw + b"\x7f\xff" * 4), 3, 3 + len(raw))


@pytest.mark.parametrize("dtype", CODES)
@given(raw=st.binary(max_size=256))
def test_any_bytes(dtype: str, raw: bytes) -> None:
    raw = raw[: len(raw) - len(raw) % width_of(dtype)]
    numbers = struct.unpack(f"<{len(raw) // width_of(dtype)}{CODES[dtype]}", raw)

    assert counted(dtype, raw) == sum(not math.isfinite(number) for number in numbers)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_every_number_of_two_bytes(dtype: str) -> None:
    for value in range(1 << 16):
        if dtype == "float16":
            (number,) = struct.unpack("<e", struct.pack("<H", value))
        else:
            (number,) = struct.unpack("<f", struct.pack("<2H", 0, value))
        assert counted(dtype, struct.pack("<H", value)) == (not math.isfinite(number))


def test_every_number_of_one_byte() -> None:
    raw = bytes(range(256))

    assert counted("float8_e4m3fn", raw) == 2
    assert counted("float8_e5m2", raw) == 8


def test_integers_are_always_finite() -> None:
    assert counter("int64") is None
    assert counter("") is None


@given(st.binary(max_size=300))
def test_any_pickle_is_walked_or_left(raw: bytes) -> None:
    assert isinstance(storage_dtypes(b"ctorch\nFloatStorage\n" + raw), dict)


def test_a_storage_is_known_by_its_pickle() -> None:
    tensors = [Tensor(bytes(8), (2,)), Tensor(bytes(2), (2,), dtype="uint8")]

    assert storage_dtypes(pickled([tensor_reference(t) for t in tensors[:1]], protocol=2)) == {
        "0": "float32"
    }
    assert storage_dtypes(pickled(tensor_reference(tensors[1]), protocol=2)) == {}
