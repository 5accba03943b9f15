"""Checkpoints as Miles' fsdp_utils/checkpoint.py and data_source.py write and read them.

`save` is a generator: it yields each `Stage` at the moment where a crash in that stage leaves its
mark, so that whoever drives it can pace the save, kill the process, or throw a full disk into it.
"""

from __future__ import annotations

import json
import random
import struct
import time
import uuid
from collections.abc import Generator, Iterator, Sequence
from enum import IntEnum
from pathlib import Path

from tui.demo import dcp
from tui.demo.torchzip import Tensor, saved_value, saved_with_tensor, tensor_reference
from tui.demo.weights import Model

TRACKER = "latest_checkpointed_iteration.txt"
PARTS = ("model", "optimizer", "lr_scheduler")


class Stage(IntEnum):
    """How far a save is, and what a crash there leaves."""

    FOLDERS = 0
    """Three empty folders."""
    MODEL_SHARD = 1
    """Half of the model's shard."""
    MODEL_INDEX = 2
    """The model, complete."""
    OPTIMIZER = 3
    """Half of the optimiser's shard."""
    LR_SCHEDULER = 4
    """Half of the scheduler's shard."""
    RNG = 5
    """Half of `rng.pt`, which is written in place."""
    META = 6
    """Everything but the tracker, which still names the older checkpoint."""
    TRACKER = 7
    """The tracker names this one; the data source's state is missing."""
    DATA_SOURCE = 8
    """Everything."""


_SHARD_STAGES = {
    "model": Stage.MODEL_SHARD,
    "optimizer": Stage.OPTIMIZER,
    "lr_scheduler": Stage.LR_SCHEDULER,
}


def iteration_folder(root: Path, iteration: int) -> Path:
    return root / f"iter_{iteration:07d}"


def save(
    root: Path, rollout: int, model: Model, *, seed: int, at: float | None = None
) -> Generator[Stage]:
    """Write the trainer's part of the checkpoint of `rollout`, up to and with the tracker.

    It is dated `at`, by default now.
    """
    iteration = rollout + 1
    folder = iteration_folder(root, iteration)
    for part in PARTS:
        (folder / part).mkdir(parents=True, exist_ok=True)
    yield Stage.FOLDERS
    items = (
        model.model_items(iteration),
        model.optimizer_items(iteration),
        model.scheduler_items(iteration),
    )
    for part, of_part in zip(PARTS, items, strict=True):
        yield from _save_part(folder / part, of_part, _SHARD_STAGES[part])
        if part == "model":
            yield Stage.MODEL_INDEX
    yield from _save_rng(folder / "rng.pt", seed + iteration)
    _replace(folder / "meta.json", _meta(rollout, at or time.time()).encode())
    yield Stage.META
    (root / TRACKER).write_text(str(iteration))
    yield Stage.TRACKER


def save_data_source(root: Path, rollout: int, *, samples: int, groups: int) -> None:
    """Write where the data set stands, which Miles does last of all."""
    path = data_source_path(root, rollout)
    path.parent.mkdir(parents=True, exist_ok=True)
    done = rollout + 1
    state = {
        "sample_offset": done * groups % 17_000,
        "epoch_id": done * groups // 17_000,
        "sample_group_index": done * groups,
        "sample_index": done * samples,
        "metadata": {},
    }
    path.write_bytes(saved_value(state, name=path.stem))


def _save_part(folder: Path, items: Sequence[dcp.Item], stage: Stage) -> Iterator[Stage]:
    ordered, extents, offset = dcp.in_file_order(items), [], 0
    with (folder / dcp.SHARD).open("wb") as shard:
        for number, item in enumerate(ordered):
            if number == len(ordered) // 2:
                shard.flush()
                yield stage
            raw = dcp.serialised(item)
            shard.write(raw)
            extents.append(dcp.Extent(item, offset, len(raw)))
            offset += len(raw)
    save_id = uuid.uuid4()
    _replace(folder / dcp.INDEX, dcp.index(items, extents, folder, save_id))


def _save_rng(path: Path, seed: int) -> Iterator[Stage]:
    state = _generator_state(seed)
    whole = saved_with_tensor({"torch": tensor_reference(state), "cuda": []}, state, name="rng")
    with path.open("wb") as file:
        file.write(whole[: len(whole) // 2])
        file.flush()
        yield Stage.RNG
        file.write(whole[len(whole) // 2 :])


def _generator_state(seed: int) -> Tensor:
    """A state torch's CPU generator accepts: seed, position, 624 words, no normal in store."""
    draw = random.Random(seed)  # noqa: S311 - a Mersenne state, as torch's own
    words = [draw.getrandbits(32) for _ in range(624)]
    legacy = struct.pack("<Q2iQ624Q3di4x", seed, 1, 1, 0, *words, 0.0, 0.0, 0.0, 0)
    return Tensor(legacy + struct.pack("<f?3x", 0.0, False), (len(legacy) + 8,), "uint8")


def _meta(rollout: int, at: float) -> str:
    meta = {
        "global_step": 0,
        "iteration": rollout + 1,
        "micro_step": 0,
        "next_rollout_id": rollout + 1,
        "rollout_id": rollout,
        "timestamp": at,
        "world_size": 1,
    }
    return json.dumps(meta, indent=2, sort_keys=True)


def _replace(path: Path, raw: bytes) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_bytes(raw)
    temporary.replace(path)


def data_source_path(root: Path, rollout: int) -> Path:
    return root / "rollout" / f"global_dataset_state_dict_{rollout}.pt"
