"""What to read of a Hugging Face folder, and whether its files belong together."""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Mapping
from pathlib import Path

from tui.checkpoints.files import read_start
from tui.checkpoints.plan import Piece, Plan
from tui.checkpoints.safetensors import (
    DTYPES,
    READ_LIMIT_BYTES,
    NotSafetensorsError,
    StoredTensor,
    header_length,
    tensors_of,
)

INDEX_SUFFIXES = (".safetensors.index.json", ".bin.index.json")
TOKENIZERS = ("tokenizer.json", "tokenizer.model", "vocab.json", "vocab.txt")
TEXT_LIMIT_BYTES = 64 << 20
_CONFIGURATIONS = ("config.json", "adapter_config.json")
_BIN_PREFIXES = ("pytorch_model", "adapter_model", "model")


def is_hf(names: Iterable[str]) -> bool:
    """Whether files of these names make a Hugging Face folder."""
    return any(
        _is_weight(name) or name.endswith(INDEX_SUFFIXES) or name in _CONFIGURATIONS
        for name in names
    )


def plan_hf(plan: Plan, folder: Path) -> None:
    """Add a folder of weights, with what must be beside them."""
    names = sorted(entry.name for entry in folder.iterdir() if entry.is_file())
    held = {
        name: plan_weights(plan, folder / name, is_model=True) for name in names if _is_weight(name)
    }
    for name in names:
        if name.endswith(INDEX_SUFFIXES):
            _check_index(plan, folder, name, held)
        if name.endswith(".json") and not name.endswith(INDEX_SUFFIXES):
            parsed = read_json(plan, folder / name)
            if name.endswith("config.json") and parsed is not None and not isinstance(parsed, dict):
                plan.faults.append(f"{plan.name_of(folder / name)}: not a configuration")
    if not held:
        plan.incomplete.append("no weights")
    if "adapter_config.json" in names:
        return
    if "config.json" not in names:
        plan.faults.append(f"{plan.name_of(folder / 'config.json')}: missing")
    if not any(name in TOKENIZERS or name.endswith(".tiktoken") for name in names):
        plan.incomplete.append("no tokenizer beside the weights")


def _is_weight(name: str) -> bool:
    return name.endswith(".safetensors") or (
        name.endswith(".bin") and name.startswith(_BIN_PREFIXES)
    )


def plan_weights(plan: Plan, path: Path, *, is_model: bool) -> frozenset[str] | None:
    """Add one file of weights; the names of its tensors, None where they are not known."""
    if not path.name.endswith(".safetensors"):
        plan.add_zip(path, is_model=is_model)
        return None
    identity = plan.identity_of(path)
    if identity is None:
        return None
    label = plan.name_of(path)
    try:
        length = header_length(read_start(path, 8)[0], identity.size_bytes)
        if length > READ_LIMIT_BYTES:
            plan.unread.append(f"{label}: a header of {length:,} bytes is not read")
            return None
        header = read_start(path, 8 + length)[0][8 : 8 + length]
        tensors = tensors_of(header, identity.size_bytes)
    except NotSafetensorsError as error:
        plan.faults.append(f"{label}: {error}")
        return None
    except OSError as error:
        plan.unread.append(f"{label}: {error.strerror}")
        return None
    first = Piece(offset=0, length=8 + length, name="header")
    plan.add(path, identity, [first, *map(_piece, tensors)], has_sums=False)
    return frozenset(tensor.name for tensor in tensors)


def _piece(tensor: StoredTensor) -> Piece:
    return Piece(
        offset=tensor.offset,
        length=tensor.length,
        name=tensor.name,
        dtype=DTYPES.get(tensor.dtype, ""),
        is_model=True,
    )


def _check_index(
    plan: Plan, folder: Path, name: str, held: Mapping[str, frozenset[str] | None]
) -> None:
    """Every tensor must be in the shard that the index names, and none in two."""
    label = plan.name_of(folder / name)
    parsed = read_json(plan, folder / name)
    placed = parsed.get("weight_map") if isinstance(parsed, dict) else None
    if not isinstance(placed, dict) or not all(isinstance(file, str) for file in placed.values()):
        if parsed is not None:
            plan.faults.append(f"{label}: no list of shards")
        return
    by_shard: dict[str, set[str]] = {}
    for tensor, file in placed.items():
        by_shard.setdefault(file, set()).add(tensor)
    for file, wanted in sorted(by_shard.items()):
        if os.sep in file or file not in held:
            plan.faults.append(f"{label}: {file[:80]!a} is missing")
            continue
        present = held[file]
        if present is None:
            continue
        for what, names in (("lacks", wanted - present), ("also holds", present - wanted)):
            if names:
                first = ascii(min(names)[:80])
                plan.faults.append(f"{label}: {file} {what} {first} and {len(names) - 1} more")
    for file in sorted(held.keys() - by_shard.keys()):
        if file.endswith(name.rpartition(".index.json")[0].rpartition(".")[2]):
            plan.notes.append(f"{file}: not named by {name}")


def read_json(plan: Plan, path: Path) -> object:
    """Add a JSON file and parse it; None, and said so, where that cannot be done."""
    label = plan.name_of(path)
    try:
        raw, _ = read_start(path, TEXT_LIMIT_BYTES)
    except OSError as error:
        plan.unread.append(f"{label}: {error.strerror}")
        return None
    plan.add_text(path)
    if len(raw) > TEXT_LIMIT_BYTES:
        plan.unread.append(f"{label}: too large to be parsed")
        return None
    try:
        parsed: object = json.loads(raw)
    except (ValueError, RecursionError):
        plan.faults.append(f"{label}: not JSON")
        return None
    if parsed is None:
        plan.faults.append(f"{label}: empty")
    return parsed
