"""How much memory a converter takes, by what the checkpoint's index lists."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from math import prod

from tui.model.plan import Refusal, Row
from tui.model.snapshot import Level, Limits

IndexedTensor = tuple[str, str, tuple[int, ...]]
"""Key, torch's name of the dtype, and shape, as an index lists them."""

_LIBRARIES_BYTES = 2 << 30
"""Allowed for Python with torch, transformers and Megatron; torch alone takes 0.2 GiB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PeakMemory:
    """What a converter holds at its fullest."""

    parameters: int
    tensors_bytes: int
    """All that it reads, in the types that the index states."""
    beside_bytes: int
    """At the same time: the model it copies them into, or the largest one while it is read."""
    libraries_bytes: int = _LIBRARIES_BYTES

    @property
    def total_bytes(self) -> int:
        return self.tensors_bytes + self.beside_bytes + self.libraries_bytes

    def __str__(self) -> str:
        return (
            f"about {_gib(self.total_bytes)}: {_gib(self.tensors_bytes)} for"
            f" {self.parameters:,} parameters, {_gib(self.beside_bytes)} beside them,"
            f" {_gib(self.libraries_bytes)} for libraries"
        )


def peak_memory(
    tensors: Iterable[IndexedTensor], config: Mapping[str, object], *, builds_model: bool
) -> PeakMemory:
    """By the index. A model that is built beside has the type that its configuration names."""
    sizes = [(prod(shape), _width(dtype)) for _, dtype, shape in tensors]
    parameters = sum(count for count, _ in sizes)
    held = [count * width for count, width in sizes]
    model = 0
    if builds_model:
        model = parameters * _width(str(setting_of(config, "dtype", "torch_dtype") or "bfloat16"))
    return PeakMemory(
        parameters=parameters,
        tensors_bytes=sum(held),
        beside_bytes=max(model, max(held, default=0)),
    )


def memory_row(memory: PeakMemory, available_bytes: int, limits: Limits) -> Row | Refusal:
    """Whether there is room for it: on a unified-memory box what it takes is taken from the GPU."""
    left = available_bytes - memory.total_bytes
    told = f"{memory}; of {_gib(available_bytes)} available {_gib(max(0, left))} would be left"
    if left < limits.memory_critical_bytes:
        return Refusal(
            reason=f"not enough memory: {told}, {_gib(limits.memory_critical_bytes)} must be",
            remedy="Convert when the run has ended, or on another machine.",
        )
    is_tight = left < limits.memory_warn_bytes
    return Row(label="Memory", text=told, level=Level.WARNING if is_tight else Level.INFO)


def setting_of(config: Mapping[str, object], *names: str) -> object:
    """A setting of the model, or of its language part."""
    text = config.get("text_config")
    for part in (config, text if isinstance(text, Mapping) else {}):
        for name in names:
            if part.get(name) is not None:
                return part[name]
    return None


def _width(dtype: str) -> int:
    """Bytes of one element: the first number in the name of a type counts its bits."""
    bits = re.search(r"\d+", dtype)
    return max(1, int(bits[0][:4]) // 8) if bits else 1


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
