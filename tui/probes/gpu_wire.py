"""The GPU reader's answer as one line of JSON, both ways."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import asdict
from typing import Any, TypeVar

from tui.model.gpu import Gpu, GpuProcess, GpuReport
from tui.model.reading import Absence, Known, Reading, Unknown

T = TypeVar("T")

VALUES: Mapping[str, Callable[[Any], Any]] = {
    "utilisation_ratio": float,
    "power_w": float,
    "power_limit_w": float,
    "sm_clock_mhz": float,
    "temperature_c": float,
    "temperature_margin_c": float,
    "memory_total_bytes": int,
    "memory_used_bytes": int,
    "throttle_reasons": tuple,
    "thermal_slowdown_ratio": float,
}
"""The readings of a `Gpu` but its processes, and what makes each from a JSON value."""

DECODING_ERRORS = (ValueError, TypeError, KeyError, AttributeError)
"""What a line that is no answer makes `decoded` raise."""


def encoded(report: Reading[GpuReport]) -> str:
    """One line, without its end."""
    return json.dumps(asdict(report))


def decoded(line: str | bytes) -> Reading[GpuReport]:
    """The report of one line; raises one of `DECODING_ERRORS` when it holds none."""
    return _reading(json.loads(line), _report)


def _reading(wire: Mapping[str, Any], value: Callable[[Any], T]) -> Reading[T]:
    if "value" in wire:
        return Known(value=value(wire["value"]), at=float(wire["at"]))
    return Unknown(why=Absence(wire["why"]), reason=wire["reason"], at=float(wire["at"]))


def _report(wire: Mapping[str, Any]) -> GpuReport:
    return GpuReport(
        driver_version=wire["driver_version"],
        devices=tuple(map(_gpu, wire["devices"])),
        library=wire["library"],
        warnings=tuple(wire["warnings"]),
    )


def _gpu(wire: Mapping[str, Any]) -> Gpu:
    return Gpu(
        index=wire["index"],
        name=wire["name"],
        uuid=wire["uuid"],
        unified=wire["unified"],
        processes=_reading(wire["processes"], _processes),
        **{field: _reading(wire[field], value) for field, value in VALUES.items()},
    )


def _processes(wire: list[Mapping[str, Any]]) -> tuple[GpuProcess, ...]:
    return tuple(
        GpuProcess(
            pid=one["pid"], name=one["name"], memory_bytes=_reading(one["memory_bytes"], int)
        )
        for one in wire
    )
