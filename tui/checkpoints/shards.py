"""What to read of a DCP folder: the index, and each item of each shard it names.

A rank writes its items one after the other, so they fill their file from its first byte to its
last; where they do not, shard and index are not of one save.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from math import prod
from pathlib import Path

from tui.checkpoints.dcp import INDEX_NAME, index_of
from tui.checkpoints.index import DcpIndex, NotAnIndexError, StoredItem
from tui.checkpoints.plan import FileIdentity, Piece, Plan
from tui.checkpoints.zipped import TAIL_BYTES, NotATorchZipError, length_by_tail

SHARD_SUFFIX = ".distcp"
_ITEM_LIMIT = 1_000_000
_OPTIMIZER_PARTS = ("optimizer", "lr_scheduler")
_OPTIMIZER_KEYS = ("optimizer.", "optim.", "optim_state.", "lr_scheduler", "rng_state")
_WIDTHS = {
    "bool": 1,
    "uint8": 1,
    "int8": 1,
    "float8_e4m3fn": 1,
    "float8_e5m2": 1,
    "int16": 2,
    "float16": 2,
    "bfloat16": 2,
    "int32": 4,
    "float32": 4,
    "int64": 8,
    "float64": 8,
}


def plan_folder(plan: Plan, folder: Path) -> None:
    """Add a DCP folder, with or without a usable index."""
    shards = {path.name: path for path in sorted(folder.glob(f"*{SHARD_SUFFIX}"))}
    try:
        index = index_of(folder)
    except NotAnIndexError as error:
        plan.faults.append(f"{plan.name_of(folder / INDEX_NAME)}: {error}")
    except FileNotFoundError:
        plan.faults.append(f"{plan.name_of(folder / INDEX_NAME)}: missing")
    except OSError as error:
        plan.unread.append(f"{plan.name_of(folder / INDEX_NAME)}: {error.strerror}")
    else:
        plan.add_text(folder / INDEX_NAME)
        _plan_indexed(plan, folder, index, shards)
        return
    for path in shards.values():
        plan_shard(plan, path)


def _plan_indexed(plan: Plan, folder: Path, index: DcpIndex, shards: dict[str, Path]) -> None:
    for name, items in groupby(index.items, key=lambda item: item.file):
        _plan_listed(plan, folder / name, tuple(items))
    spare = [shards[name] for name in shards.keys() - index.file_bytes.keys()]
    for path in sorted(spare):
        identity = plan.identity_of(path)
        if identity is not None and identity.size_bytes:
            plan.notes.append(f"{plan.name_of(path)}: not named by the index, not read by a resume")


def _plan_listed(plan: Plan, path: Path, items: tuple[StoredItem, ...]) -> None:
    """One shard, by the items that its index says it holds."""
    identity = plan.identity_of(path)
    if identity is None:
        return
    gaps = tuple(_gaps(items, identity.size_bytes))
    plan.faults.extend(f"{plan.name_of(path)}: {gap}" for gap in gaps)
    last = items[-1]
    if last.offset + last.length <= identity.size_bytes:
        pieces = [_piece(path, item) for item in items]
        plan.add(
            path,
            identity,
            pieces,
            anchor=plan.name_of(path.parent / INDEX_NAME),
            has_sums=all(piece.is_zip for piece in pieces),
        )


def _gaps(items: tuple[StoredItem, ...], size_bytes: int) -> Iterator[str]:
    at = 0
    for item in items:
        if item.offset > at:
            yield f"{item.offset - at:,} bytes before {item.key} belong to no item"
        at = item.offset + item.length
    if at > size_bytes:
        yield f"{size_bytes:,} bytes long, the index needs {at:,}"
    elif at < size_bytes:
        yield f"{size_bytes - at:,} bytes at its end belong to no item"


def _piece(path: Path, item: StoredItem) -> Piece:
    width = _WIDTHS.get(item.dtype)
    return Piece(
        offset=item.offset,
        length=item.length,
        is_zip=not item.transforms,
        name=item.key,
        is_model=_is_model(path, item.key),
        tensor_bytes=prod(item.shape) * width if width and not item.transforms else None,
    )


def _is_model(path: Path, key: str) -> bool:
    return path.parent.name not in _OPTIMIZER_PARTS and not key.startswith(_OPTIMIZER_KEYS)


def plan_shard(plan: Plan, path: Path) -> None:
    """One shard on its own: by the index beside it, else by what its items say of themselves."""
    try:
        listed = [item for item in index_of(path.parent).items if item.file == path.name]
    except (NotAnIndexError, OSError):
        listed = []
    if listed:
        _plan_listed(plan, path, tuple(listed))
        return
    identity = plan.identity_of(path)
    if identity is None:
        return
    try:
        pieces = tuple(_pieces_by_tail(path, identity))
    except (NotATorchZipError, OSError) as error:
        plan.faults.append(f"{plan.name_of(path)}: {error}")
    else:
        plan.add(path, identity, pieces)


def _pieces_by_tail(path: Path, identity: FileIdentity) -> Iterable[Piece]:
    """Items from the last to the first: the end of each says where it begins."""
    pieces: list[Piece] = []
    with path.open("rb") as file:
        end = identity.size_bytes
        while end:
            file.seek(max(0, end - TAIL_BYTES))
            length = length_by_tail(file.read(min(end, TAIL_BYTES)))
            if length > end or len(pieces) == _ITEM_LIMIT:
                raise NotATorchZipError(f"no item ends at byte {end:,}")
            end -= length
            name = f"item at byte {end:,}"
            is_model = _is_model(path, "")
            pieces.append(
                Piece(offset=end, length=length, is_zip=True, name=name, is_model=is_model)
            )
    return reversed(pieces)
