"""What a DCP index (`.metadata`) says, as plain values: which tensors, in which files, how long."""

from __future__ import annotations

from dataclasses import dataclass


class NotAnIndexError(ValueError):
    """The bytes are no index, or hold what no index holds. The message is one line for a person."""


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredItem:
    """One stored piece: a chunk of a tensor, or an object. It is a torch zip of its own."""

    key: str
    """State-dict key, such as `model_state.model.embed_tokens.weight`."""
    file: str
    """File name beside the index, such as `__0_0.distcp`."""
    offset: int
    length: int
    """Bytes of the whole zip."""
    dtype: str = ""
    """`float32`, `bfloat16`, …; empty for an object that is no tensor."""
    shape: tuple[int, ...] = ()
    """Of this chunk."""
    transforms: tuple[str, ...] = ()
    """What the writer did to the zip, such as compressing it: with any, no zip lies there."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DcpIndex:
    """One index."""

    items: tuple[StoredItem, ...]
    """In order of file and offset."""
    tensors: tuple[tuple[str, str, tuple[int, ...]], ...] = ()
    """(key, dtype, whole shape) of every tensor."""

    @property
    def parameter_count(self) -> int:
        """Elements of all tensors, each counted once."""
        count = 0
        for _, _, shape in self.tensors:
            size = 1
            for length in shape:
                size *= length
            count += size
        return count

    @property
    def file_bytes(self) -> dict[str, int]:
        """File name to the bytes it must at least have."""
        needed: dict[str, int] = {}
        for item in self.items:
            needed[item.file] = max(needed.get(item.file, 0), item.offset + item.length)
        return needed
