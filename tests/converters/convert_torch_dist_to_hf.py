"""Stands in for Miles' converter of Megatron checkpoints, without torch and Megatron.

It writes the index of its shards before the shards, and numbers these from 0, as that does. What it
does wrong is named in CONVERTER_FAULT.
"""

from __future__ import annotations

import argparse
import json
import os
import signal
from pathlib import Path

from megatron_tree import NAMES

from tui.demo import convert, dcp_reading, safetensors
from tui.demo.convert import say
from tui.demo.torchzip import Tensor

FAULT = os.environ.get("CONVERTER_FAULT", "")
SHARDS = 3


def main() -> None:
    given = parsed()
    if given.output_dir.exists() and not given.force:
        raise ValueError(
            f"Output directory {given.output_dir} already exists. Use --force to overwrite it."
        )
    say(f"loading model from {given.input_dir}")
    (given.input_dir / "common.pt").read_bytes()
    tensors = {
        key: tensor
        for key, tensor in dcp_reading.read(given.input_dir).items()
        if "optimizer" not in key and "_state" not in key
    }
    for key in tensors:
        say(f"find {key} in torch_dist ckpt")
    say("model loaded in 0.10 sec.")
    weights = {hf_name(key): cut(tensor, given.vocab_size) for key, tensor in tensors.items()}
    if FAULT == "not all written":
        del weights["model.norm.weight"]
    say(f"start saving to {given.output_dir}")
    given.output_dir.mkdir(parents=True, exist_ok=True)
    write(weights, given.output_dir)
    convert.copy_assets(given.origin_hf_dir, given.output_dir)


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--input-dir", "--output-dir", "--origin-hf-dir"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("--vocab-size", type=int)
    parser.add_argument("-f", "--force", action="store_true")
    return parser.parse_args()


def hf_name(key: str) -> str:
    back = {megatron: name for name, megatron in NAMES.items()}
    return back.get(key, key.replace("decoder.layers.", "model.layers."))


def cut(tensor: Tensor, rows: int | None) -> Tensor:
    """Without the rows that pad the vocabulary."""
    if rows is None or len(tensor.shape) != 2 or not rows < tensor.shape[0] <= rows + 64:
        return tensor
    width = tensor.shape[1]
    return Tensor(tensor.raw[: 4 * rows * width], (rows, width))


def write(weights: dict[str, Tensor], output: Path) -> None:
    names = list(weights)
    parts = [names[number::SHARDS] for number in range(SHARDS)]
    files = [f"model-{number:05d}-of-{SHARDS:05d}.safetensors" for number in range(SHARDS)]
    placed = {name: file for file, part in zip(files, parts, strict=True) for name in part}
    index = output / "model.safetensors.index.json"
    index.write_text(json.dumps({"metadata": {"total_size": 0}, "weight_map": placed}))
    say(f"{index} saved.")
    for file, part in zip(files, parts, strict=True):
        if FAULT == "killed" and file == files[-1]:
            os.kill(os.getpid(), signal.SIGKILL)
        safetensors.write(output / file, {name: weights[name] for name in part})
        say(f"{file} saved in 0.10 sec.")


if __name__ == "__main__":
    main()
