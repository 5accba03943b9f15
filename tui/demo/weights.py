"""A small Qwen3: its tensors, optimiser and scheduler as state dicts, values drawn from the seed.

Values differ from checkpoint to checkpoint; they are one block of noise, read from a place that
depends on tensor and iteration, because drawing each value would take longer than the save.
"""

from __future__ import annotations

import math
import random
import struct
import zlib
from array import array
from collections.abc import Iterator

from tui.demo.dcp import Item
from tui.demo.torchzip import Tensor

LAYERS = 2
_BLOCK = 4096
_BYTES_AT_UNIT_WIDTH = 1.76e6


class Model:
    """Shapes for a wanted checkpoint size, and the state at any iteration."""

    def __init__(self, *, total_mb: float, seed: int) -> None:
        self._scale = max(1, round(math.sqrt(total_mb * 1e6 / _BYTES_AT_UNIT_WIDTH)))
        draw = random.Random(f"{seed}:weights")  # noqa: S311 - noise, not a secret
        self._noise = array("f", (draw.gauss(0.0, 0.02) for _ in range(_BLOCK)))
        self._around_one = array("f", (1.0 + value for value in self._noise))
        self._squares = array("f", (value * value for value in self._noise))

    def shapes(self) -> dict[str, tuple[int, ...]]:
        """Every parameter of the model, in the order the state dict has."""
        width = 64 * self._scale
        shapes: dict[str, tuple[int, ...]] = {"model.embed_tokens.weight": (8 * width, width)}
        for layer in range(LAYERS):
            for name, shape in _layer(width).items():
                shapes[f"model.layers.{layer}.{name}.weight"] = shape
        return shapes | {"model.norm.weight": (width,), "lm_head.weight": (8 * width, width)}

    def tensors(self, iteration: int) -> Iterator[tuple[str, Tensor]]:
        """Every parameter and its value; 0 is the base model."""
        for name, shape in self.shapes().items():
            yield name, self._drawn(name, shape, iteration)

    def model_items(self, iteration: int) -> tuple[Item, ...]:
        return tuple(
            Item(("model_state", "model", name), tensor) for name, tensor in self.tensors(iteration)
        )

    def optimizer_items(self, iteration: int) -> tuple[Item, ...]:
        root = ("optim_state", "optim")
        state = tuple(
            Item((*root, "state", name, key), tensor)
            for name, shape in self.shapes().items()
            for key, tensor in self._moments(name, shape, iteration)
        )
        group: dict[str, object] = _ADAM | {"params": list(self.shapes())}
        return state + tuple(
            Item((*root, "param_groups", 0, key), value) for key, value in group.items()
        )

    def scheduler_items(self, iteration: int) -> tuple[Item, ...]:
        state: dict[str, object] = {
            "base_lrs": [1e-06],
            "last_epoch": iteration,
            "_step_count": iteration + 1,
            "_is_initial": False,
            "_get_lr_called_within_step": False,
            "_last_lr": [1e-06],
            "lr_lambdas": [None],
        }
        root = ("lr_scheduler_state", "lr_scheduler")
        return tuple(Item((*root, key), value) for key, value in state.items())

    def _moments(
        self, name: str, shape: tuple[int, ...], iteration: int
    ) -> Iterator[tuple[str, Tensor]]:
        yield "step", Tensor(struct.pack("<f", iteration), ())
        yield "exp_avg", _tiled(self._noise, f"{name}.exp_avg", shape, iteration)
        yield "exp_avg_sq", _tiled(self._squares, f"{name}.exp_avg_sq", shape, iteration)

    def _drawn(self, name: str, shape: tuple[int, ...], iteration: int) -> Tensor:
        return _tiled(self._around_one if "norm" in name else self._noise, name, shape, iteration)


_ADAM: dict[str, object] = {
    "lr": 1e-06,
    "betas": (0.9, 0.98),
    "eps": 1e-08,
    "weight_decay": 0.1,
    "amsgrad": False,
    "maximize": False,
    "foreach": None,
    "capturable": False,
    "differentiable": False,
    "fused": None,
    "decoupled_weight_decay": True,
    "initial_lr": 1e-06,
}


def _layer(width: int) -> dict[str, tuple[int, ...]]:
    return {
        "self_attn.q_proj": (width, width),
        "self_attn.k_proj": (width // 2, width),
        "self_attn.v_proj": (width // 2, width),
        "self_attn.o_proj": (width, width),
        "self_attn.q_norm": (width // 4,),
        "self_attn.k_norm": (width // 4,),
        "mlp.gate_proj": (2 * width, width),
        "mlp.up_proj": (2 * width, width),
        "mlp.down_proj": (width, 2 * width),
        "input_layernorm": (width,),
        "post_attention_layernorm": (width,),
    }


def _tiled(block: array[float], name: str, shape: tuple[int, ...], iteration: int) -> Tensor:
    wanted = 4 * math.prod(shape)
    raw = memoryview(block).cast("B")
    start = 4 * (zlib.crc32(f"{iteration}:{name}".encode()) % _BLOCK)
    turned = bytes(raw[start:]) + bytes(raw[:start])
    return Tensor((turned * (wanted // len(turned) + 1))[:wanted], shape)
