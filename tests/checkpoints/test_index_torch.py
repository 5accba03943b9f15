"""What real torch wrote, on one rank and on several, read as torch itself reads it."""

from __future__ import annotations

import io
import subprocess
import sys
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import Any

import pytest
from demo_runs import plain_run

from tui.checkpoints.dcp import index_of

pytestmark = [
    pytest.mark.torch,
    pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning"),
]
DATA = Path(__file__).parents[1] / "data"
PARTS = ("mixed", "model", "optimizer", "grid", "threads", "idle")


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="needs the torch extra")


@pytest.fixture(scope="module", params=[1, 2, 3], ids="{} ranks".format)
def written(torch: Any, request: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Parts that so many processes wrote together."""
    root = tmp_path_factory.mktemp("ranks")
    words = [sys.executable, str(Path(__file__).with_name("torch_ranks.py")), str(root)]
    ranks = [
        subprocess.Popen([*words, str(request.param), str(rank), str(root / "rendezvous")])
        for rank in range(request.param)
    ]
    assert [rank.wait(timeout=180) for rank in ranks] == [0] * request.param
    return root


def said_by_torch(folder: Path) -> Any:
    from torch.distributed.checkpoint import FileSystemReader

    return FileSystemReader(folder).read_metadata()


def parts_by_torch(metadata: Any) -> Iterator[tuple[object, ...]]:
    """Every stored item as torch finds it: key, file, offset, length, dtype, shape."""
    from torch.distributed.checkpoint.metadata import MetadataIndex, TensorStorageMetadata

    for name, described in metadata.state_dict_metadata.items():
        if not isinstance(described, TensorStorageMetadata):
            place = metadata.storage_data[MetadataIndex(name)]
            yield name, place.relative_path, place.offset, place.length, "", ()
            continue
        dtype = str(described.properties.dtype).removeprefix("torch.")
        for part in described.chunks:
            place = metadata.storage_data[MetadataIndex(name, part.offsets)]
            shape = tuple(part.sizes)
            yield name, place.relative_path, place.offset, place.length, dtype, shape


def check(folder: Path) -> None:
    """All that the index says, against torch."""
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    index, metadata = index_of(folder), said_by_torch(folder)
    ours = {(i.key, i.file, i.offset, i.length, i.dtype, i.shape) for i in index.items}
    assert ours == set(parts_by_torch(metadata))
    assert len(index.items) == len(metadata.storage_data)
    tensors = {
        name: described
        for name, described in metadata.state_dict_metadata.items()
        if isinstance(described, TensorStorageMetadata)
    }
    assert [(name, shape) for name, _, shape in index.tensors] == [
        (name, tuple(described.size)) for name, described in tensors.items()
    ]
    assert index.parameter_count == sum(prod(described.size) for described in tensors.values())
    sizes = {path.name: path.stat().st_size for path in folder.glob("*.distcp")}
    assert index.file_bytes == {name: size for name, size in sizes.items() if size}


@pytest.mark.parametrize("part", PARTS)
def test_an_index_says_what_torch_says(written: Path, part: str) -> None:
    check(written / part)


def test_a_rank_without_work_leaves_an_empty_shard(written: Path) -> None:
    sizes = sorted(path.stat().st_size for path in (written / "idle").glob("*.distcp"))
    assert sizes[:-1] == [0] * (len(sizes) - 1)
    assert len(index_of(written / "idle").items) == 1


def test_all_dtypes_are_named_as_torch_names_them(written: Path) -> None:
    found = {dtype for _, dtype, _ in index_of(written / "mixed").tensors}
    assert found >= {
        *("float32", "bfloat16", "float16", "float64", "int64", "uint8", "bool", "complex64"),
        "float8_e4m3fn",
    }


def test_the_parts_of_a_model_are_those_of_its_parameters(torch: Any, written: Path) -> None:
    from torch import nn

    shapes = {
        name: shape for name, _, shape in index_of(written / "model").tensors if "seen" not in name
    }
    parameters = [*nn.Embedding(11, 6).parameters(), *nn.Linear(6, 1).parameters()]
    parameters += [*nn.LayerNorm(1).parameters(), *nn.Linear(1, 5, bias=False).parameters()]
    assert list(shapes.values()) == [tuple(parameter.shape) for parameter in parameters]


@pytest.mark.parametrize("part", ["model", "optimizer", "lr_scheduler"])
@pytest.mark.parametrize("iteration", ["iter_0000002", "iter_0000004"])
def test_the_capture(torch: Any, iteration: str, part: str) -> None:
    check(DATA / "captures/ckpt-run-a" / iteration / part)


@pytest.mark.parametrize("part", ["model", "optimizer", "lr_scheduler"])
def test_the_demos_checkpoints(torch: Any, part: str) -> None:
    check(plain_run().checkpoints / "iter_0000004" / part)


def test_megatrons(torch: Any) -> None:
    """Its plain index needs no class of Megatron."""
    check(DATA / "megatron/core-0.16/iter_0000019")


def test_an_item_cut_out_of_its_shard_loads_as_what_the_index_says(
    torch: Any, written: Path
) -> None:
    folder = written / "threads"
    for item in index_of(folder).items:
        raw = (folder / item.file).read_bytes()[item.offset : item.offset + item.length]
        value = torch.load(io.BytesIO(raw), weights_only=False)
        if item.dtype:
            assert tuple(value.shape) == item.shape
            assert str(value.dtype) == f"torch.{item.dtype}"
