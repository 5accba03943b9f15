"""What a start loads, as Miles decides it (arguments.py, then fsdp_utils/checkpoint.py)."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

from tui.demo import checkpoint, dcp

_LOADED_AT = {"model": ("model", 117), "optimizer": ("optimizer", 129)}
_LOADED_AT["lr_scheduler"] = ("LR scheduler", 142)
_ABSENT_AT = {"optimizer": ("Optimizer", "optimizer", 133)}
_ABSENT_AT["lr_scheduler"] = ("LR scheduler", "LR scheduler", 146)


class LoadFailedError(Exception):
    """The checkpoint the tracker names cannot be loaded, which ends the run."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Resume:
    """Where to start, and what the trainer says about it: source line and message."""

    start_rollout: int
    said: tuple[tuple[int, str], ...]
    continues: bool
    """A checkpoint was loaded."""


def resume(load: Path, hf_checkpoint: str) -> Resume:
    """Without a tracker Miles loads the base model instead and starts at 0, without a warning."""
    tracker = load / checkpoint.TRACKER
    if not tracker.exists():
        said = f"[FSDP] No tracker file at {hf_checkpoint}/{checkpoint.TRACKER}; skipping load."
        return Resume(start_rollout=0, said=((97, said),), continues=False)
    try:
        iteration = int(tracker.read_text())
    except ValueError as error:
        raise LoadFailedError(f"ValueError: {error}") from error
    folder = checkpoint.iteration_folder(load, iteration)
    if not (folder / "model").exists():
        said = f"[FSDP] Model checkpoint {folder / 'model'} not found; skipping load."
        return Resume(start_rollout=0, said=((108, said),), continues=False)
    said_of_parts = tuple(_loaded(folder, part) for part in checkpoint.PARTS)
    return Resume(start_rollout=_next_rollout(folder), said=said_of_parts, continues=True)


def _loaded(folder: Path, part: str) -> tuple[int, str]:
    place = folder / part
    if part in _ABSENT_AT and not place.exists():
        what, skipped, line = _ABSENT_AT[part]
        return line, f"[FSDP] {what} checkpoint not found at {place}, skipping {skipped} load."
    if not (place / dcp.INDEX).exists():
        missing = f"[Errno 2] No such file or directory: '{place / dcp.INDEX}'"
        raise LoadFailedError(
            f"torch.distributed.checkpoint.api.CheckpointException: FileNotFoundError: {missing}"
        )
    what, line = _LOADED_AT[part]
    return line, f"[FSDP] Loaded {what} from {place}"


def _next_rollout(folder: Path) -> int:
    """A missing or broken `meta.json` means 0: the weights stay loaded all the same."""
    try:
        return int(json.loads((folder / "meta.json").read_text())["next_rollout_id"])
    except (OSError, ValueError, KeyError, TypeError):
        return 0
