"""Stands in for Miles' converter of FSDP checkpoints, without torch.

It reads the checkpoint, and does one thing wrong: that named in CONVERTER_FAULT. With
CONVERTER_PAUSE_S it takes its time between the tensors that it finds.
"""

from __future__ import annotations

import errno
import json
import os
import signal
import time
from pathlib import Path

from tui.demo import convert, dcp_reading, safetensors
from tui.demo.convert import say
from tui.demo.torchzip import Tensor

FAULT = os.environ.get("CONVERTER_FAULT", "")
PAUSE_S = float(os.environ.get("CONVERTER_PAUSE_S", "0"))
HEAD, NORM = "lm_head.weight", "model.norm.weight"


def main() -> None:
    if FAULT == "no libraries":
        raise ModuleNotFoundError("No module named 'miles'")
    given = convert.parsed(None)
    tensors = read(given.input_dir / "model")
    weights = matched(tensors, given.origin_hf_dir / "model.safetensors")
    given.output_dir.mkdir(parents=True, exist_ok=True)
    write(weights, given.output_dir)
    say(f"Model weights saved to {given.output_dir}")
    convert.copy_assets(given.origin_hf_dir, given.output_dir)
    for fault, name in (("no tokenizer", "tokenizer.json"), ("no config", "config.json")):
        if fault == FAULT:
            (given.output_dir / name).unlink()


def read(folder: Path) -> dict[str, Tensor]:
    say(f"loading FSDP model from {folder}")
    tensors = dcp_reading.read(folder)
    for key in tensors:
        say(f"find {key} in torch_dist ckpt")
        time.sleep(PAUSE_S)
    if FAULT == "hangs":
        signal.pause()
    if FAULT == "no memory":
        raise RuntimeError(
            "[enforce fail at alloc_cpu.cpp:118] DefaultCPUAllocator: not enough memory"
        )
    say("FSDP model loaded in 1.23 sec.")
    return tensors


def matched(tensors: dict[str, Tensor], origin: Path) -> dict[str, Tensor]:
    """The weights of the model; what has none in the checkpoint keeps what it was made with."""
    whole = {key.removeprefix("model_state.model."): tensor for key, tensor in tensors.items()}
    lost = {"none matched": whole.keys(), "parts missing": {NORM, HEAD}, "tied": {HEAD}}
    kept = {
        f"elsewhere.{key}" if FAULT == "none matched" else key: tensor
        for key, tensor in tensors.items()
        if FAULT == "none matched" or not key.endswith(tuple(lost.get(FAULT, ("no key",))))
    }
    targets = safetensors.names_in(origin)
    prefix, count = convert.best_prefix(kept, frozenset(targets))
    named = {key.removeprefix(prefix): tensor for key, tensor in kept.items()}
    say(f"Using prefix '{prefix}' for key mapping. Matched {count}/{len(kept)} parameter keys.")
    missing = [name for name in targets if name not in named]
    unexpected = [name for name in named if name not in targets]
    if FAULT == "untrained":
        raise ValueError(
            f"3 parameters have no weight in the checkpoint under prefix '{prefix}' "
            "and would be exported randomly initialized: ['a', 'b', 'c']. "
            "Unexpected checkpoint keys: []"
        )
    say(f"Missing keys: {missing}\nUnexpected keys: {unexpected}")
    return {name: whole[name] for name in targets if FAULT != "tied" or name != HEAD}


def write(weights: dict[str, Tensor], output: Path) -> None:
    """One file, or two and their index, in the order in which transformers writes them."""
    if FAULT == "not all written":
        del weights[NORM]
    if FAULT == "not finite":
        raw = bytearray(weights[NORM].raw)
        raw[4:8] = b"\0\0\x80\x7f"
        weights[NORM] = Tensor(raw, weights[NORM].shape)
    if FAULT in ("shards", "shard missing", "index missing"):
        write_shards(weights, output)
        return
    path = output / "model.safetensors"
    safetensors.write(path, weights)
    size = path.stat().st_size
    if FAULT in ("killed", "disk full", "cut short"):
        os.truncate(path, size - 100 if FAULT == "cut short" else size // 2)
    if FAULT == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    if FAULT == "disk full":
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def write_shards(weights: dict[str, Tensor], output: Path) -> None:
    names = sorted(weights)
    placed: dict[str, str] = {}
    for number in (1, 2):
        file = f"model-{number:05d}-of-00002.safetensors"
        own = names[number - 1 :: 2]
        safetensors.write(output / file, {name: weights[name] for name in own})
        placed |= dict.fromkeys(own, file)
    listed = {"metadata": {}, "weight_map": placed}
    (output / "model.safetensors.index.json").write_text(json.dumps(listed))
    if FAULT == "shard missing":
        (output / "model-00002-of-00002.safetensors").unlink()
    if FAULT == "index missing":
        (output / "model.safetensors.index.json").unlink()


if __name__ == "__main__":
    main()
