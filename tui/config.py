"""What the user set, from `config.toml` and the command line. Unknown keys are refused.

A flag that was typed beats the file; the file beats the defaults.
"""

from __future__ import annotations

import difflib
import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from tui.errors import ConfigError
from tui.model.memory import GIB
from tui.model.snapshot import Limits


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardConfig:
    """What a guard does unless it is told otherwise."""

    act: str = "none"
    """The name of a policy."""
    notify: tuple[str, ...] = ()
    """Addresses of channels: secrets."""
    notify_command: str = ""
    limits: Mapping[str, Any] = field(default_factory=dict)
    """Of its deeds, by their field's name; those that were set."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Config:
    """All settings."""

    theme: str | None = None
    """None: chosen by the terminal."""
    ascii: bool = False
    mouse: bool = True
    interval_s: float = 1.0
    """Between two frames; probes have cadences of their own."""
    read_only: bool = False
    limits: Limits = Limits()
    keys: Mapping[str, str] = field(default_factory=dict)
    """Command name to keys."""
    guard: GuardConfig = GuardConfig()
    theme_folder: Path = Path()
    warnings: tuple[str, ...] = ()
    """What is wrong with the file itself."""


INTERVAL_LIMITS_S = (0.2, 60.0)

_PLAIN: Mapping[str, type | tuple[type, ...]] = {
    "theme": str,
    "ascii": bool,
    "mouse": bool,
    "interval_s": (int, float),
    "read_only": bool,
    "limits": dict,
    "keys": dict,
    "guard": dict,
}
LIMITS: Mapping[str, tuple[str, float]] = {
    "work_at_risk_s": ("work_at_risk_s", 1.0),
    "hours_between_failures": ("failure_interval_s", 3600.0),
    "memory_warn_gib": ("memory_warn_bytes", GIB),
    "memory_critical_gib": ("memory_critical_bytes", GIB),
    "memory_exhaust_s": ("memory_exhaust_s", 1.0),
    "stall_factor": ("stall_factor", 1.0),
    "stall_floor_s": ("stall_floor_s", 1.0),
    "engine_silent_s": ("engine_silent_s", 1.0),
}
"""Key in the file to field of `Limits` and the factor between their units."""
GUARD_LIMITS: Mapping[str, tuple[str, float]] = {
    "most_actions": ("most", 1.0),
    "window_hours": ("window_s", 3600.0),
    "first_wait_s": ("first_wait_s", 1.0),
}
"""The same for the limits of a guard's policy."""
_GUARD: Mapping[str, type] = {"act": str, "notify": list, "notify_command": str, "limits": dict}


def config_folder() -> Path:
    """`$XDG_CONFIG_HOME/milepost`, by default `~/.config/milepost`."""
    base = os.environ.get("XDG_CONFIG_HOME") or str(Path.home() / ".config")
    return Path(base) / "milepost"


def state_home() -> Path:
    """`$XDG_STATE_HOME/milepost`, by default `~/.local/state/milepost`: what outlives a run."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "milepost"


def load_config(path: Path | None = None) -> Config:
    """The configuration of the user's file; defaults where there is none.

    Raises:
        ConfigError: the file cannot be read, is no TOML, or holds what is not known.
    """
    file = path or config_folder() / "config.toml"
    base = Config(theme_folder=config_folder() / "themes")
    try:
        text = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        if path is not None:
            raise ConfigError(f"{file}: no such file") from None
        return base
    except (OSError, UnicodeDecodeError) as fault:
        raise ConfigError(f"{file}: cannot be read: {fault}") from fault
    try:
        given = tomllib.loads(text)
    except tomllib.TOMLDecodeError as fault:
        raise ConfigError(f"{file}: not valid TOML: {fault}") from fault
    return _config(base, given, file)


def _config(base: Config, given: Mapping[str, Any], file: Path) -> Config:
    for key, value in given.items():
        _refuse_unknown(key, _PLAIN, file, "")
        kind = _PLAIN[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise ConfigError(f"{file}: {key} = {value!r} has the wrong type")
    plain = {key: given[key] for key in ("theme", "ascii", "mouse", "read_only") if key in given}
    config = replace(base, **plain)
    if "interval_s" in given:
        config = replace(
            config, interval_s=checked_interval_s(float(given["interval_s"]), str(file))
        )
    if "limits" in given:
        config = replace(config, limits=_limits(given["limits"], file))
    if "guard" in given:
        guard = _guard(given["guard"], file)
        config = replace(config, guard=guard, warnings=_exposed(guard, file))
    return replace(config, keys=_keys(given.get("keys", {}), file))


def checked_interval_s(interval_s: float, where: str) -> float:
    """The interval, refused outside its limits."""
    low, high = INTERVAL_LIMITS_S
    if not low <= interval_s <= high:
        raise ConfigError(
            f"{where}: an interval of {interval_s:g} s is not between {low:g} and {high:g} s"
        )
    return interval_s


def _limits(given: Mapping[str, Any], file: Path) -> Limits:
    values: dict[str, Any] = {}
    for key, value in given.items():
        _refuse_unknown(key, LIMITS, file, "limits.")
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ConfigError(f"{file}: limits.{key} = {value!r} is not a number above 0")
        name, factor = LIMITS[key]
        values[name] = int(value * factor) if name.endswith("_bytes") else float(value * factor)
    return replace(Limits(), **values)


def _guard(given: Mapping[str, Any], file: Path) -> GuardConfig:
    for key, value in given.items():
        _refuse_unknown(key, _GUARD, file, "guard.")
        if not isinstance(value, _GUARD[key]):
            raise ConfigError(f"{file}: guard.{key} has the wrong type")
    channels = given.get("notify", [])
    if not all(isinstance(channel, str) and channel for channel in channels):
        raise ConfigError(f"{file}: guard.notify is not a list of addresses")
    limits: dict[str, Any] = {}
    for key, value in given.get("limits", {}).items():
        _refuse_unknown(key, GUARD_LIMITS, file, "guard.limits.")
        name, factor = GUARD_LIMITS[key]
        kind, told = (int, "whole number") if name == "most" else (int | float, "number")
        if isinstance(value, bool) or not isinstance(value, kind) or value <= 0:
            raise ConfigError(f"{file}: guard.limits.{key} = {value!r} is no {told} above 0")
        limits[name] = value if name == "most" else value * factor
    return GuardConfig(
        act=given.get("act", "none"),
        notify=tuple(channels),
        notify_command=given.get("notify_command", ""),
        limits=limits,
    )


def _exposed(guard: GuardConfig, file: Path) -> tuple[str, ...]:
    """Whoever reads the address of a channel can write to it."""
    try:
        is_open = bool(file.stat().st_mode & 0o077)
    except OSError:
        return ()
    if not (guard.notify or guard.notify_command) or not is_open:
        return ()
    return (f"{file} holds addresses of channels, and others can read it: chmod 600 {file}",)


def _keys(given: Mapping[str, Any], file: Path) -> Mapping[str, str]:
    for name, keys in given.items():
        if not isinstance(keys, str) or not keys:
            raise ConfigError(f"{file}: keys.{name} = {keys!r} is not the name of a key")
    return dict(given)


def _refuse_unknown(key: str, known: Mapping[str, Any], file: Path, prefix: str) -> None:
    if key in known:
        return
    near = difflib.get_close_matches(key, known, n=1, cutoff=0.5)
    hint = f"; did you mean {prefix}{near[0]}?" if near else ""
    raise ConfigError(f"{file}: unknown key {prefix}{key}{hint}")
