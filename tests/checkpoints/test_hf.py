"""Hugging Face folders: what the safetensors library refuses is refused, and what it cannot see."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import struct
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.checkpoints.plan import Subject
from tui.checkpoints.safetensors import (
    NotSafetensorsError,
    StoredTensor,
    header_length,
    tensors_of,
)
from tui.checkpoints.verify import verify
from tui.model.checkpoint import Soundness


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(data / "captures" / "hf-origin", tmp_path / "hf"))


def file_of(header: object, body: bytes = b"") -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def tensor(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def read(raw: bytes) -> tuple[StoredTensor, ...]:
    length = header_length(raw[:8], len(raw))
    return tensors_of(raw[8 : 8 + length], len(raw))


def test_the_first_verify_finds_no_checksums_and_the_second_has_its_own(folder: Path) -> None:
    first, second = verify(folder), verify(folder)

    assert first.subject is Subject.HF
    assert first.is_good
    assert second.is_good
    assert first.verification is not None
    assert second.verification is not None
    assert first.verification.soundness is Soundness.NO_SUMS
    assert second.verification.soundness is Soundness.SOUND


def test_a_flipped_bit_is_found_by_the_second_verify(folder: Path) -> None:
    path = folder / "model.safetensors"
    verify(folder)
    raw, status = bytearray(path.read_bytes()), path.stat()
    raw[-5] ^= 4
    path.write_bytes(raw)
    os.utime(path, ns=(status.st_atime_ns, status.st_mtime_ns))
    result = verify(folder)

    assert "its bytes changed since they were verified" in result.faults[0]
    assert verify(folder).faults == result.faults, "it stays damaged"


def test_a_file_written_anew_is_no_damage(folder: Path) -> None:
    path = folder / "model.safetensors"
    verify(folder)
    raw = bytearray(path.read_bytes())
    raw[-5] ^= 4
    path.write_bytes(raw)

    assert verify(folder).is_good


def test_numbers_that_are_not_finite(folder: Path) -> None:
    body = struct.pack("<4H", 0x3F80, 0x7F80, 0xFFC1, 0x7F7F) + struct.pack(
        "<2e", 1.0, float("inf")
    )
    header = {"b": tensor("BF16", [4], 0, 8), "h": tensor("F16", [2], 8, 12)}
    (folder / "model.safetensors").write_bytes(file_of(header, body))
    result = verify(folder)

    assert result.verification is not None
    assert result.verification.soundness is Soundness.NOT_FINITE
    assert result.verification.non_finite == 3
    assert result.numbers == (
        "model.safetensors: b: 2 of 4 numbers are nan or inf",
        "model.safetensors: h: 1 of 2 numbers are nan or inf",
    )


@pytest.mark.parametrize("name", ["config.json", "tokenizer.json"])
def test_a_file_beside_the_weights_that_is_missing_or_no_json(folder: Path, name: str) -> None:
    (folder / name).write_text("{")
    assert f"{name}: not JSON" in verify(folder, shallow=True).faults

    (folder / name).unlink()
    result = verify(folder, shallow=True)
    assert not result.is_good
    assert any(name.partition(".")[0] in line for line in (*result.faults, *result.incomplete))


def test_a_folder_without_weights(folder: Path) -> None:
    (folder / "model.safetensors").unlink()

    assert verify(folder).incomplete == ("no weights",)


class TestIndex:
    @pytest.fixture
    def sharded(self, folder: Path) -> Path:
        (folder / "model.safetensors").unlink()
        for number, name in enumerate("ab", start=1):
            raw = file_of({name: tensor("F32", [1], 0, 4)}, bytes(4))
            (folder / f"model-0000{number}-of-00002.safetensors").write_bytes(raw)
        self.write(
            folder,
            {"a": "model-00001-of-00002.safetensors", "b": "model-00002-of-00002.safetensors"},
        )
        return folder

    def write(self, folder: Path, placed: object) -> None:
        path = folder / "model.safetensors.index.json"
        path.write_text(json.dumps({"metadata": {"total_size": 8}, "weight_map": placed}))

    def test_it_fits(self, sharded: Path) -> None:
        assert verify(sharded).is_good

    def test_a_shard_is_missing(self, sharded: Path) -> None:
        (sharded / "model-00002-of-00002.safetensors").unlink()
        assert any("00002-of-00002.safetensors' is missing" in f for f in verify(sharded).faults)

    def test_a_tensor_is_not_where_the_index_has_it(self, sharded: Path) -> None:
        self.write(
            sharded,
            {"a": "model-00001-of-00002.safetensors", "c": "model-00002-of-00002.safetensors"},
        )
        faults = verify(sharded, shallow=True).faults
        assert any("lacks 'c'" in fault for fault in faults)
        assert any("also holds 'b'" in fault for fault in faults)

    @pytest.mark.parametrize(
        "placed", [None, [], {"a": 1}, {"a": "../../etc/passwd"}, {"a": "/etc/passwd"}]
    )
    def test_a_list_of_shards_that_is_none(self, sharded: Path, placed: object) -> None:
        self.write(sharded, placed)
        assert verify(sharded, shallow=True).faults


GOOD = {
    "a": tensor("F32", [2, 2], 0, 16),
    "e": tensor("I8", [0], 16, 16),
    "__metadata__": {"format": "pt"},
}


def test_a_header_that_fits() -> None:
    assert [one.name for one in read(file_of(GOOD, bytes(16)))] == ["a", "e"]


@pytest.mark.parametrize(
    ("raw", "why"),
    [
        (b"", "too short"),
        (b"\xff" * 8 + b"{}", "more than the format allows"),
        (struct.pack("<Q", 100_000_000) + b"{}", "in a file of 10"),
        (file_of(b"[]"), "no JSON object"),
        (file_of(b"{"), "no JSON"),
        (file_of(b'{"a":' + b"[" * 100_000 + b"]" * 100_000 + b"}"), "no JSON"),
        (file_of(b'{"\xff":1}'), "no JSON"),
        (file_of(b'{"a":' + b"9" * 10_000 + b"}"), "no JSON"),
        (file_of(GOOD, bytes(15)), "15 bytes long|its header needs"),
        (file_of(GOOD, bytes(17)), "its header needs"),
        (
            file_of({"a": tensor("F32", [2], 0, 8), "b": tensor("F32", [2], 4, 12)}, bytes(12)),
            "overlaps",
        ),
        (
            file_of({"a": tensor("F32", [2], 0, 8), "b": tensor("F32", [2], 12, 20)}, bytes(20)),
            "hole",
        ),
        (file_of({"a": tensor("F32", [3], 0, 8)}, bytes(8)), "its shape needs 12"),
        (file_of({"a": tensor("F32", [1], 8, 4)}, bytes(8)), "its shape needs"),
        (file_of({"a": tensor("F32", [1], -4, 0)}, bytes(8)), "cannot be one"),
        (file_of({"a": tensor("F32", [1], True, 4)}, bytes(8)), "cannot be one"),
        (file_of({"a": tensor("F32", [1 << 62, 1 << 62], 0, 4)}, bytes(4)), "cannot be one"),
        (file_of({"a": tensor("F33", [1], 0, 4)}, bytes(4)), "unknown type"),
        (file_of({"a": [1]}), "not described"),
        (file_of(b'{"a":1,"a":1}'), "twice"),
        (file_of({"__metadata__": {"a": 1}}), "no texts"),
    ],
)
def test_a_header_that_does_not(raw: bytes, why: str) -> None:
    with pytest.raises(NotSafetensorsError, match=why):
        read(raw)


@given(st.binary(max_size=200), st.binary(max_size=20))
def test_any_header_is_read_or_refused(header: bytes, body: bytes) -> None:
    with contextlib.suppress(NotSafetensorsError):
        read(file_of(b"{" + header, body))


def test_a_header_of_a_hundred_megabytes_is_not_read(tmp_path: Path) -> None:
    path = tmp_path / "x.safetensors"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 99_000_000) + b"{")
        file.truncate(100_000_000)

    result = verify(path)
    assert result.unread == ("x.safetensors: a header of 99,000,000 bytes is not read",)
    assert result.verification is None


def test_what_lies_beside_it_does_not_matter(folder: Path) -> None:
    (folder.parent / "gone").symlink_to("nowhere")
    (folder.parent / "round").symlink_to("round")
    below = Path(shutil.copytree(folder, folder.parent / "model" / "hf"))
    (below.parent / "gone").symlink_to("nowhere")

    assert verify(folder).is_good
    assert verify(below).is_good
    for weights in (*folder.glob("*.safetensors"), *below.glob("*.safetensors")):
        assert verify(weights).is_good
