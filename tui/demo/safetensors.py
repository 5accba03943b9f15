"""A safetensors file, as Hugging Face's libraries write it: a JSON header, then the tensors."""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from pathlib import Path

from tui.demo.torchzip import Tensor

DTYPES = {"float32": "F32", "bfloat16": "BF16"}


def write(path: Path, tensors: Mapping[str, Tensor]) -> None:
    """Write them in the order of their names."""
    header: dict[str, object] = {"__metadata__": {"format": "pt"}}
    ordered, offset = sorted(tensors.items()), 0
    for name, tensor in ordered:
        end = offset + len(tensor.raw)
        header[name] = {
            "dtype": DTYPES[tensor.dtype],
            "shape": list(tensor.shape),
            "data_offsets": [offset, end],
        }
        offset = end
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with path.open("wb") as file:
        file.write(struct.pack("<Q", len(text)) + text)
        for _, tensor in ordered:
            file.write(tensor.raw)


def names_in(path: Path) -> tuple[str, ...]:
    """Its tensors."""
    with path.open("rb") as file:
        header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
    return tuple(name for name in header if name != "__metadata__")


def as_bfloat16(tensor: Tensor) -> Tensor:
    """A float32 tensor without the lower half of each number."""
    raw = bytearray(len(tensor.raw) // 2)
    raw[0::2], raw[1::2] = tensor.raw[2::4], tensor.raw[3::4]
    return Tensor(raw, tensor.shape, "bfloat16")
