"""A snapshot as a versioned JSON document, and back.

Field names are those of the model, quantities end in their unit. A reading is
`{"value": …, "at": …}` or `{"why": …, "reason": …, "at": …}`. Numbers that JSON has no word for
are the strings "nan", "inf" and "-inf". Any change that could break a script raises `VERSION`.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from functools import cache
from typing import Any

from tui.errors import ExitCode
from tui.model.launch import ListedRun
from tui.model.reading import Known, Unknown
from tui.model.snapshot import RunState, Snapshot

VERSION = 1
_STRANGE = {"nan": math.nan, "inf": math.inf, "-inf": -math.inf}


def exit_code_of(snapshot: Snapshot) -> ExitCode:
    """What `status` and `explain` tell the shell about this snapshot."""
    match snapshot.verdict.state:
        case RunState.STALLED:
            return ExitCode.STALLED
        case RunState.FAILED | RunState.CRASHED:
            return ExitCode.ENDED_BADLY
        case RunState.UNKNOWN:
            return ExitCode.UNKNOWN
        case RunState.FINISHED | RunState.STOPPED:
            return ExitCode.WELL
        case RunState.STARTING | RunState.RUNNING | RunState.STOPPING:
            return ExitCode.DEGRADED if snapshot.verdict.degraded else ExitCode.WELL


def document(snapshot: Snapshot) -> dict[str, Any]:
    """The document of a snapshot: a short summary first, then everything."""
    verdict = snapshot.verdict
    return {
        "milepost": VERSION,
        "summary": {
            "state": verdict.state.value,
            "degraded": list(verdict.degraded),
            "reason": verdict.reason,
            "rollout": snapshot.story.rollout,
            "step": snapshot.story.step,
            "num_rollout": snapshot.story.launch.num_rollout,
            "phase": snapshot.story.phase.name if snapshot.story.phase else None,
            "exit_code": int(exit_code_of(snapshot)),
        },
        "snapshot": _encoded(snapshot),
    }


def status_document(snapshot: Snapshot) -> dict[str, Any]:
    """The document without what only a screen needs: log lines and sampled history."""
    story = replace(snapshot.story, series={})
    return document(replace(snapshot, lines=(), history={}, story=story))


def runs_document(
    seen: Sequence[tuple[ListedRun, Snapshot]], notes: Sequence[str]
) -> dict[str, Any]:
    """The runs of a machine, each with what a glance at it told."""
    return {
        "milepost": VERSION,
        "runs": [
            {
                **_encoded(run),
                "verdict": snapshot.verdict.state.value,
                "rollout": snapshot.story.rollout,
                "num_rollout": snapshot.story.launch.num_rollout,
                "engines": [engine.url for engine in snapshot.story.engines if engine.url],
            }
            for run, snapshot in seen
        ],
        "looked_for": list(notes),
    }


def checkpoints_document(snapshot: Snapshot) -> dict[str, Any]:
    """A save folder, what a restart would load from it, and the disk it is on."""
    return {
        "milepost": VERSION,
        "would_load": _encoded(snapshot.verdict.would_load),
        "tree": _encoded(snapshot.checkpoints),
        "disk": _encoded(snapshot.disk),
    }


def snapshot_of(parsed: Mapping[str, Any]) -> Snapshot:
    """The snapshot of a document.

    Raises:
        ValueError: the document has another version, or is none.
    """
    if parsed.get("milepost") != VERSION:
        raise ValueError(f"not a milepost document of version {VERSION}")
    snapshot = _decoded(parsed["snapshot"], Snapshot)
    assert isinstance(snapshot, Snapshot)
    return snapshot


def _encoded(value: Any) -> Any:
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return {field.name: _encoded(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple):
        return [_encoded(item) for item in value]
    if isinstance(value, Mapping):
        return {key: _encoded(item) for key, item in value.items()}
    return value


@cache
def _hints(kind: type) -> dict[str, Any]:
    return typing.get_type_hints(kind)


def _decoded(value: Any, hint: Any) -> Any:
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin in (typing.Union, types.UnionType):
        return _decoded_union(value, arguments)
    if origin is Known:
        return Known(value=_decoded(value["value"], arguments[0]), at=_decoded(value["at"], float))
    if origin is tuple:
        return _decoded_tuple(value, arguments)
    if origin is not None and issubclass(origin, Mapping):
        return {key: _decoded(item, arguments[1]) for key, item in value.items()}
    if hint is float:
        return _STRANGE[value] if isinstance(value, str) else float(value)
    if isinstance(hint, type) and is_dataclass(hint):
        hints = _hints(hint)
        return hint(**{name: _decoded(item, hints[name]) for name, item in value.items()})
    if isinstance(hint, type) and issubclass(hint, Enum):
        return hint(value)
    return value


def _decoded_union(value: Any, options: tuple[Any, ...]) -> Any:
    if value is None:
        return None
    if Unknown in options:
        reading = next(option for option in options if option is not Unknown)
        is_absent = isinstance(value, Mapping) and "why" in value
        return _decoded(value, Unknown if is_absent else reading)
    (option,) = (option for option in options if option is not types.NoneType)
    return _decoded(value, option)


def _decoded_tuple(value: Any, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
    if len(arguments) == 2 and arguments[1] is Ellipsis:
        return tuple(_decoded(item, arguments[0]) for item in value)
    return tuple(_decoded(item, hint) for item, hint in zip(value, arguments, strict=True))
