"""Frozen dataclasses as JSON values, and back by their annotations.

Numbers that JSON has no word for are the strings "nan", "inf" and "-inf". A reading is
`{"value": …, "at": …}` or `{"why": …, "reason": …, "at": …}`.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from enum import Enum
from functools import cache
from typing import Any

from tui.model.reading import Known, Unknown

_STRANGE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def encoded(value: Any) -> Any:
    """The value as what `json` writes."""
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return {field.name: encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [encoded(item) for item in value]
    if isinstance(value, Mapping):
        return {key: encoded(item) for key, item in value.items()}
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def decoded(value: Any, hint: Any) -> Any:
    """What `encoded` made this of, when its annotation is `hint`.

    Raises:
        ValueError, KeyError, TypeError: it does not fit.
    """
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _decoded_union(value, arguments)
    if origin is Known:
        return Known(value=decoded(value["value"], arguments[0]), at=decoded(value["at"], float))
    if origin is tuple:
        return _decoded_tuple(value, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return {key: decoded(item, arguments[1]) for key, item in value.items()}
    if hint is float:
        return _STRANGE[value] if isinstance(value, str) else float(value)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = _hints(hint)
        return hint(**{name: decoded(item, hints[name]) for name, item in value.items()})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return value


def _decoded_union(value: Any, options: tuple[Any, ...]) -> Any:
    if value is None:
        return None
    if Unknown in options:
        reading = next(option for option in options if option is not Unknown)
        is_absent = isinstance(value, Mapping) and "why" in value
        return decoded(value, Unknown if is_absent else reading)
    (option,) = (option for option in options if option is not types.NoneType)
    return decoded(value, option)


def _decoded_tuple(value: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(decoded(item, arguments[0]) for item in value)
    return tuple(decoded(item, hint) for item, hint in zip(value, arguments, strict=True))
