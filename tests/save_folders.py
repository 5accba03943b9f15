"""Save folders on disk, made piece by piece: whole checkpoints of FSDP and Megatron, and others."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path

from saved_index import index_of_one

from tui.model.checkpoint import Layout

FSDP_ORDER = (
    "model/__0_0.distcp",
    "model/.metadata",
    "optimizer/__0_0.distcp",
    "optimizer/.metadata",
    "lr_scheduler/__0_0.distcp",
    "lr_scheduler/.metadata",
    "rng.pt",
    "meta.json",
)
MEGATRON_ORDER = ("common.pt", "__0_0.distcp", ".metadata", "metadata.json")
TRACKER = "latest_checkpointed_iteration.txt"
_DAY_S = 86400.0


def checkpoint(
    root: Path,
    iteration: int,
    layout: Layout = Layout.FSDP,
    *,
    stop_after: int | None = None,
    age_s: float = _DAY_S,
) -> Path:
    """A save without data position and tracker, of yesterday, up to its first few files."""
    folder = root / f"iter_{iteration:07d}"
    order = FSDP_ORDER if layout is Layout.FSDP else MEGATRON_ORDER
    began = time.time() - age_s + iteration * age_s / _DAY_S
    for place, path in enumerate(order[:stop_after]):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(_content(path, iteration, began))
        os.utime(file, (began + place, began + place))
    for part in {each.parent for each in folder.rglob("*")}:
        os.utime(part, (began, began))
    return folder


def position(root: Path, rollout: int) -> Path:
    """The data source's position after a rollout."""
    path = root / "rollout" / f"global_dataset_state_dict_{rollout}.pt"
    path.parent.mkdir(exist_ok=True)
    path.write_text(f"after {rollout}")
    return path


def save(
    root: Path, iteration: int, layout: Layout = Layout.FSDP, *, age_s: float = _DAY_S
) -> None:
    """A whole save, the tracker's new text and the data position with it."""
    checkpoint(root, iteration, layout, age_s=age_s)
    position(root, iteration - (layout is Layout.FSDP))
    (root / TRACKER).write_text(str(iteration))


def _content(path: str, iteration: int, at: float) -> bytes:
    if path == "meta.json":
        numbers = {"rollout_id": iteration - 1, "next_rollout_id": iteration, "world_size": 1}
        return json.dumps({**numbers, "timestamp": at + len(FSDP_ORDER)}).encode()
    return index_of_one(10) if path.endswith(".metadata") else b"x" * 10
