"""What an index is read into: plain values, and records of what it would have called or made.

An index may name what torch and Megatron put into one, and nothing else.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

_METADATA = "torch.distributed.checkpoint.metadata"
_PLANNER = "torch.distributed.checkpoint.planner"
_SHARDED = "torch.distributed._shard.sharded_tensor.metadata"
_MEGATRON = "megatron.core.dist_checkpointing.strategies.torch"

METADATA = (f"{_METADATA}.Metadata", f"{_MEGATRON}.MCoreMetadata")
KEY = f"{_METADATA}.MetadataIndex"
PLACE = "torch.distributed.checkpoint.filesystem._StorageInfo"
TENSOR = f"{_METADATA}.TensorStorageMetadata"
OBJECT = f"{_METADATA}.BytesStorageMetadata"
CHUNK = f"{_METADATA}.ChunkStorageMetadata"
PROPERTIES = (f"{_METADATA}.TensorProperties", f"{_SHARDED}.TensorProperties")
SIZE = "torch.Size"
DTYPES = frozenset(
    f"torch.{name}"
    for name in (
        *("float64", "float32", "float16", "bfloat16", "complex32", "complex64", "complex128"),
        *("float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz"),
        *("float8_e8m0fnu", "float4_e2m1fn_x2"),
        *("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64"),
        *("qint8", "qint32", "quint8", "quint4x2", "quint2x4"),
    )
)
GET_LAYOUT = "torch.serialization._get_layout"
MEMORY_FORMATS = (f"{_METADATA}._MEM_FORMAT_ENCODING", f"{_SHARDED}.MEM_FORMAT_ENCODING")
GETATTR = "builtins.getattr"
"""How Python 3.11.0 to 3.11.3 pickled an enum's member."""
_IGNORED = (
    f"{_METADATA}.StorageMeta",
    "pathlib.PosixPath",
    "pathlib._local.PosixPath",  # Python 3.13
    # Megatron keeps the plans of the save with the index.
    f"{_PLANNER}.SavePlan",
    f"{_PLANNER}.WriteItem",
    f"{_PLANNER}.WriteItemType",
    f"{_PLANNER}.TensorWriteData",
    f"{_PLANNER}.BytesIOWriteData",
    f"{_MEGATRON}.MCoreSavePlan",
    "torch.distributed.checkpoint.filesystem._StoragePrefix",
)
NAMES = DTYPES.union(
    *(METADATA, PROPERTIES, MEMORY_FORMATS, _IGNORED),
    (KEY, PLACE, TENSOR, OBJECT, CHUNK, SIZE, GET_LAYOUT, GETATTR),
)


@dataclass(frozen=True, slots=True)
class Named:
    """A class, a function or a dtype, by its dotted name."""

    name: str


class Record:
    """What a class or function would have made of its arguments, and the state set on it."""

    __slots__ = ("arguments", "kind", "state")

    def __init__(self, kind: str, arguments: tuple[object, ...]) -> None:
        self.kind = kind
        self.arguments = arguments
        self.state: object = None


class Entries(list[object]):
    """A dict as it was written, key, value, key, value: keys are neither hashed nor compared."""

    __slots__ = ()

    def pairs(self) -> Iterator[tuple[object, object]]:
        return zip(self[::2], self[1::2], strict=True)
