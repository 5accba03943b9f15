"""Megatron checkpoints with a model's tensors in them, one rank, written without Megatron."""

from __future__ import annotations

import uuid
from pathlib import Path

from tui.demo import dcp, torchzip
from tui.demo.torchzip import Tensor
from tui.demo.weights import Model

NAMES = {
    "model.embed_tokens.weight": "embedding.word_embeddings.weight",
    "lm_head.weight": "output_layer.weight",
    "model.norm.weight": "decoder.final_layernorm.weight",
}
"""Hugging Face's to Megatron's. The layers' own are not fused here."""
PADDING = 64
"""Rows that its vocabulary has too many."""


def megatron_name(name: str) -> str:
    return NAMES.get(name, name.replace("model.layers.", "decoder.layers."))


def write(folder: Path, model: Model, iteration: int = 20) -> None:
    """Write one `iter_…` folder."""
    folder.mkdir(parents=True)
    items = [
        dcp.Item((megatron_name(name),), _padded(tensor) if "norm" not in name else tensor)
        if name in NAMES
        else dcp.Item((megatron_name(name),), tensor)
        for name, tensor in model.tensors(iteration)
    ]
    moment = dcp.Item(("optimizer", "state", "exp_avg", "w"), Tensor(bytes(24), (2, 3)))
    extra = dcp.Item(("decoder", "layers", "mlp", "_extra_state"), "nothing")
    write_dcp(folder, [*items, moment, extra])
    (folder / "common.pt").write_bytes(torchzip.saved_value({"iteration": iteration}))
    (folder / "metadata.json").write_text('{"sharded_backend": "torch_dist"}')


def write_dcp(folder: Path, items: list[dcp.Item]) -> None:
    """A shard and its index."""
    extents, offset = [], 0
    with (folder / dcp.SHARD).open("wb") as shard:
        for item in dcp.in_file_order(items):
            raw = dcp.serialised(item)
            shard.write(raw)
            extents.append(dcp.Extent(item, offset, len(raw)))
            offset += len(raw)
    (folder / dcp.INDEX).write_bytes(dcp.index(items, extents, folder, uuid.uuid4()))


def _padded(tensor: Tensor) -> Tensor:
    rows, width = tensor.shape
    return Tensor(bytes(tensor.raw) + bytes(4 * PADDING * width), (rows + PADDING, width))
