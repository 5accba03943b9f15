"""Does what Miles' converter of FSDP checkpoints does, with real torch and without transformers.

The model is built from the origin's tensors, random as it is there, and the checkpoint is loaded by
torch's own reader; so what is missing is missing as it is there, with exit code 0.
"""

from __future__ import annotations

import importlib.util
import json
import struct
import warnings
from pathlib import Path
from typing import Any

import torch
from torch.distributed import checkpoint as dcp
from torch.distributed.checkpoint.metadata import TensorStorageMetadata

from tui.demo import convert, safetensors
from tui.demo.convert import say
from tui.demo.torchzip import Tensor

HEAD, EMBEDDING = "lm_head.weight", "model.embed_tokens.weight"


def main() -> None:
    given = convert.parsed(None)
    folder = given.input_dir / "model"
    say(f"loading FSDP model from {folder}")
    state = loaded(folder)
    say("FSDP model loaded in 0.10 sec.")
    config = json.loads((given.origin_hf_dir / "config.json").read_text())
    model = built(given.origin_hf_dir / "model.safetensors", config)
    prefix, matched = convert.best_prefix(state, frozenset(model.state_dict()))
    say(f"Using prefix '{prefix}' for key mapping. Matched {matched}/{len(state)} parameter keys.")
    named = {key.removeprefix(prefix): tensor for key, tensor in state.items()}
    missing, unexpected = model.load_state_dict(named, strict=False)
    say(f"Missing keys: {missing}\nUnexpected keys: {unexpected}")
    given.output_dir.mkdir(parents=True, exist_ok=True)
    save(model, given.output_dir / "model.safetensors", is_tied=config["tie_word_embeddings"])
    say(f"Model weights saved to {given.output_dir}")
    convert.copy_assets(given.origin_hf_dir, given.output_dir)


def loaded(folder: Path) -> dict[str, torch.Tensor]:
    reader = dcp.FileSystemReader(folder)
    state = {}
    for key, described in reader.read_metadata().state_dict_metadata.items():
        say(f"find {key} in torch_dist ckpt")
        assert isinstance(described, TensorStorageMetadata)
        state[key] = torch.empty(described.size, dtype=described.properties.dtype)
    dcp.load(state, storage_reader=reader, no_dist=True)
    return state


def built(origin: Path, config: dict[str, Any]) -> torch.nn.Module:
    """Modules within modules, by the names of their parameters."""
    model = torch.nn.Module()
    dtype = getattr(torch, config["dtype"])
    for name, shape in shapes_in(origin).items():
        owner = model
        *path, last = name.split(".")
        for step in path:
            if step not in dict(owner.named_children()):
                owner.add_module(step, torch.nn.Module())
            owner = owner.get_submodule(step)
        owner.register_parameter(last, torch.nn.Parameter(torch.rand(shape, dtype=dtype)))
    if config["tie_word_embeddings"]:
        model.get_submodule("lm_head").weight = model.get_parameter(EMBEDDING)
    return model


def shapes_in(path: Path) -> dict[str, list[int]]:
    with path.open("rb") as file:
        header = json.loads(file.read(*struct.unpack("<Q", file.read(8))))
    return {name: entry["shape"] for name, entry in header.items() if name != "__metadata__"}


def save(model: torch.nn.Module, path: Path, *, is_tied: bool) -> None:
    """As transformers: of tied tensors the first is kept."""
    state = {
        name: tensor.detach()
        for name, tensor in model.state_dict().items()
        if not (is_tied and name == HEAD)
    }
    if importlib.util.find_spec("safetensors"):
        library = importlib.import_module("safetensors.torch")
        library.save_file(state, path, metadata={"format": "pt"})
    else:
        safetensors.write(path, {name: plain(tensor) for name, tensor in state.items()})


def plain(tensor: torch.Tensor) -> Tensor:
    raw = tensor.contiguous().view(torch.uint8).numpy().tobytes()
    return Tensor(raw, tuple(tensor.shape), str(tensor.dtype).removeprefix("torch."))


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    main()
