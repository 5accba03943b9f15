"""What names, headers and configuration of a Hugging Face folder say; its weights stay unread."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tui.checkpoints.counted import Counted, counted_of
from tui.checkpoints.files import read_start
from tui.checkpoints.hf import TEXT_LIMIT_BYTES
from tui.checkpoints.safetensors import (
    READ_LIMIT_BYTES,
    NotSafetensorsError,
    StoredTensor,
    header_length,
    tensors_of,
)
from tui.miles.converter_memory import setting_of


@dataclass(frozen=True, slots=True, kw_only=True)
class HfFolder:
    """One folder."""

    names: tuple[str, ...]
    """Of everything in it."""
    counted: Counted
    config: Mapping[str, object]

    @property
    def shards(self) -> int:
        """Files of weights."""
        return sum(name.endswith(".safetensors") for name in self.names)

    @property
    def is_tied(self) -> bool:
        """Whether the head is the embedding: as configured, else as the tensors have it."""
        configured = setting_of(self.config, "tie_word_embeddings")
        if configured is None:
            return self.counted.embedding is not None and self.counted.head is None
        return configured is True


def folder_of(path: Path) -> HfFolder:
    """What can be read of it. Raises the `OSError` of listing it."""
    names = tuple(sorted(entry.name for entry in path.iterdir()))
    weights = [path / name for name in names if name.endswith(".safetensors")]
    tensors = [tensor for file in weights for tensor in _tensors_in(file)]
    counted = counted_of((tensor.name, tensor.shape) for tensor in tensors)
    return HfFolder(names=names, counted=counted, config=_config_in(path))


def _tensors_in(path: Path) -> tuple[StoredTensor, ...]:
    """By its header; none where that is broken, which a verify tells."""
    try:
        start, status = read_start(path, 8)
        length = header_length(start, status.st_size)
        if length > READ_LIMIT_BYTES:
            return ()
        raw, _ = read_start(path, 8 + length)
        return tensors_of(raw[8 : 8 + length], status.st_size)
    except (NotSafetensorsError, OSError):
        return ()


def _config_in(path: Path) -> Mapping[str, object]:
    """Empty where it is broken or missing, which a verify tells."""
    try:
        raw, _ = read_start(path / "config.json", TEXT_LIMIT_BYTES)
        config = json.loads(raw)
    except (OSError, ValueError, RecursionError):
        return {}
    return config if isinstance(config, dict) else {}
