"""Indexes that torch, Megatron and the demo wrote, read without torch."""

from __future__ import annotations

import os
from math import prod
from pathlib import Path

import pytest
from demo_runs import plain_run
from saved_index import (
    BYTES,
    chunk,
    index_of_shards,
    key,
    object_key,
    place,
    properties,
    saved,
    tensor,
)

from tui.checkpoints.dcp import INDEX_LIMIT_BYTES, index_of, read_index
from tui.checkpoints.index import DcpIndex, NotAnIndexError, StoredItem
from tui.demo.pickled import Called, Named


def lengths(folder: Path) -> dict[str, int]:
    return {path.name: path.stat().st_size for path in folder.glob("*.distcp")}


def starts_with_zips(folder: Path, index: DcpIndex) -> bool:
    """Whether a zip begins where each item does, and ends where it ends."""
    shards = {path.name: path.read_bytes() for path in folder.glob("*.distcp")}
    return all(
        shards[item.file].startswith(b"PK\x03\x04", item.offset)
        and shards[item.file][item.offset : item.offset + item.length][-22:].startswith(
            b"PK\x05\x06"
        )
        for item in index.items
    )


@pytest.mark.parametrize("iteration", ["iter_0000002", "iter_0000004"])
@pytest.mark.parametrize(
    ("part", "items", "tensors", "parameters"),
    [("model", 25, 25, 139_648), ("optimizer", 88, 75, 279_321), ("lr_scheduler", 7, 0, 0)],
)
def test_the_capture(
    data: Path, iteration: str, part: str, items: int, tensors: int, parameters: int
) -> None:
    folder = data / "captures/ckpt-run-a" / iteration / part
    index = index_of(folder)
    assert (len(index.items), len(index.tensors)) == (items, tensors)
    assert index.parameter_count == parameters
    assert index.file_bytes == lengths(folder)
    assert starts_with_zips(folder, index)
    assert {dtype for _, dtype, _ in index.tensors} <= {"float32"}


def test_an_item_of_the_capture(data: Path) -> None:
    index = index_of(data / "captures/ckpt-run-a/iter_0000002/model")
    shapes = {name: shape for name, _, shape in index.tensors}
    assert shapes["model_state.model.lm_head.weight"] == (512, 64)
    (item,) = (item for item in index.items if item.key == "model_state.model.lm_head.weight")
    assert (item.file, item.dtype, item.shape) == ("__0_0.distcp", "float32", (512, 64))
    assert item.length > 4 * prod(item.shape)


def test_the_items_of_a_shard_follow_each_other(data: Path) -> None:
    index = index_of(data / "captures/ckpt-run-a/iter_0000004/optimizer")
    at = 0
    for item in index.items:
        assert item.offset == at
        at += item.length


@pytest.mark.parametrize("part", ["model", "optimizer", "lr_scheduler"])
def test_what_the_demo_saved(part: str) -> None:
    for folder in sorted(plain_run().checkpoints.glob(f"iter_*/{part}")):
        index = index_of(folder)
        assert index.file_bytes == lengths(folder)
        assert starts_with_zips(folder, index)
        assert bool(index.tensors) == (part != "lr_scheduler")


FLAT = "optimizer.state.exp_avg_sq.decoder.layers.mlp.linear_fc1.weight"


@pytest.mark.parametrize(("core", "items"), [("core-0.15", 14), ("core-0.16", 12)])
def test_what_megatron_saved_on_two_ranks(data: Path, core: str, items: int) -> None:
    """Written by megatron-core itself on gloo: `MCoreMetadata`, plans of the save, flat ranges."""
    folder = data / "megatron" / core / "iter_0000019"
    index = index_of(folder)
    assert len(index.items) == items
    assert index.file_bytes == lengths(folder)
    assert starts_with_zips(folder, index)
    shapes = {name: (dtype, shape) for name, dtype, shape in index.tensors}
    assert shapes["embedding.word_embeddings.weight"] == ("bfloat16", (8, 6))
    assert shapes["decoder.layers.mlp.linear_fc1.weight"] == ("bfloat16", (4, 12))
    halves = [item for item in index.items if item.key == "embedding.word_embeddings.weight"]
    assert [(half.file, half.shape) for half in halves] == [
        ("__0_1.distcp", (4, 6)),
        ("__1_1.distcp", (4, 6)),
    ]
    objects = {item.key for item in index.items if not item.dtype}
    assert {"rng_state/shard_0.0_1.2", "rng_state/shard_0.1_1.2"} < objects
    assert shapes.get(FLAT) == {"core-0.15": ("float32", (1, 1, 24))}.get(core)
    assert [item.shape for item in index.items if item.key == FLAT] in ([], [(1, 1, 12)] * 2)


def test_items_are_in_order_of_file_and_offset() -> None:
    described = {"b": tensor(2), "a": BYTES, "c": tensor()}
    stored = [
        (key("b", 0), place("__1_0.distcp", 7, 20)),
        (key("c"), place("__1_0.distcp", 0, 7)),
        (object_key("a"), place("__0_0.distcp", 5, 10)),
    ]
    index = read_index(saved(described, stored))
    assert index.items == (
        StoredItem(key="a", file="__0_0.distcp", offset=5, length=10),
        StoredItem(key="c", file="__1_0.distcp", offset=0, length=7, dtype="float32", shape=()),
        StoredItem(key="b", file="__1_0.distcp", offset=7, length=20, dtype="float32", shape=(2,)),
    )
    assert index.file_bytes == {"__0_0.distcp": 15, "__1_0.distcp": 27}
    assert index.tensors == (("b", "float32", (2,)), ("c", "float32", ()))
    assert index.parameter_count == 3


def test_parts_without_elements_may_share_a_place_and_need_not_be_stored() -> None:
    """Three ranks hold one row: two of them hold none of it, at the same offset."""
    chunks = [chunk([0, 0], [1, 4]), chunk([1, 0], [0, 4]), chunk([1, 0], [0, 4])]
    described = {"w": tensor(1, 4, chunks=chunks)}
    row, none = (key("w", 0, 0), place("a", 0, 9)), (key("w", 1, 0), place("b", 0, 9))
    assert [item.shape for item in read_index(saved(described, [row])).items] == [(1, 4)]
    assert [item.shape for item in read_index(saved(described, [row, none])).items] == [
        (1, 4),
        (0, 4),
    ]


def test_what_a_writer_did_to_an_item_is_kept() -> None:
    changed = place("a", 0, 9, transform_descriptors=["zstd"])
    (item,) = read_index(saved({"w": tensor(2)}, [(key("w", 0), changed)])).items
    assert item.transforms == ("zstd",)


def test_older_torch_kept_the_properties_of_a_tensor_elsewhere() -> None:
    old = "torch.distributed._shard.sharded_tensor.metadata"
    state = properties().state
    assert isinstance(state, tuple)
    state = (*state[:3], Called(Named(old, "MEM_FORMAT_ENCODING"), (0,)), state[4])
    changed = type(properties())(Named(old, "TensorProperties"), state)
    described = {"w": tensor(2, properties=changed)}
    assert read_index(saved(described, [(key("w", 0), place("a", 0, 9))])).parameter_count == 2


def test_a_big_index_is_read_whole() -> None:
    index = read_index(index_of_shards({f"__{rank}_0.distcp": rank + 9 for rank in range(1500)}))
    assert len(index.items) == 1500
    assert index.file_bytes["__1499_0.distcp"] == 1508


def test_what_lies_where_the_index_should(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        index_of(tmp_path)
    path = tmp_path / ".metadata"
    os.mkfifo(path)
    with pytest.raises(OSError, match="not a regular file"):
        index_of(tmp_path)
    path.unlink()
    path.touch()
    with pytest.raises(NotAnIndexError, match="it is empty"):
        index_of(tmp_path)
    with path.open("wb") as file:
        file.truncate(INDEX_LIMIT_BYTES + 1)
    with pytest.raises(NotAnIndexError, match="larger than 128 MiB"):
        index_of(tmp_path)
