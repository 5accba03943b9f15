"""The tensors of one folder that `dcp` wrote, or torch from a single rank."""

from __future__ import annotations

import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

from tui.demo.dcp import INDEX
from tui.demo.torchzip import Tensor


def read(folder: Path) -> dict[str, Tensor]:
    """Key → tensor, in the order of the state dict; plain values are left out."""
    whole = _Unpickler(io.BytesIO((folder / INDEX).read_bytes())).load().state
    places = {key.state["fqn"]: place.state for key, place in whole["storage_data"].items()}
    return {
        key: _tensor(folder, described.state, places[key])
        for key, described in whole["state_dict_metadata"].items()
        if described.state is not None
    }


def _tensor(folder: Path, described: dict[str, Any], place: dict[str, Any]) -> Tensor:
    with (folder / place["relative_path"]).open("rb") as shard:
        shard.seek(place["offset"])
        saved = io.BytesIO(shard.read(place["length"]))
    with zipfile.ZipFile(saved) as records:
        raw = records.read("archive/data/0")
    dtype, shape = described["properties"].state[0], described["size"].arguments[0]
    return Tensor(raw, shape, dtype.__name__)


class _Inert:
    """Stands in for an object of torch's: keeps what it was made of, and does nothing."""

    state: Any = None

    def __init__(self, *arguments: Any) -> None:
        self.arguments = arguments

    def __setstate__(self, state: Any) -> None:
        self.state = state


class _Unpickler(pickle.Unpickler):
    """Imports nothing: every class and function of an index is an inert one of its name."""

    def find_class(self, module: str, name: str) -> type[_Inert]:  # noqa: ARG002 - as pickle calls it
        return type(name, (_Inert,), {})
