"""A checkpoint that is whole by presence, held against what its own indexes say of its shards.

A shard ends where its last item ends: whoever writes it opens it anew. A shorter one was cut, and
a longer one is of another save than its index. A shard that no index names does no harm.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from math import prod

from tui.miles.layout import FileSeen, FolderSeen, Meta, meta_of, parts_of, rank_of
from tui.model.checkpoint import Checkpoint, CheckpointState, Layout

_MISSING_LIMIT = 8


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSeen:
    """What is known of one index."""

    path: str
    """Below the checkpoint folder: `model/.metadata`."""
    shards: tuple[tuple[str, int], ...] = ()
    """Name of each shard beside it, and its length."""
    parameter_count: int | None = None
    """Elements of the model's tensors; None where it describes something else."""
    fault: str = ""
    """Why it is no index."""
    unread: str = ""
    """Why it was not read, though it may be sound."""


def indexes_in(seen: FolderSeen, layout: Layout) -> tuple[FileSeen, ...]:
    """The indexes of a checkpoint that is whole by presence."""
    return tuple(part.index for part in parts_of(seen, layout, Meta()) if part.index)


def model_elements(path: str, tensors: Iterable[tuple[str, str, tuple[int, ...]]]) -> int | None:
    """Elements of the model among the tensors of an index; None where the index has no model.

    Megatron has one index for all; the rule is that of Miles' tools/convert_torch_dist_to_hf.py.
    """
    folder = path.rpartition("/")[0]
    if folder not in ("", "model"):
        return None
    return sum(
        prod(shape)
        for key, _, shape in tensors
        if folder or ("optimizer" not in key and "_state" not in key)
    )


def held_against(
    checkpoint: Checkpoint, seen: FolderSeen, indexes: Iterable[IndexSeen]
) -> Checkpoint:
    """The checkpoint with what its indexes add."""
    indexes = tuple(indexes)
    lengths = {file.path: file.size_bytes for file in seen.files}
    counts = [index.parameter_count for index in indexes if index.parameter_count is not None]
    checkpoint = replace(checkpoint, parameter_count=sum(counts) if counts else None)
    missing = [path for index in indexes for path, _ in _shards(index) if path not in lengths]
    if missing:
        return replace(
            checkpoint,
            state=CheckpointState.PARTIAL,
            missing=tuple(missing[:_MISSING_LIMIT]),
            reason=f"{missing[0]} is gone, though the save had finished",
        )
    ranks = meta_of(seen).world_size if checkpoint.layout is Layout.FSDP else 0
    for index in indexes:
        for flaw in _flaws(index, lengths, ranks):
            return replace(checkpoint, state=CheckpointState.DAMAGED, reason=flaw)
    remarks = [checkpoint.reason, *(_remark(index, seen) for index in indexes)]
    return replace(checkpoint, reason="; ".join(filter(None, remarks)))


def _shards(index: IndexSeen) -> Iterator[tuple[str, int]]:
    """Path of each shard below the checkpoint folder, and its length."""
    folder = index.path.rpartition("/")[0]
    for name, length in index.shards:
        yield (f"{folder}/{name}" if folder else name), length


def _flaws(index: IndexSeen, lengths: dict[str, int], ranks: int) -> Iterator[str]:
    if index.fault:
        yield f"{index.path} is {index.fault}"
    for path, length in _shards(index):
        if lengths[path] < length:
            yield f"{path} is cut short: {lengths[path]:,} of {length:,} bytes"
        if lengths[path] > length:
            yield (
                f"{path} has {lengths[path]:,} bytes and {index.path} tells of {length:,}: "
                "they are of different saves"
            )
        if ranks and (rank_of(path) or 0) >= ranks:
            yield f"{index.path} names {path}, but meta.json counts {ranks} ranks"


def _remark(index: IndexSeen, seen: FolderSeen) -> str:
    if index.unread:
        return f"{index.path} {index.unread}"
    named = {path for path, _ in _shards(index)}
    folder = index.path.rpartition("/")[0]
    extra = [
        file.path
        for file in seen.files
        if file.path.rpartition("/")[0] == folder
        and rank_of(file.path) is not None
        and file.size_bytes
        and file.path not in named
    ]
    more = f" and {len(extra) - 1} more" if len(extra) > 1 else ""
    return f"{min(extra)}{more} is no part of it: {index.path} does not name it" if extra else ""
