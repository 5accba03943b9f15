"""A program: real torch writes a checkpoint's parts as `argv[2]` ranks on gloo, below `argv[1]`.

`mixed`: what a single process may hold; `model` and `optimizer`: FSDP2 after one step, with tensors
that do not divide by the ranks; `idle`: one object, so that ranks have nothing to write; `threads`:
several files a rank; `grid`: sharded along two axes.
"""

from __future__ import annotations

import sys
import warnings
from collections import OrderedDict
from pathlib import Path
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_model_state_dict, get_optimizer_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.distributed.tensor import DTensor, Shard, distribute_tensor


def mixed() -> dict[str, Any]:
    dtypes = ("float32", "bfloat16", "float16", "float64", "int64", "uint8", "bool", "complex64")
    eight_bit = torch.ones(7, 5).to(torch.float8_e4m3fn)
    return {
        "dtypes": {name: torch.ones(3, 4).to(getattr(torch, name)) for name in dtypes},
        "eight bit": eight_bit,
        "scalar": torch.tensor(2.5),
        "empty": torch.empty(0),
        "no rows": torch.empty(0, 8),
        "view": torch.arange(100.0).reshape(10, 10)[2:4, ::3],
        "dots.in.name": {"ü €": torch.ones(2), 7: torch.ones(1)},
        "list": [torch.ones(3), {"deep": [1, "two", None]}, (torch.zeros(2),)],
        "object": {"lr": 1e-6, "step": 4, "big": 2**70, "path": Path("/a/b")},
        "long": {"k" * 300: torch.ones(2)},
    }


def small() -> Any:
    layers = {
        "embed": nn.Embedding(11, 6),
        "down": nn.Linear(6, 1),
        "norm": nn.LayerNorm(1),
        "head": nn.Linear(1, 5, bias=False),
    }
    model = nn.Sequential(OrderedDict(layers))
    model.register_buffer("seen", torch.tensor(3, dtype=torch.int64))
    return model


def sharded(world: int) -> tuple[dict[str, Any], dict[str, Any]]:
    torch.manual_seed(0)
    model = small()
    fully_shard(model, mesh=init_device_mesh("cpu", (world,)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
    model(torch.arange(4)).sum().backward()
    optimizer.step()
    return get_model_state_dict(model), get_optimizer_state_dict(model, optimizer)


def grid(world: int) -> dict[str, DTensor]:
    mesh = init_device_mesh("cpu", (world, 1), mesh_dim_names=("rows", "columns"))
    whole = torch.arange(70.0).reshape(7, 10)
    return {
        "rows": distribute_tensor(whole, mesh, [Shard(0), Shard(1)]),
        "columns": distribute_tensor(whole, mesh, [Shard(1), Shard(0)]),
    }


def main() -> None:
    root, world, rank, rendezvous = (
        Path(sys.argv[1]),
        int(sys.argv[2]),
        int(sys.argv[3]),
        sys.argv[4],
    )
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    dist.init_process_group("gloo", init_method=f"file://{rendezvous}", rank=rank, world_size=world)
    model, optimizer = sharded(world)
    dcp.save(mixed(), checkpoint_id=root / "mixed")
    dcp.save({"model_state": {"model": model}}, checkpoint_id=root / "model")
    dcp.save({"optim_state": {"optim": optimizer}}, checkpoint_id=root / "optimizer")
    dcp.save({"grid": grid(world)}, checkpoint_id=root / "grid")
    dcp.save({"lr_scheduler_state": {"lr": [1e-6]}}, checkpoint_id=root / "idle")
    writer = dcp.FileSystemWriter(root / "threads", thread_count=3)
    dcp.save({"model_state": {"model": model}, "extra": mixed()}, storage_writer=writer)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
