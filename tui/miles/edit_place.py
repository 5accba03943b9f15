"""Which words of a start command the trainer gets as its options, and which of them count.

The script's own words do. An option list counts where the script takes it by name (`$EXTRA_ARGS`),
and where a launcher builds the train command.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator, Sequence, Set
from dataclasses import dataclass
from functools import partial
from itertools import pairwise

from tui.miles.flags import NAMED, SCRIPT, after_name, is_command, option_list
from tui.miles.outline import Segment
from tui.miles.shell import UncertainError, Word

_FOLDERS = frozenset(("save", "load"))
_TAKE_ONE_VALUE = frozenset(
    (
        "save", "load", "ref-load", "hf-checkpoint", "save-trigger-sentinel", "save-interval",
        "eval-interval", "num-rollout", "start-rollout-id", "rollout-batch-size",
        "n-samples-per-prompt", "global-batch-size", "num-steps-per-rollout",
    )
)  # fmt: skip
_REFERENCE = re.compile(r"\$(?:(\w+)|\{(\w+)\})", re.ASCII)
_ASSIGNED = re.compile(rf"{NAMED.pattern}|\w+\+=")
_EXTRA = "EXTRA_ARGS"
_SPLIT_BY_A_SHELL = frozenset(("--extra-args", "MILES_SCRIPT_EXTRA_ARGS"))
"""Miles' launchers put these into a shell command; others may lose the quotes."""
_LAUNCHER = re.compile(r"(?:.*/)?(?:[\w.-]+\.sh|run[\w.-]*\.py)")

_NO_QUOTES_NEEDED = re.compile(r"[\w@%+=:,./-]+")
_KEPT_BY_RAY = re.compile(r"[\w@%+=:,./ -]+")
"""`ray job submit` joins its words for another shell; its older releases quote blanks only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A word of a place, and where it is in the outline."""

    position: int
    segment: Segment
    index: int

    @property
    def word(self) -> Word:
        return self.segment.words[self.index]


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """One option as it is given: items from `first` up to `last`."""

    name: str
    first: int
    last: int
    value: str | None
    """None: it has none."""
    is_live: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """The words that the trainer gets, in its order."""

    items: tuple[Item, ...]
    given: tuple[Given, ...]
    last_opaque: int = -1
    """The last item that may hide options from us; those before it may not count."""
    fallback: int
    """The item that a new option follows where no folder is given."""
    typeable: re.Pattern[str] | None = None
    """What a value may be made of on its way to the trainer; None: of anything."""

    def effective(self, option: str) -> Given | None:
        """The one that counts: argparse takes the last."""
        named = [given for given in self.given if given.name == option]
        if not named or named[-1].first <= self.last_opaque:
            return None
        return named[-1]

    def names(self, options: Set[str]) -> bool:
        """Whether one of the options is given."""
        return any(given.name in options for given in self.given)

    def check(self, option: str, value: str) -> None:
        """Refuse a value that would not arrive as it is."""
        if value in ("", "--") or "\0" in value:  # argparse drops a lone `--`
            raise UncertainError(f"--{option} cannot be given {value!r}")
        if self.typeable is not None and not self.typeable.fullmatch(value):
            raise UncertainError(f"{value!r} would not come through the shells on its way")
        for given in self.given:
            if given.is_live and given.name in _FOLDERS and given.value and given.value in value:
                raise UncertainError(f"the shell fills in the {given.value} of --{given.name}")


def place_for(segments: Sequence[Segment], option: str) -> Place:
    """Where the trainer's options stand. Refuses what cannot be told for certain."""
    scripts = [
        item
        for position, segment in enumerate(segments)
        if not segment.is_list and not segment.is_environment
        for item in _items(position, segment)
        if SCRIPT.fullmatch(item.word.value) and not re.search("[:=]", item.word.value)
    ]
    if len(scripts) > 1:
        raise UncertainError("more than one train script stands in it")
    find = partial(_of_script, scripts[0]) if scripts else _of_launcher
    found = find(segments, option)
    matter = _FOLDERS | {option}
    for given in found.given:
        if given.name in matter and given.value is None:
            raise UncertainError(f"--{given.name} has no value")
        if given.name not in matter and option.startswith(given.name):
            raise UncertainError(f"--{given.name} may be short for --{option}")
    return found


def _of_script(script: Item, segments: Sequence[Segment], option: str) -> Place:
    items = [script]
    lists = _named_lists(segments)
    typeable = _typeable(script.segment, script.index)
    for item in _items(script.position, script.segment)[script.index + 1 :]:
        variable = _referred(item.word)
        listed = lists.get(_list_name(variable))
        found: Sequence[Item] = (item,)
        if listed is not None and listed.items[0].segment.list_name == variable:
            del lists[_list_name(variable)]
            if _is_constant(variable, listed, segments):
                found, typeable = _split_again(listed), _NO_QUOTES_NEEDED
        items += found
    place = _place(items, begin=1, typeable=typeable)
    if place.names(_FOLDERS | {option}):
        elsewhere = any(listed.names({option}) for listed in lists.values())
        if elsewhere and not place.names({option}):
            raise UncertainError(f"--{option} stands in two places of it")
        return place
    if place.last_opaque >= 0:
        raise UncertainError("its train options are filled in by the shell")
    if any(listed.names(_FOLDERS) for listed in lists.values()):
        raise UncertainError("its train options stand where the script does not take them from")
    return place


def _of_launcher(segments: Sequence[Segment], option: str) -> Place:
    _refuse_hidden(segments, option)
    lists = _named_lists(segments)
    commands = [
        _place(_items(position, segment), begin=0, typeable=_typeable(segment, None))
        for position, segment in enumerate(segments)
        if not segment.is_list and not segment.is_environment
    ]
    found = _only([place for place in (*commands, *lists.values()) if place.names(_FOLDERS)])
    found = found or _only([place for name, place in lists.items() if name.endswith(_EXTRA)])
    if found is not None:
        return found
    words = [word.value for segment in segments for word in segment.words]
    launcher = next(filter(_LAUNCHER.fullmatch, words), "")
    if launcher:
        name = posixpath.basename(launcher)
        raise UncertainError(f"{name} builds the train command, and no option list is given to it")
    raise UncertainError("neither --save nor --load nor a train script stands in it")


def _only(places: Sequence[Place]) -> Place | None:
    if len(places) > 1:
        raise UncertainError("train options stand in two places of it")
    return places[0] if places else None


def _refuse_hidden(segments: Sequence[Segment], option: str) -> None:
    """Refuse a word that puts the option together with something that is not known."""
    hidden = re.compile(rf"--{re.escape(option)}(?![\w-])")
    for segment in segments:
        previous = ""
        for word in segment.words:
            text = ""
            if _ASSIGNED.match(word.value):
                text = after_name(word.value)
            elif previous.startswith("--") and not word.value.startswith("-"):
                text = word.value
            is_read = is_command(word.value, previous) or option_list(word.value)
            if hidden.search(text) and not is_read:
                raise UncertainError(f"--{option} stands in it where it may not count")
            previous = word.value


def _named_lists(segments: Sequence[Segment]) -> dict[str, Place]:
    """The option lists by name; of one name the one that counts.

    A launcher of Miles takes `MILES_SCRIPT_EXTRA_ARGS` where `--extra-args` is not given.
    """
    lists: dict[str, Place] = {}
    from_environment = False
    for position, segment in enumerate(segments):
        from_environment |= segment.is_environment
        name = _list_name(segment.list_name)
        if segment.is_list and not (from_environment and name in lists):
            keeps_quotes = segment.list_name in _SPLIT_BY_A_SHELL
            typeable = _KEPT_BY_RAY if keeps_quotes else _NO_QUOTES_NEEDED
            lists[name] = _place(_items(position, segment), begin=0, typeable=typeable)
    return lists


def _list_name(name: str) -> str:
    return name.lstrip("-").upper().replace("-", "_").removeprefix("MILES_SCRIPT_")


def _referred(word: Word) -> str:
    """The variable that an unquoted `$NAME` is filled in from."""
    reference = _REFERENCE.fullmatch(word.value)
    is_bare = reference and word.splits and set(word.quotes) == {" "}
    return (reference[1] or reference[2]) if reference and is_bare else ""


def _is_constant(variable: str, listed: Place, segments: Sequence[Segment]) -> bool:
    """Whether a variable that comes from outside the shell's text stays as it is."""
    if listed.items[0].segment.is_text:
        return False
    sets = re.compile(rf"{variable}(?:\+?=.*)?", re.DOTALL)
    texts = [segment for segment in segments if segment.is_text and not segment.is_list]
    return not any(sets.fullmatch(word.value) for text in texts for word in text.words)


def _split_again(found: Place) -> tuple[Item, ...]:
    """The list's words, as a shell splits a variable: by blanks, whatever quotes it holds."""
    for item in found.items:
        word = item.word
        if word.is_live or set(word.quotes) != {" "} or word.end - word.start != len(word.value):
            raise UncertainError("the quotes in an option list of it may not be seen as such")
    return found.items


def _items(position: int, segment: Segment) -> tuple[Item, ...]:
    return tuple(
        Item(position=position, segment=segment, index=index) for index in range(len(segment.words))
    )


def _typeable(segment: Segment, end: int | None) -> re.Pattern[str] | None:
    values = [word.value for word in segment.words[:end]]
    return _KEPT_BY_RAY if ("job", "submit") in pairwise(values) else None


def _place(items: Sequence[Item], begin: int, typeable: re.Pattern[str] | None) -> Place:
    given = tuple(_given(items, begin))
    return Place(
        items=tuple(items),
        given=given,
        last_opaque=_last_opaque(items, given, begin),
        fallback=0 if begin else len(items) - 1,
        typeable=typeable,
    )


def _given(items: Sequence[Item], begin: int) -> Iterator[Given]:
    words = [item.word for item in items]
    for first in range(begin, len(words)):
        word = words[first].value
        if not word.startswith("--") or len(word) == 2:
            continue
        name, equals, value = word[2:].partition("=")
        following = words[first + 1].value if first + 1 < len(words) else "--"
        takes_next = not equals and not following.startswith("--")
        last = first + 1 + takes_next
        if items[first].position != items[last - 1].position:
            raise UncertainError("an option in it has its value elsewhere")
        yield Given(
            name=name.replace("_", "-"),
            first=first,
            last=last,
            value=following if takes_next else value if equals else None,
            is_live=words[last - 1].is_live,
        )


def _last_opaque(items: Sequence[Item], given: Sequence[Given], begin: int) -> int:
    with_value = {one.last - 1: one.name for one in given if one.value is not None}
    opaque = -1
    for index in range(begin, len(items)):
        word = items[index].word
        option = with_value.get(index)
        if word.is_live and (option is None or (word.splits and option not in _TAKE_ONE_VALUE)):
            opaque = index
    return opaque
