"""Real torch loads what the demo wrote without it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from demo_runs import plain_run

pytestmark = pytest.mark.torch

ITERATION = "iter_0000004"


@pytest.fixture(scope="module")
def torch() -> Any:
    return pytest.importorskip("torch", reason="needs the torch extra")


@pytest.fixture(scope="module")
def folder() -> Path:
    return plain_run().checkpoints / ITERATION


@pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
@pytest.mark.parametrize("part", ["model", "optimizer", "lr_scheduler"])
def test_every_entry_of_a_part_loads(torch: Any, folder: Path, part: str) -> None:
    from torch.distributed import checkpoint as dcp
    from torch.distributed.checkpoint.metadata import TensorStorageMetadata

    reader = dcp.FileSystemReader(folder / part)
    described = reader.read_metadata().state_dict_metadata
    state: dict[str, Any] = {
        name: torch.full(entry.size, float("nan"))
        if isinstance(entry, TensorStorageMetadata)
        else None
        for name, entry in described.items()
    }

    dcp.load(state, storage_reader=reader, no_dist=True)

    assert len(state) == {"model": 25, "optimizer": 88, "lr_scheduler": 7}[part]
    for name, value in state.items():
        if isinstance(value, torch.Tensor):
            assert torch.isfinite(value).all(), name
    if part == "optimizer":
        assert state["optim_state.optim.state.lm_head.weight.step"].item() == 4.0
        assert (state["optim_state.optim.state.lm_head.weight.exp_avg_sq"] >= 0).all()
        assert len(state["optim_state.optim.param_groups.0.params"]) == 25
    if part == "model":
        assert state["model_state.model.lm_head.weight"].shape == (512, 64)
        assert state["model_state.model.model.norm.weight"].mean().item() == pytest.approx(
            1, abs=0.1
        )


def test_the_generators_state_is_one_torch_accepts(torch: Any, folder: Path) -> None:
    state = torch.load(folder / "rng.pt", weights_only=True)

    assert state.keys() == {"torch", "cuda"}
    torch.set_rng_state(state["torch"])
    assert 0.0 <= torch.rand(1).item() < 1.0


def test_the_data_sources_state_loads(torch: Any) -> None:
    path = plain_run().checkpoints / "rollout/global_dataset_state_dict_3.pt"

    assert torch.load(path, weights_only=True) == {
        "sample_offset": 64,
        "epoch_id": 0,
        "sample_group_index": 64,
        "sample_index": 512,
        "metadata": {},
    }
