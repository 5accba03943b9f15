"""Which keys each command has: the registry's, changed by what the person's configuration says."""

from __future__ import annotations

import string
from collections.abc import Iterable, Mapping

from textual.binding import Binding
from textual.keys import Keys

from tui.app.command import Command
from tui.app.nearest import did_you_mean
from tui.errors import ConfigError

_MODIFIERS = ("ctrl", "alt", "shift")
_PUNCTUATION = Binding.make_bindings(
    Binding(char, "") for char in string.punctuation if char != ","
)
_NAMED = frozenset((*(key.value for key in Keys), *(binding.key for binding in _PUNCTUATION)))
_SHOWN = {
    "escape": "esc",
    "pageup": "pgup",
    "pagedown": "pgdn",
    "question_mark": "?",
    "slash": "/",
    "colon": ":",
    "up": "↑",
    "down": "↓",
}


def chosen_keys(
    commands: Iterable[Command], overrides: Mapping[str, str]
) -> Mapping[str, tuple[str, ...]]:
    """The keys of each command by its name, fixed ones last, in Textual's spelling.

    Raises ConfigError when an override names no command, is no key, or takes a key that is taken.
    """
    keys: dict[str, tuple[str, ...]] = {}
    known = {command.name: command for command in commands}
    for name in overrides:
        if name not in known:
            raise ConfigError(f"keys.{name}: there is no such command{did_you_mean(name, known)}")
    for name, command in known.items():
        wanted = overrides[name].split(",") if name in overrides else command.keys
        keys[name] = (*_spelt(name, wanted), *_spelt(name, command.fixed_keys))
    _refuse_clash(known, keys)
    return keys


def fixed_bindings(commands: Iterable[Command]) -> tuple[Binding, ...]:
    """Those that no configuration changes; they come before any widget's own."""
    return tuple(
        Binding(",".join(c.fixed_keys), c.action, c.label, show=False, priority=True)
        for c in commands
        if c.fixed_keys
    )


def shown(key: str) -> str:
    """A key as a person knows it."""
    *modifiers, last = key.split("+")
    return "+".join((*modifiers, _SHOWN.get(last, last)))


def _spelt(name: str, keys: Iterable[str]) -> tuple[str, ...]:
    """The keys in Textual's spelling: `?` is `question_mark` there."""
    spelt = []
    for key in (key.strip() for key in keys):
        *modifiers, last = key.split("+") if len(key) > 1 else [key]
        if not set(modifiers) <= set(_MODIFIERS) or not (len(last) == 1 or last in _NAMED):
            raise ConfigError(f"keys.{name}: there is no key {key!r}")
        (binding,) = Binding.make_bindings([Binding(key, "")])
        spelt.append(binding.key)
    return tuple(spelt)


def _refuse_clash(known: Mapping[str, Command], keys: Mapping[str, tuple[str, ...]]) -> None:
    """One key can have two meanings only where no screen knows both."""
    owners: dict[str, list[str]] = {}
    for name, own in keys.items():
        for key in own:
            for owner in owners.setdefault(key, []):
                if known[owner].where.meets(known[name].where):
                    raise ConfigError(f"keys.{name}: {shown(key)} is the key of {owner} already")
            owners[key].append(name)
