"""Whole checkpoints held against what their indexes say."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import pytest

from tui.miles.indexed import IndexSeen, held_against, indexes_in, model_elements
from tui.miles.layout import FileSeen, FolderSeen, rank_of
from tui.model.checkpoint import Checkpoint, CheckpointState, Layout

PARTS = ("model", "optimizer", "lr_scheduler")


def fsdp(*, ranks: int = 2, **sizes: int) -> FolderSeen:
    """Every shard has 100 bytes; `sizes` changes or adds some: `model__1_0=90`."""
    lengths = {f"{part}/__{rank}_0.distcp": 100 for part in PARTS for rank in range(ranks)}
    lengths |= {f"{part}/.metadata": 50 for part in PARTS} | {"rng.pt": 9, "meta.json": 9}
    for name, size in sizes.items():
        part, _, shard = name.partition("__")
        lengths[f"{part}/__{shard}.distcp"] = size
    files = tuple(
        FileSeen(path=path, size_bytes=size, written_at=1.0)
        for path, size in lengths.items()
        if size >= 0
    )
    meta = json.dumps({"world_size": ranks})
    return FolderSeen(name="iter_0000004", files=files, folders=PARTS, meta_text=meta)


def index(path: str = "model/.metadata", *, ranks: int = 2, **more: Any) -> IndexSeen:
    shards = tuple((f"__{rank}_0.distcp", 100) for rank in range(ranks))
    return replace(IndexSeen(path=path, shards=shards), **more)


WHOLE = Checkpoint(
    iteration=4, path="/ckpt/iter_0000004", layout=Layout.FSDP, state=CheckpointState.WHOLE
)


def held(seen: FolderSeen, *indexes: IndexSeen, reason: str = "") -> Checkpoint:
    return held_against(replace(WHOLE, reason=reason), seen, indexes)


def test_sizes_that_agree() -> None:
    indexes = (
        index(parameter_count=7),
        *(index(f"{part}/.metadata") for part in PARTS[1:]),
    )
    assert held(fsdp(), *indexes) == replace(WHOLE, parameter_count=7)


def test_without_an_index_nothing_is_added() -> None:
    assert held(fsdp(), reason="the tracker does not name it").reason.startswith("the tracker")
    assert held(fsdp()).parameter_count is None


@pytest.mark.parametrize("size", [0, 1, 99])
def test_a_short_shard(size: int) -> None:
    found = held(fsdp(model__1_0=size), index(parameter_count=7))
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == f"model/__1_0.distcp is cut short: {size} of 100 bytes"
    assert found.parameter_count == 7


def test_a_long_shard_is_of_another_save() -> None:
    found = held(fsdp(optimizer__0_0=1300), index("optimizer/.metadata"))
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == (
        "optimizer/__0_0.distcp has 1,300 bytes and optimizer/.metadata tells of 100: "
        "they are of different saves"
    )


def test_a_shard_that_is_named_and_gone() -> None:
    found = held(fsdp(model__1_0=-1), index())
    assert found.state is CheckpointState.PARTIAL
    assert found.missing == ("model/__1_0.distcp",)
    assert found.reason == "model/__1_0.distcp is gone, though the save had finished"


def test_many_shards_gone() -> None:
    found = held(fsdp(), index(ranks=4000))
    assert found.state is CheckpointState.PARTIAL
    assert len(found.missing) == 8


def test_no_index() -> None:
    found = held(fsdp(), index(shards=(), fault="not an index: it is empty"))
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == "model/.metadata is not an index: it is empty"


def test_an_index_of_more_ranks_than_the_save_had() -> None:
    seen = replace(fsdp(ranks=3), meta_text=json.dumps({"world_size": 2}))
    found = held(seen, index(ranks=3))
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == (
        "model/.metadata names model/__2_0.distcp, but meta.json counts 2 ranks"
    )
    unsaid = replace(seen, meta_text="{}")
    assert held(unsaid, index(ranks=3)).state is CheckpointState.WHOLE


def test_shards_that_no_index_names_are_a_remark() -> None:
    seen = fsdp(model__2_0=70, model__3_0=70, model__4_0=0)
    found = held(seen, index(), reason="no tracker names it")
    assert found.state is CheckpointState.WHOLE
    assert found.reason == (
        "no tracker names it; model/__2_0.distcp and 1 more is no part of it: "
        "model/.metadata does not name it"
    )


def test_an_idle_ranks_empty_shard_is_no_remark() -> None:
    assert held(fsdp(lr_scheduler__1_0=0), index("lr_scheduler/.metadata", ranks=1)) == WHOLE


def test_an_index_that_was_not_read() -> None:
    found = held(fsdp(), index(shards=(), unread="may not be read"))
    assert (found.state, found.reason) == (CheckpointState.WHOLE, "model/.metadata may not be read")


def test_megatron_has_its_shards_beside_the_index() -> None:
    files = ("common.pt", "__0_0.distcp", "__0_1.distcp", ".metadata", "metadata.json")
    seen = FolderSeen(
        name="iter_0000019",
        files=tuple(FileSeen(path=path, size_bytes=100, written_at=1.0) for path in files),
    )
    assert [file.path for file in indexes_in(seen, Layout.MEGATRON)] == [".metadata"]
    one = IndexSeen(path=".metadata", shards=(("__0_0.distcp", 100), ("__0_1.distcp", 101)))
    found = held_against(replace(WHOLE, layout=Layout.MEGATRON), seen, (one,))
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == "__0_1.distcp is cut short: 100 of 101 bytes"


def test_the_indexes_of_each_layout() -> None:
    assert [file.path for file in indexes_in(fsdp(), Layout.FSDP)] == [
        f"{part}/.metadata" for part in PARTS
    ]
    assert indexes_in(fsdp(), Layout.LORA) == ()


def test_elements_of_the_model() -> None:
    tensors = (
        ("decoder.weight", "bfloat16", (8, 6)),
        ("optimizer.state.exp_avg.decoder.weight", "float32", (8, 6)),
        ("rng_state", "uint8", (5,)),
        ("scalar", "float32", ()),
    )
    assert model_elements(".metadata", tensors) == 49
    assert model_elements("model/.metadata", tensors) == 102
    assert model_elements("optimizer/.metadata", tensors) is None
    assert model_elements("model/.metadata", ()) == 0


def test_the_rank_in_a_shards_name() -> None:
    assert [rank_of(path) for path in ("model/__12_3.distcp", "__0_0.distcp", "rng.pt")] == [
        12,
        0,
        None,
    ]
