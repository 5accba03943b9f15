"""One folder of a torch distributed checkpoint (DCP), as a single rank writes it.

A shard `__0_0.distcp` is a row of `torch.save` files, plain values first, then tensors; the index
`.metadata` is a pickle of torch's own classes that says where each one lies.
"""

from __future__ import annotations

import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.demo.pickled import Built, Called, Named, Pairs, pickled
from tui.demo.torchzip import Tensor, saved_tensor, saved_value

SHARD = "__0_0.distcp"
INDEX = ".metadata"

_METADATA = "torch.distributed.checkpoint.metadata"


@dataclass(frozen=True, slots=True)
class Item:
    """One leaf of a state dict: where it hangs, and a tensor or a plain value."""

    path: tuple[str | int, ...]
    value: object

    @property
    def name(self) -> str:
        return ".".join(str(part) for part in self.path)


@dataclass(frozen=True, slots=True)
class Extent:
    """Where one item lies in the shard."""

    item: Item
    offset: int
    length: int


def serialised(item: Item) -> bytes:
    """One item as it lies in the shard."""
    value = item.value
    return saved_tensor(value) if isinstance(value, Tensor) else saved_value(value)


def in_file_order(items: Sequence[Item]) -> tuple[Item, ...]:
    """Plain values first, then tensors, each in their own order."""
    return tuple(sorted(items, key=lambda item: isinstance(item.value, Tensor)))


def index(
    items: Sequence[Item], extents: Sequence[Extent], folder: Path, save_id: uuid.UUID
) -> bytes:
    """The `.metadata` of `folder`: what each item is, and where in the shard it lies."""
    storage_meta = {
        "checkpoint_id": Called(Named("pathlib", "PosixPath"), folder.parts),
        "save_id": str(save_id),
        "load_id": None,
        "modules": [],
    }
    whole = {
        "state_dict_metadata": {item.name: _described(item.value) for item in items},
        "planner_data": {item.name: item.path for item in items},
        "storage_data": Pairs(tuple((_key(extent.item), _place(extent)) for extent in extents)),
        "storage_meta": Built(Named(_METADATA, "StorageMeta"), storage_meta),
        "version": "1.0.0",
    }
    return pickled(Built(Named(_METADATA, "Metadata"), whole), protocol=4)


def _described(value: object) -> Built:
    if not isinstance(value, Tensor):
        return Built(Named(_METADATA, "BytesStorageMetadata"))
    properties = (
        Named("torch", value.dtype),
        Called(Named("torch.serialization", "_get_layout"), ("torch.strided",)),
        False,
        Called(Named(_METADATA, "_MEM_FORMAT_ENCODING"), (0,)),
        False,
    )
    chunk = {"offsets": _size(tuple(0 for _ in value.shape)), "sizes": _size(value.shape)}
    described = {
        "properties": Built(Named(_METADATA, "TensorProperties"), properties),
        "size": _size(value.shape),
        "chunks": [Built(Named(_METADATA, "ChunkStorageMetadata"), chunk)],
    }
    return Built(Named(_METADATA, "TensorStorageMetadata"), described)


def _key(item: Item) -> Built:
    state: dict[str, object] = {"fqn": item.name, "index": None}
    if isinstance(item.value, Tensor):
        state |= {"index": 0, "offset": _size(tuple(0 for _ in item.value.shape))}
    return Built(Named(_METADATA, "MetadataIndex"), state)


def _place(extent: Extent) -> Built:
    return Built(
        Named("torch.distributed.checkpoint.filesystem", "_StorageInfo"),
        {"relative_path": SHARD, "offset": extent.offset, "length": extent.length},
    )


def _size(shape: tuple[int, ...]) -> Called:
    return Called(Named("torch", "Size"), (shape,))
