"""`python -m tui.demo.convert`: a checkpoint of the demo as a Hugging Face folder.

Called, and talking, as Miles' tools/convert_fsdp_to_hf.py; without torch. In place of building the
model it takes the names of its tensors from the origin's weights.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from tui.demo import dcp_reading, safetensors
from tui.demo.torchzip import Tensor

_PREFIXES = ("model_state.model.", "model_state.", "model.", "module.", "")


def main(argv: Sequence[str] | None = None) -> None:
    """Convert; what goes wrong is raised, as there."""
    given = parsed(argv)
    within = given.input_dir / "model"
    folder = within if within.is_dir() else given.input_dir
    _convert(folder, given.output_dir, given.origin_hf_dir)
    copy_assets(given.origin_hf_dir, given.output_dir)


def parsed(argv: Sequence[str] | None) -> argparse.Namespace:
    """The command line; an output that is there is refused, as there."""
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("--input-dir", "--output-dir", "--origin-hf-dir"):
        parser.add_argument(name, type=Path, required=True)
    parser.add_argument("-f", "--force", action="store_true")
    given = parser.parse_args(argv)
    if given.output_dir.exists() and not given.force:
        raise ValueError(
            f"Output directory {given.output_dir} already exists. Use --force to overwrite it."
        )
    return given


def _convert(folder: Path, output: Path, origin: Path) -> None:
    say(f"loading FSDP model from {folder}")
    begun = time.monotonic()
    tensors = dcp_reading.read(folder)
    for key in tensors:
        say(f"find {key} in torch_dist ckpt")
    say(f"FSDP model loaded in {time.monotonic() - begun:.2f} sec.")
    targets = safetensors.names_in(origin / "model.safetensors")
    prefix, matched = best_prefix(tensors, frozenset(targets))
    say(
        f"Using prefix '{prefix}' for key mapping. Matched {matched}/{len(tensors)} parameter keys."
    )
    named = {key.removeprefix(prefix): tensor for key, tensor in tensors.items()}
    missing = [name for name in targets if name not in named]
    unexpected = [name for name in named if name not in targets]
    say(f"Missing keys: {missing}\nUnexpected keys: {unexpected}")
    output.mkdir(parents=True, exist_ok=True)
    kept = {name: tensor for name, tensor in named.items() if name not in unexpected}
    safetensors.write(output / "model.safetensors", _typed(kept, origin))
    say(f"Model weights saved to {output}")


def best_prefix(keys: Iterable[str], targets: frozenset[str]) -> tuple[str, int]:
    """The one that leaves most keys with a place in the model, and how many those are."""
    counts = {
        prefix: len({key.removeprefix(prefix) for key in keys} & targets) for prefix in _PREFIXES
    }
    return max(counts.items(), key=lambda count: count[1])


def _typed(tensors: Mapping[str, Tensor], origin: Path) -> Mapping[str, Tensor]:
    """In the number type that the model is configured with."""
    dtype = json.loads((origin / "config.json").read_text())["dtype"]
    if dtype != "bfloat16":
        return tensors
    return {name: safetensors.as_bfloat16(tensor) for name, tensor in tensors.items()}


def copy_assets(origin: Path, output: Path) -> None:
    """Configuration and tokenizer, and whatever else lies there that is no weights."""
    for path in origin.iterdir():
        if path.name == "model.safetensors.index.json" or path.suffix == ".safetensors":
            continue
        if not path.is_file():
            say(f"Skip {path.name}, not a file.")
            continue
        say(f"copy from {path} to {output / path.name}")
        shutil.copy(path, output / path.name)


def say(text: str) -> None:
    """Print at once, as under `python -u`."""
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main()
