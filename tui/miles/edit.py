"""A start command with some train options changed, and nothing else.

An option is replaced where its effective value stands; a new one is put right behind `--save`. What
comes out is read back, by this reader and by the monitor's own: a change that cannot be proven is
refused.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Generic, TypeVar

from tui.miles.edit_place import Given, Item, Place, place_for
from tui.miles.flags import launch_from_argv
from tui.miles.outline import Command, environment_words, outlined
from tui.miles.shell import UncertainError
from tui.model.launch import LaunchArgs
from tui.model.plan import Refusal

_FIELDS = {
    "save": "save",
    "load": "load",
    "ref-load": "ref_load",
    "hf-checkpoint": "hf_checkpoint",
    "save-trigger-sentinel": "save_trigger",
}
"""The options that can be changed, and what the monitor calls them."""
_SEVERAL_WORDS = re.compile(r"[@*?\[]|(?<!\$)\{")

T = TypeVar("T")


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """One option that is not what it was."""

    option: str
    old: str | None
    """None: it was not given, or not where it counts."""
    new: str
    where: str
    """`argument`, `bash -c`, `-e EXTRA_ARGS`, `environment EXTRA_ARGS`, …"""

    def __str__(self) -> str:
        if self.old is None:
            return f"+ --{self.option} {self.new}"
        return f"--{self.option} {self.old} → {self.new}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Edited(Generic[T]):
    """What to start instead, and what is different; no changes: it says all that already."""

    command: T = field(repr=False)
    changes: tuple[Change, ...]


def with_options(command: Command, options: Mapping[str, str]) -> Edited[Command] | Refusal:
    """The command with these values of train options, such as `{"load": "/ckpt/run-a"}`."""
    try:
        return _edited(command, tuple(options.items()))
    except UncertainError as error:
        names = " and ".join(f"--{option}" for option in options)
        return Refusal(
            reason=f"the start command cannot be changed: {error}",
            remedy=f"give {names} by hand, as in `milepost resume -- COMMAND`",
        )


def entrypoint_with_options(text: str, options: Mapping[str, str]) -> Edited[str] | Refusal:
    """The same for a Ray job's entrypoint, which Ray gives to `/bin/sh -c`."""
    edited = with_options(Command(argv=("sh", "-c", text)), options)
    if isinstance(edited, Refusal):
        return edited
    changes = tuple(
        replace(change, where="entrypoint") if change.where == "sh -c" else change
        for change in edited.changes
    )
    return Edited(command=edited.command.argv[2], changes=changes)


def _edited(command: Command, options: tuple[tuple[str, str], ...]) -> Edited[Command]:
    changed = command
    changes: list[Change] = []
    for option, value in reversed(options):  # each new one goes before those after it
        if option not in _FIELDS:
            raise UncertainError(f"--{option} is not an option that can be read back")
        changed, change = _with_option(changed, option, value)
        changes = [change, *changes] if change else changes
    _prove(command, changed, options)
    return Edited(command=changed, changes=tuple(changes))


def _prove(command: Command, changed: Command, options: tuple[tuple[str, str], ...]) -> None:
    after = _read(changed)
    wanted: dict[str, Any] = {_FIELDS[option]: value for option, value in options}
    if after != replace(_read(command), argv=after.argv, **wanted) or any(
        _with_option(changed, option, value)[1] for option, value in options
    ):
        raise UncertainError("what it says after the change cannot be proven")


def _read(command: Command) -> LaunchArgs:
    return launch_from_argv((*command.argv, *filter(None, environment_words(command))))


def _with_option(command: Command, option: str, value: str) -> tuple[Command, Change | None]:
    place = place_for(outlined(command), option)
    place.check(option, value)
    read: str | None = getattr(_read(command), _FIELDS[option])
    given = place.effective(option)
    if given is None:
        if read is not None and place.last_opaque < 0:
            raise UncertainError(f"--{option} stands in it where it may not count")
        splice = _behind(place, option, value)
    else:
        _check_replaceable(given, read)
        if given.value == value and not given.is_live:
            return command, None
        splice = _instead(place, given, value)
    changed = splice.made()
    where = splice.at.segment.where
    old = read if read != value else None
    return changed, Change(option=option, old=old, new=value, where=where)


def _check_replaceable(given: Given, read: str | None) -> None:
    if given.is_live and _SEVERAL_WORDS.search(given.value or ""):
        raise UncertainError(f"the shell may make several words of the value of --{given.name}")
    if not given.is_live and (given.value or None) != read:
        raise UncertainError(f"the value of --{given.name} can be read in two ways")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Splice:
    """Words to put in place of others, from one index of a segment up to another."""

    at: Item
    first: int
    last: int
    words: tuple[str, ...]

    def made(self) -> Command:
        """The command with them, once they are read back as just these words."""
        segment = self.at.segment
        old = [word.value for word in segment.words]
        changed = segment.spliced(self.first, self.last, self.words)
        position = self.at.position
        again = outlined(changed)[position : position + 1]
        new = [word.value for found in again for word in found.words]
        if new != [*old[: self.first], *self.words, *old[self.last :]]:
            raise UncertainError("the change cannot be read back")
        return changed


def _behind(place: Place, option: str, value: str) -> _Splice:
    """A new option behind the folder's, and behind all that the shell fills in."""
    saves = [given.last - 1 for given in place.given if given.name == "save"]
    loads = [given.last - 1 for given in place.given if given.name == "load"]
    behind = (saves or loads or [place.fallback])[-1]
    at = place.items[max(behind, place.last_opaque)]
    words = (f"--{option}={value}",) if value.startswith("-") else (f"--{option}", value)
    return _Splice(at=at, first=at.index + 1, last=at.index + 1, words=words)


def _instead(place: Place, given: Given, value: str) -> _Splice:
    """Argparse takes a word that begins with a dash for an option: such a value needs the `=`."""
    at = place.items[given.first]
    last = at.index + given.last - given.first
    name, equals, _ = at.word.value.partition("=")
    if equals or value.startswith("-"):
        return _Splice(at=at, first=at.index, last=last, words=(f"{name}={value}",))
    return _Splice(at=at, first=at.index + 1, last=last, words=(value,))
