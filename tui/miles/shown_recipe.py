"""A recipe as it may be shown: on the screen, in JSON, in a dry run."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterable, Iterator
from typing import Any

from tui.miles.secrets import MASK, is_secret_name, masked_text, masked_words, secret_values
from tui.model.recipe import Recipe

_TELLING = re.compile(
    r"(?:MILES|SLIME|SGLANG|RAY|NCCL|CUDA|TORCH|PYTORCH|PYTHON|OMP|NVTE|NVIDIA)_?\w*|.*_ARGS"
)
"""Variables whose values say something about the run. Of all others only the name is shown."""
_SHORTEST = 6
"""A shorter secret may be part of any word."""


def shown(recipe: Recipe) -> tuple[tuple[str, str], ...]:
    """What there is to say about it, as (label, text), with every secret masked.

    A secret that some name gives away is masked wherever else it stands, too.
    """
    secrets = sorted({each for each in _secrets(recipe) if len(each) >= _SHORTEST}, key=len)
    rows = []
    for label, text in _rows(recipe):
        for secret in reversed(secrets):
            text = text.replace(secret, MASK)
        if text:
            rows.append((label, text))
    return tuple(rows)


def _rows(recipe: Recipe) -> Iterator[tuple[str, str]]:
    runtime_env = _object(recipe.runtime_env)
    variables = runtime_env.pop("env_vars", None)
    yield "how", recipe.kind.value
    yield "known from", masked_text(recipe.source)
    yield "command", shlex.join(masked_words(recipe.argv))
    yield "entrypoint", masked_text(recipe.entrypoint)
    yield "environment", _environment(recipe.environment or ())
    yield "job's environment", _environment(_pairs(variables))
    yield "job's runtime", masked_text(json.dumps(runtime_env)) if runtime_env else ""
    yield "job's metadata", ", ".join(_assigned(*pair) for pair in recipe.metadata)
    yield "folder", masked_text(recipe.cwd)
    yield "log", masked_text(recipe.log)
    yield "container", recipe.container_name
    yield "mounts", ", ".join(f"{here} at {there}" for here, there in recipe.mounts)
    yield "Ray", masked_text(recipe.address)
    for line in recipe.missing:
        yield "not known", masked_text(line)


def _environment(pairs: Iterable[tuple[str, str]]) -> str:
    return " ".join(
        _assigned(name, value) if _TELLING.fullmatch(name) else name for name, value in pairs
    )


def _assigned(name: str, value: str) -> str:
    return f"{name}={MASK if is_secret_name(name) else shlex.quote(masked_text(value))}"


def _secrets(recipe: Recipe) -> Iterator[str]:
    spec, runtime_env = _object(recipe.container_spec), _object(recipe.runtime_env)
    config = spec.get("Config")
    entries = config.get("Env") if isinstance(config, dict) else None
    assigned = (
        *(recipe.environment or ()),
        *_pairs(runtime_env.get("env_vars")),
        *recipe.metadata,
        *(str(entry).partition("=")[::2] for entry in entries or ()),
    )
    words = (f"{name}={value}" for name, value in assigned)
    return secret_values((*words, *recipe.argv, recipe.entrypoint, recipe.runtime_env))


def _pairs(value: object) -> tuple[tuple[str, str], ...]:
    if not isinstance(value, dict):
        return ()
    return tuple((str(name), str(each)) for name, each in value.items())


def _object(text: str) -> dict[str, Any]:
    try:
        value = json.loads(text)
    except ValueError:
        return {}
    return value if isinstance(value, dict) else {}
