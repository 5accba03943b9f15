"""What to read of one `iter_0000123` folder: every part of it, and the data source's state."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from tui.checkpoints.files import read_start
from tui.checkpoints.hf import plan_weights, read_json
from tui.checkpoints.plan import Plan
from tui.checkpoints.shards import plan_folder
from tui.miles.layout import (
    DATA_FOLDER,
    EVENTS_FOLDER,
    META_NAME,
    FileSeen,
    FolderSeen,
    iteration_of,
    layout_of,
    tops_of,
)
from tui.miles.wholeness import checkpoint_of
from tui.model.checkpoint import Checkpoint, CheckpointState, Layout

PARTS = ("model", "optimizer", "lr_scheduler")
_META_LIMIT_BYTES = 65536


def is_iteration(folder: Path) -> bool:
    """Whether the folder is one checkpoint, under its own name or under another."""
    seen = _seen(folder)
    tops = tops_of(seen)
    match layout_of(tops):
        case Layout.UNKNOWN:
            return False
        case Layout.MEGATRON:
            return iteration_of(folder.name) is not None or "common.pt" in tops
        case Layout.FSDP | Layout.LORA:
            return True


def plan_iteration(plan: Plan, folder: Path, now: float) -> None:
    """Add a whole checkpoint."""
    checkpoint = _judged(plan, folder, now)
    match checkpoint.layout:
        case Layout.FSDP:
            _plan_fsdp(plan, folder)
        case Layout.MEGATRON:
            _plan_megatron(plan, folder)
        case Layout.LORA:
            _plan_adapter(plan, folder / "adapter")
        case Layout.UNKNOWN:
            pass
    if iteration_of(folder.name) is not None and checkpoint.after_rollout >= 0:
        _plan_data_state(plan, folder.parent / DATA_FOLDER, checkpoint)


def _plan_data_state(plan: Plan, folder: Path, checkpoint: Checkpoint) -> None:
    path = folder / f"global_dataset_state_dict_{checkpoint.after_rollout}.pt"
    if path.exists():
        plan.add_zip(path)
    else:
        plan.notes.append(f"{DATA_FOLDER}/{path.name} is missing: data order would start again")


def _judged(plan: Plan, folder: Path, now: float) -> Checkpoint:
    """What presence, sizes and times tell."""
    seen = _seen(folder)
    if iteration_of(seen.name) is None:
        seen = replace(seen, name="iter_0000000")
    checkpoint = checkpoint_of(
        seen, path=str(folder), tracker=None, data_states=frozenset(), now=now
    )
    assert checkpoint is not None
    match checkpoint.state:
        case CheckpointState.DAMAGED:
            plan.faults.append(checkpoint.reason)
        case CheckpointState.PARTIAL | CheckpointState.SAVING:
            plan.incomplete.append(checkpoint.reason)
        case CheckpointState.WHOLE:
            pass
    return checkpoint


def _plan_fsdp(plan: Plan, folder: Path) -> None:
    for part in PARTS:
        if (folder / part / ".metadata").exists():
            plan_folder(plan, folder / part)
    for path in sorted(folder.glob("rng*.pt")):
        plan.add_zip(path, anchor=META_NAME)
    if (folder / META_NAME).exists():
        _check_meta(plan, folder)


def _check_meta(plan: Plan, folder: Path) -> None:
    """Miles states one number three times, and once more in the folder's name."""
    stated = read_json(plan, folder / META_NAME)
    if not isinstance(stated, dict):
        return
    iteration = iteration_of(folder.name)
    if iteration is None:
        iteration = stated.get("iteration")
    if type(iteration) is not int:
        plan.faults.append(f"{META_NAME}: it states no iteration")
        return
    wanted = {
        "iteration": iteration,
        "next_rollout_id": iteration,
        "rollout_id": iteration - 1,
    }
    for key, number in wanted.items():
        if stated.get(key) != number:
            plan.faults.append(f"{META_NAME}: {key} is {stated.get(key)!a}, not {number}")


def _plan_megatron(plan: Plan, folder: Path) -> None:
    if (folder / ".metadata").exists():
        plan_folder(plan, folder)
    if (folder / "common.pt").exists():
        plan.add_zip(folder / "common.pt", anchor=".metadata")
    if (folder / "metadata.json").exists():
        read_json(plan, folder / "metadata.json")


def _plan_adapter(plan: Plan, folder: Path) -> None:
    for path in sorted(folder.iterdir()):
        if path.suffix == ".pt":
            plan.add_zip(path, is_model=path.name.startswith("adapter_"))
        elif path.suffix in (".bin", ".safetensors"):
            plan_weights(plan, path, is_model=True)
        elif path.suffix == ".json":
            read_json(plan, path)


def _seen(folder: Path) -> FolderSeen:
    """The folder two levels deep."""
    files: list[FileSeen] = []
    folders = list(_listed(folder, "", files))
    for name in folders:
        if name != EVENTS_FOLDER:
            list(_listed(folder / name, f"{name}/", files))
    meta = b""
    if any(file.path == META_NAME for file in files):
        meta = read_start(folder / META_NAME, _META_LIMIT_BYTES)[0]
    return FolderSeen(
        name=folder.name,
        files=tuple(files),
        folders=tuple(sorted(folders)),
        written_at=folder.stat().st_mtime,
        meta_text=meta.decode("utf-8", "replace"),
    )


def _listed(folder: Path, prefix: str, files: list[FileSeen]) -> Iterator[str]:
    """Add the files of a folder; the names of the folders in it."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir(follow_symlinks=False):
                yield entry.name
                continue
            try:
                status = entry.stat()
            except OSError:  # a link that leads nowhere: as good as no file
                continue
            files.append(
                FileSeen(
                    path=prefix + entry.name,
                    size_bytes=status.st_size,
                    written_at=status.st_mtime,
                )
            )
