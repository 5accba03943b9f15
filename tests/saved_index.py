"""Indexes of torch distributed checkpoints made piece by piece, sound ones and others."""

from __future__ import annotations

from collections.abc import Sequence

from tui.demo.pickled import Built, Called, Named, Pairs, pickled

METADATA = "torch.distributed.checkpoint.metadata"
Place = tuple[str, int, int]
"""File, offset, length."""


def size(*shape: object) -> Called:
    return Called(Named("torch", "Size"), (tuple(shape),))


def properties(dtype: str = "float32", **changes: object) -> Built:
    layout = Called(Named("torch.serialization", "_get_layout"), ("torch.strided",))
    memory_format = Called(Named(METADATA, "_MEM_FORMAT_ENCODING"), (0,))
    state = {
        "dtype": Named("torch", dtype),
        "layout": layout,
        "requires_grad": False,
        "memory_format": memory_format,
        "pin_memory": False,
    }
    return Built(Named(METADATA, "TensorProperties"), tuple((state | changes).values()))


def chunk(offsets: Sequence[object], sizes: Sequence[object]) -> Built:
    state = {"offsets": size(*offsets), "sizes": size(*sizes)}
    return Built(Named(METADATA, "ChunkStorageMetadata"), state)


def tensor(*shape: int, **changes: object) -> Built:
    whole: dict[str, object] = {
        "properties": properties(),
        "size": size(*shape),
        "chunks": [chunk([0] * len(shape), shape)],
    }
    return Built(Named(METADATA, "TensorStorageMetadata"), whole | changes)


BYTES = Built(Named(METADATA, "BytesStorageMetadata"))


def key(name: object, *offsets: object, **changes: object) -> Built:
    state: dict[str, object] = {"fqn": name, "index": 0, "offset": size(*offsets)}
    return Built(Named(METADATA, "MetadataIndex"), state | changes)


def object_key(name: str) -> Built:
    return Built(Named(METADATA, "MetadataIndex"), {"fqn": name, "index": None})


def place(file: object, offset: object, length: object, **more: object) -> Built:
    state = {"relative_path": file, "offset": offset, "length": length} | more
    return Built(Named("torch.distributed.checkpoint.filesystem", "_StorageInfo"), state)


def saved(described: object, stored: object, **more: object) -> bytes:
    """An index; `described` and `stored` are dicts, or pairs where a key is no plain value."""
    whole: dict[str, object] = {
        "state_dict_metadata": _mapping(described),
        "planner_data": None,
        "storage_data": _mapping(stored),
    }
    return pickled(Built(Named(METADATA, "Metadata"), whole | more), protocol=4)


def _mapping(value: object) -> object:
    return Pairs(tuple(value)) if isinstance(value, list) else value


def index_of_one(length: int, file: str = "__0_0.distcp") -> bytes:
    """A sound index of one tensor of six elements, in one shard of `length` bytes."""
    return index_of_shards({file: length})


def index_of_shards(lengths: dict[str, int]) -> bytes:
    """A sound index of one tensor of six elements a shard."""
    described = {f"model_state.w{number}": tensor(2, 3) for number in range(len(lengths))}
    stored = [
        (key(name, 0, 0), place(file, 0, length))
        for name, (file, length) in zip(described, lengths.items(), strict=True)
    ]
    return saved(described, stored)
