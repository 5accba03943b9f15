"""The index of a torch distributed checkpoint (DCP), as FSDP and Megatron's torch_dist write it.

torch checks before a save that the parts of a tensor fill it, and writes the items of a shard one
after the other into files that it names itself; an index that breaks these rules was damaged.
Formats: torch's distributed/checkpoint metadata.py, filesystem.py and default_planner.py.
"""

from __future__ import annotations

from collections.abc import Container, Iterator
from itertools import pairwise
from math import prod
from pathlib import Path

from tui.checkpoints.files import read_start
from tui.checkpoints.index import DcpIndex, NotAnIndexError, StoredItem
from tui.checkpoints.inert import (
    CHUNK,
    DTYPES,
    GET_LAYOUT,
    GETATTR,
    KEY,
    MEMORY_FORMATS,
    METADATA,
    OBJECT,
    PLACE,
    PROPERTIES,
    SIZE,
    TENSOR,
    Entries,
    Named,
    Record,
)
from tui.checkpoints.unpickle import unpickle

INDEX_NAME = ".metadata"
INDEX_LIMIT_BYTES = 128 << 20
"""Some 400,000 items."""
CHUNK_LIMIT = 2_000_000
_DIMENSION_LIMIT = 64
_FIELD_LIMIT = 32
_TRANSFORM_LIMIT = 16
_COUNT_LIMIT = 1 << 63
_LAYOUTS = frozenset(f"torch.{name}" for name in ("strided", "sparse_coo", "jagged", "_mkldnn"))
_MEMORY_FORMATS = ("TORCH_CONTIGUOUS_FORMAT", "TORCH_CHANNELS_LAST", "TORCH_PRESERVE_FORMAT")

Shape = tuple[int, ...]


def index_of(folder: Path) -> DcpIndex:
    """The index in `folder`. Raises `NotAnIndexError`, or the `OSError` of reading it."""
    raw, _ = read_start(folder / INDEX_NAME, INDEX_LIMIT_BYTES)
    if len(raw) > INDEX_LIMIT_BYTES:
        raise _refused(f"it is larger than {INDEX_LIMIT_BYTES >> 20} MiB")
    return read_index(raw)


def read_index(raw: bytes) -> DcpIndex:
    """What `raw` says. Raises `NotAnIndexError`."""
    whole = _fields(unpickle(raw), *METADATA)
    described = _Described(_entries(whole, "state_dict_metadata"))
    if "planner_data" not in whole:
        raise _refused("it has no planner_data")
    _check_paths(described.keys, whole["planner_data"])
    items = [described.stored(key, place) for key, place in _entries(whole, "storage_data").pairs()]
    described.check_stored()
    items.sort(key=lambda item: (item.file, item.offset, item.length))
    for item, following in pairwise(items):
        if item.file == following.file and item.offset + item.length > following.offset:
            raise _refused(f"{_shown(item.key)} and {_shown(following.key)} overlap in {item.file}")
    return DcpIndex(items=tuple(items), tensors=tuple(described.tensors))


class _Described:
    """What the index says the state dict holds, part by part, and which parts were stored."""

    def __init__(self, entries: Entries) -> None:
        self.keys: set[str] = set()
        self.tensors: list[tuple[str, str, Shape]] = []
        self._parts: dict[tuple[str, Shape | None], tuple[str, Shape]] = {}
        """Key and offsets, None for an object: dtype and shape."""
        self._chunks_left = CHUNK_LIMIT
        for key, described in entries.pairs():
            self._add(_text(key), described)

    def _add(self, key: str, described: object) -> None:
        if key in self.keys:
            raise _refused(f"{_shown(key)} is described twice")
        self.keys.add(key)
        if isinstance(described, Record) and described.kind == OBJECT:
            self._parts[key, None] = ("", ())
            return
        tensor = _fields(described, TENSOR)
        dtype, size = _dtype(tensor.get("properties")), _shape(tensor.get("size"))
        self.tensors.append((key, dtype, size))
        count = 0
        for offsets, sizes in self._chunks(tensor.get("chunks"), size):
            count += prod(sizes)
            if 0 not in sizes or (key, offsets) not in self._parts:
                self._parts[key, offsets] = (dtype, sizes)
        if count != prod(size):
            raise _refused(f"the parts of {_shown(key)} hold {count:,} of {prod(size):,} elements")

    def _chunks(self, chunks: object, size: Shape) -> Iterator[tuple[Shape, Shape]]:
        if type(chunks) is not list or len(chunks) > self._chunks_left:
            raise _refused("a tensor without a list of its parts")
        self._chunks_left -= len(chunks)
        for chunk in chunks:
            fields = _fields(chunk, CHUNK)
            offsets, sizes = _shape(fields.get("offsets")), _shape(fields.get("sizes"))
            if not len(offsets) == len(sizes) == len(size):
                raise _refused("a part with other dimensions than its tensor's")
            if any(at + have > whole for at, have, whole in zip(offsets, sizes, size, strict=True)):
                raise _refused("a part that reaches out of its tensor")
            yield offsets, sizes

    def stored(self, key: object, place: object) -> StoredItem:
        """The item at one place; each part is stored once."""
        index, where = _fields(key, KEY), _fields(place, PLACE)
        name, offset = _text(index.get("fqn")), index.get("offset")
        part = self._parts.pop((name, None if offset is None else _shape(offset)), None)
        if part is None:
            raise _refused(f"it stores a part of {_shown(name)} that it does not describe")
        return StoredItem(
            key=name,
            file=_file_name(where.get("relative_path")),
            offset=_count(where.get("offset")),
            length=_count(where.get("length")),
            dtype=part[0],
            shape=part[1],
            transforms=_transforms(where.get("transform_descriptors")),
        )

    def check_stored(self) -> None:
        """Parts without elements need not be stored; all others were."""
        for (key, _), (_, shape) in self._parts.items():
            if 0 not in shape:
                raise _refused(f"it does not say where a part of {_shown(key)} is stored")


def _check_paths(keys: set[str], paths: object) -> None:
    """FSDP's planner keeps the path of which it made each key; a damaged name differs from it."""
    if type(paths) is not Entries or not paths:
        return
    known = set()
    for key, path in paths.pairs():
        name = _text(key)
        if type(path) is not tuple or len(path) > len(name) + 1:
            raise _refused(f"{_shown(name)} has no path")
        steps = [str(step) if type(step) is int else _text(step) for step in path]
        if sum(map(len, steps)) + len(steps) - 1 != len(name) or ".".join(steps) != name:
            raise _refused(f"{_shown(name)} is not the name of its path")
        if name in known:
            raise _refused(f"{_shown(name)} has two paths")
        known.add(name)
    for name in keys - known:
        raise _refused(f"{_shown(name)} has no path")


def _refused(why: str) -> NotAnIndexError:
    return NotAnIndexError(f"not an index: {why}")


def _shown(text: str) -> str:
    """A name from the file, short and printable."""
    return ascii(text[:80])


def _fields(value: object, *kinds: str) -> dict[str, object]:
    """The attributes of a record of one of these kinds."""
    wanted = kinds[0].rpartition(".")[2]
    if not isinstance(value, Record) or value.kind not in kinds:
        raise _refused(f"no {wanted} where one belongs")
    state = value.state
    if type(state) is not Entries or len(state) > 2 * _FIELD_LIMIT:
        raise _refused(f"a {wanted} without attributes")
    return {_text(name): field for name, field in state.pairs()}


def _entries(fields: dict[str, object], name: str) -> Entries:
    entries = fields.get(name)
    if type(entries) is not Entries:
        raise _refused(f"it has no {name}")
    return entries


def _text(value: object) -> str:
    if type(value) is not str:
        raise _refused("a name that is no text")
    return value


def _count(value: object) -> int:
    if type(value) is not int or not 0 <= value < _COUNT_LIMIT:
        raise _refused("a count that cannot be one")
    return value


def _shape(value: object) -> Shape:
    """The numbers of a `torch.Size`."""
    if type(value) is not Record or value.kind != SIZE or len(value.arguments) != 1:
        raise _refused("no size where one belongs")
    numbers = value.arguments[0]
    if type(numbers) is not tuple or len(numbers) > _DIMENSION_LIMIT:
        raise _refused("a size that cannot be one")
    return tuple(map(_count, numbers))


def _dtype(value: object) -> str:
    """From the properties of a tensor; the others that torch looks at are in order."""
    if not isinstance(value, Record) or value.kind not in PROPERTIES:
        raise _refused("no TensorProperties where one belongs")
    state = value.state
    if type(state) is not tuple or len(state) != 5:
        raise _refused("TensorProperties without attributes")
    dtype, layout, requires_grad, memory_format, is_pinned = state
    if type(dtype) is not Named or dtype.name not in DTYPES:
        raise _refused("a tensor of an unknown dtype")
    if type(requires_grad) is not bool or type(is_pinned) is not bool:
        raise _refused("a flag that is none")
    if not _is_call(layout, GET_LAYOUT, _LAYOUTS) or not _is_memory_format(memory_format):
        raise _refused("a tensor of an unknown layout")
    return dtype.name.removeprefix("torch.")


def _is_memory_format(value: object) -> bool:
    if isinstance(value, Record) and value.kind == GETATTR:
        return len(value.arguments) == 2 and value.arguments[1] in _MEMORY_FORMATS
    return any(_is_call(value, kind, range(3)) for kind in MEMORY_FORMATS)


def _is_call(value: object, kind: str, argument: Container[object]) -> bool:
    """Whether it is `kind` of one plain argument, and that is among those of its kind."""
    if not isinstance(value, Record) or value.kind != kind or len(value.arguments) != 1:
        return False
    return type(value.arguments[0]) in (int, str) and value.arguments[0] in argument


def _file_name(value: object) -> str:
    name = _text(value)
    if not name.isprintable() or "/" in name or name in ("", ".", "..") or len(name) > 255:
        raise _refused(f"{_shown(name)} is no file beside it")
    return name


def _transforms(value: object) -> tuple[str, ...]:
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or len(value) > _TRANSFORM_LIMIT:
        raise _refused("transforms that cannot be any")
    return tuple(map(_text, value))
