"""Any value of a model type at all, for properties: hostile text, nan, huge and negative numbers.

`anything(Snapshot)` follows the type hints, so a new field is covered the day it is written.
"""

from __future__ import annotations

import dataclasses
import enum
import math
import types
import typing
from collections.abc import Mapping
from typing import Any

from hypothesis import strategies as st

from tui.model.reading import Unknown
from tui.model.series import Durations, Series

_METRICS = (
    "rollout/raw_reward",
    "train/loss",
    "train/grad_norm",
    "train/kl_loss",
    "rollout/response_len/mean",
    "rollout/response_len/max",
    "rollout/weight_version/max",
    "perf/step_time",
)
_HISTORY = ("gpu0.utilisation_ratio", "gpu0.power_w", "memory.available_bytes")
_KEYS: Mapping[Any, tuple[str, ...]] = {
    float: _METRICS,
    Series: (*_METRICS, *_HISTORY),
    Durations: ("generate", "actor_train", "train_wait", "save", "no such phase"),
    Unknown: ("gpu", "engines", "log"),
    str: ("log", "container", "tracker"),
}
"""What mappings to values of a type are asked for."""

_TEXT = st.one_of(
    st.sampled_from(
        (
            "",
            "trainer",
            "http://192.0.2.2:15000",
            "\x1b[31mred\x1b]0;title\x07",
            "tab\tnul\x00bell\x07",
            "\u202egnirts\u202c \u200bzero\ufeff",
            "回答は四十二です" * 4,
            "👩‍🚀 e\u0301 \ud800",
            "[bold]markup[/bold]",
            "word " * 40,
            "x" * 300,
        )
    ),
    st.text(max_size=8),
)
_INT = st.one_of(
    st.just(0),
    st.integers(-3, 300),
    st.integers(-(2**62), 2**62),
    st.sampled_from((0, 2**37, 10**15)),
)
_FLOAT = st.one_of(
    st.floats(0, 1),
    st.floats(1.79e9, 1.8e9),
    st.floats(),
    st.sampled_from((0.0, -5.0, math.nan, math.inf, -math.inf, 1e300, -1e300, 1e-300)),
)


def anything(hint: Any) -> st.SearchStrategy[Any]:
    """Values of a type as it is written in a dataclass of `tui.model`."""
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return st.one_of([anything(arg) for arg in args])
    if origin is tuple:
        if args[-1] is Ellipsis:
            return st.lists(anything(args[0]), max_size=3).map(tuple)
        return st.tuples(*map(anything, args))
    if origin is Mapping:
        return st.dictionaries(st.sampled_from(_KEYS[args[1]]), anything(args[1]), max_size=6)
    if hint is Series:
        return st.builds(Series, points=st.lists(st.tuples(_FLOAT, _FLOAT), max_size=12).map(tuple))
    if dataclasses.is_dataclass(origin or hint):
        return _instances(origin or hint, args)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(list(hint))
    return {float: _FLOAT, int: _INT, str: _TEXT, bool: st.booleans(), type(None): st.none()}[hint]


def _instances(cls: Any, args: tuple[Any, ...]) -> st.SearchStrategy[Any]:
    hints = typing.get_type_hints(cls)
    chosen = {
        name: args[0] if isinstance(hint, typing.TypeVar) else hint for name, hint in hints.items()
    }
    return st.builds(cls, **{name: anything(hint) for name, hint in chosen.items()})
