"""The clock of the box was set: moments that were noted before move along, so that ages stay right.

Silence is the age of the last sign of life. Without this a clock that jumps ahead by an hour makes
an hour of silence, and one that is set back hides all silence for as long.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import fields, is_dataclass, replace
from typing import Any, TypeVar

from tui.model.reading import Known, Unknown
from tui.model.series import Series
from tui.model.snapshot import Snapshot

T = TypeVar("T")
_NAMES, _ENDINGS = frozenset({"at", "since"}), ("_at", "_since")
_TOLD = ("story", "engines", "lines", "verdict", "alert_log", "missed")
"""Parts whose moments are all ours, or the log's by our clock."""
_READINGS = ("gpus", "memory", "disk", "checkpoints", "container", "processes")
"""Here only when it was read is ours: what was read has times of its own, and is read again."""


def stepped(snapshot: Snapshot, at: float, by_s: float) -> Snapshot:
    """The snapshot by the clock as it is now, which may say less than it said before."""
    changes: dict[str, Any] = {name: _moved(getattr(snapshot, name), by_s) for name in _TOLD}
    for name in _READINGS:
        reading: Known[Any] | Unknown = getattr(snapshot, name)
        changes[name] = replace(reading, at=_later(reading.at, by_s))
    log = replace(snapshot.log, read_at=_later(snapshot.log.read_at, by_s))
    history = {key: _along(series, by_s) for key, series in snapshot.history.items()}
    return replace(snapshot, now=at, log=log, history=history, **changes)


def _moved(value: T, by_s: float) -> T:
    if isinstance(value, tuple):
        return type(value)(_moved(item, by_s) for item in value)
    if isinstance(value, Series):
        return value  # of metrics, by their step
    if isinstance(value, Mapping):
        return {key: _moved(item, by_s) for key, item in value.items()}  # type: ignore[return-value]
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **dict(_changes(value, by_s)))
    return value


def _changes(value: Any, by_s: float) -> Iterator[tuple[str, Any]]:
    for field in fields(value):
        part = getattr(value, field.name)
        if isinstance(part, float) and (field.name in _NAMES or field.name.endswith(_ENDINGS)):
            yield field.name, _later(part, by_s)
        elif not isinstance(part, str | int | float | None):
            yield field.name, _moved(part, by_s)


def _later(moment: float, by_s: float) -> float:
    """0.0 is no moment: it never was."""
    return moment + by_s if moment else moment


def _along(series: Series, by_s: float) -> Series:
    return replace(series, points=tuple((x + by_s, y) for x, y in series.points))
