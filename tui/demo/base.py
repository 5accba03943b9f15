"""The base model a run begins with: a Hugging Face folder, small but whole."""

from __future__ import annotations

import json
from pathlib import Path

from tui.demo import safetensors
from tui.demo.settings import Settings
from tui.demo.weights import LAYERS, Model

_TOKENIZER = {"version": "1.0", "model": {"type": "BPE", "vocab": {}, "merges": []}}


def provide(settings: Settings) -> None:
    """Write the run's own base model, unless it is there or another was named."""
    folder = settings.base
    if settings.hf_checkpoint == str(folder) and not folder.exists():
        write(folder, Model(total_mb=settings.model_mb, seed=settings.seed))


def write(folder: Path, model: Model) -> None:
    """Write a new folder, all at once for whoever looks."""
    unfinished = folder.with_name(folder.name + ".tmp")
    unfinished.mkdir(parents=True, exist_ok=True)
    weights = {name: safetensors.as_bfloat16(tensor) for name, tensor in model.tensors(0)}
    safetensors.write(unfinished / "model.safetensors", weights)
    for name, value in (
        ("config.json", _config(model)),
        ("generation_config.json", {"max_new_tokens": 1024}),
        ("tokenizer.json", _TOKENIZER),
        ("tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer"}),
    ):
        (unfinished / name).write_text(json.dumps(value, indent=2) + "\n")
    unfinished.rename(folder)


def _config(model: Model) -> dict[str, object]:
    vocabulary, width = model.shapes()["model.embed_tokens.weight"]
    return {
        "architectures": ["Qwen3ForCausalLM"],
        "model_type": "qwen3",
        "dtype": "bfloat16",
        "hidden_size": width,
        "intermediate_size": 2 * width,
        "num_hidden_layers": LAYERS,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "head_dim": width // 4,
        "vocab_size": vocabulary,
        "tie_word_embeddings": False,
        "hidden_act": "silu",
        "rms_norm_eps": 1e-06,
    }
