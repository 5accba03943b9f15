"""Bytes of the demo's torch files against those torch itself wrote."""

from __future__ import annotations

import io
import pickle
import uuid
import zipfile
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.demo import dcp
from tui.demo.pickled import pickled
from tui.demo.torchzip import Tensor, saved_tensor, saved_value
from tui.demo.weights import Model

ITERATION = "ckpt-run-a/iter_0000002"


class Torch:
    """Stands in for any class of torch; shows how it was made."""

    name = ""
    arguments: tuple[Any, ...] = ()
    state: Any = None

    def __init__(self, *arguments: object) -> None:
        self.arguments = arguments

    def __setstate__(self, state: object) -> None:
        self.state = state

    def __repr__(self) -> str:
        return f"{self.name}{self.arguments!r}<{self.state!r}>"

    def __hash__(self) -> int:
        return hash(repr(self))

    def __eq__(self, other: object) -> bool:
        return repr(self) == repr(other)


class StandIns(pickle.Unpickler):
    def find_class(self, module: str, name: str) -> Any:
        return type(name, (Torch,), {"name": f"{module}.{name}"})


def index_of(raw: bytes) -> Any:
    return StandIns(io.BytesIO(raw)).load()


@pytest.fixture
def captured(data: Path) -> Path:
    return data / "captures" / ITERATION


def test_a_plain_value_is_saved_byte_for_byte_as_torch_saves_it(data: Path) -> None:
    path = data / "captures/ckpt-run-a/rollout/global_dataset_state_dict_1.pt"
    state = {
        "sample_offset": 16,
        "epoch_id": 0,
        "sample_group_index": 16,
        "sample_index": 128,
        "metadata": {},
    }

    assert saved_value(state, name=path.stem) == path.read_bytes()


@pytest.mark.parametrize("part", ["model", "optimizer"])
def test_every_tensor_of_a_shard_is_written_byte_for_byte(captured: Path, part: str) -> None:
    state = index_of((captured / part / ".metadata").read_bytes()).state
    shard = (captured / part / "__0_0.distcp").read_bytes()
    tensors = 0
    for key, place in state["storage_data"].items():
        described = state["state_dict_metadata"][key.state["fqn"]]
        if described.state is None:
            continue
        start = place.state["offset"]
        raw = shard[start : start + place.state["length"]]
        values = zipfile.ZipFile(io.BytesIO(raw)).read("archive/data/0")
        assert saved_tensor(Tensor(values, described.state["size"].arguments[0])) == raw
        tensors += 1
    assert tensors >= 25


@pytest.mark.parametrize("part", ["model", "optimizer", "lr_scheduler"])
def test_the_index_says_what_torchs_own_index_says(captured: Path, part: str) -> None:
    torchs = index_of((captured / part / ".metadata").read_bytes())
    model = Model(total_mb=2.0, seed=5)
    items = {
        "model": model.model_items,
        "optimizer": model.optimizer_items,
        "lr_scheduler": model.scheduler_items,
    }[part](2)
    extents, offset = [], 0
    for item in dcp.in_file_order(items):
        length = len(dcp.serialised(item))
        extents.append(dcp.Extent(item, offset, length))
        offset += length
    folder = Path("/ckpt/run-a/iter_0000002") / part
    save_id = uuid.UUID(torchs.state["storage_meta"].state["save_id"])

    ours = index_of(dcp.index(items, extents, folder, save_id))

    assert repr(ours) == repr(torchs)
    assert offset == (captured / part / "__0_0.distcp").stat().st_size


def test_a_wanted_size_is_met_roughly() -> None:
    for wanted in (2.0, 30.0):
        model = Model(total_mb=wanted, seed=0)
        items = model.model_items(1) + model.optimizer_items(1)
        size_mb = sum(len(dcp.serialised(item)) for item in items) / 1e6
        assert wanted * 0.7 < size_mb < wanted * 1.4


def test_weights_change_from_one_checkpoint_to_the_next_and_only_then() -> None:
    model, same = Model(total_mb=2.0, seed=3), Model(total_mb=2.0, seed=3)

    assert model.model_items(4) == same.model_items(4)
    assert model.model_items(4) != model.model_items(5)


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.floats(allow_nan=False)
    | st.text(max_size=300),
    lambda inner: (
        st.lists(inner, max_size=5)
        | st.lists(inner, max_size=5).map(tuple)
        | st.dictionaries(st.text(max_size=5), inner, max_size=5)
    ),
)


@given(value=VALUES, protocol=st.sampled_from([2, 4]))
def test_any_plain_value_comes_back_from_its_pickle(value: object, protocol: int) -> None:
    assert pickle.loads(pickled(value, protocol=protocol)) == value


def test_a_value_a_checkpoint_does_not_hold_is_refused() -> None:
    with pytest.raises(TypeError, match="set"):
        pickled({1, 2}, protocol=2)
