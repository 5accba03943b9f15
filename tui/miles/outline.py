"""The commands inside a command, and how to change a word of theirs without touching another byte.

Train arguments stand in argv, in a shell's text inside a word (`bash -c "…"`), in an option list
inside a word (`-e EXTRA_ARGS="--save …"`), in the environment, or in one of these inside another.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise

from tui.miles.flags import DEEPEST, NAMED, is_command, option_list
from tui.miles.shell import UncertainError, Word, simple_commands, typed

_MATTERS = re.compile(r"--(?:save|load|ref-load|hf-checkpoint)|train(?:_async)?\.py")
"""A text without any of these has nothing to change: whatever else is in it may be unreadable."""
_CLIENTS = frozenset(("docker", "podman"))


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """How something is started. It may hold secrets."""

    argv: tuple[str, ...] = field(repr=False)
    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class Segment:
    """The words of one simple command or one option list."""

    where: str
    """`argument`, `bash -c`, `-e EXTRA_ARGS`, `environment EXTRA_ARGS`, …"""
    list_name: str = ""
    """What the option list is called, such as `EXTRA_ARGS` or `--extra-args`."""
    is_list: bool = False
    is_environment: bool = False
    is_text: bool = False
    """It stands in a shell's text."""
    words: tuple[Word, ...]
    spliced: Callable[[int, int, tuple[str, ...]], Command] = field(repr=False)
    """The whole command with these words instead of those from one index up to another."""
    within: Callable[[int, int, int, str], Command] = field(repr=False)
    """The whole command with a text instead of a part, from one character up to another, of the
    value of the word at an index."""


def outlined(command: Command) -> tuple[Segment, ...]:
    """Everything in it that may hold train arguments, from the outside in."""
    segments = [*_unfolded(_of_argv(command), 0)]
    if command.environment:
        segments += _unfolded(_of_environment(command), 0)
    return tuple(segments)


def environment_words(command: Command) -> tuple[str, ...]:
    """Its variables as `NAME=VALUE`, empty for those that a client keeps from its container."""
    names = [posixpath.basename(word) for word in command.argv[:2]]
    if _CLIENTS.isdisjoint(names):
        return tuple(f"{name}={value}" for name, value in command.environment)
    passed = {
        word.removeprefix("--env=")
        for before, word in pairwise(command.argv)
        if before in ("-e", "--env") or word.startswith("--env=")
    }
    return tuple(f"{name}={value}" if name in passed else "" for name, value in command.environment)


def _of_argv(command: Command) -> Segment:
    argv = command.argv

    def spliced(first: int, last: int, words: tuple[str, ...]) -> Command:
        return replace(command, argv=(*argv[:first], *words, *argv[last:]))

    def within(index: int, start: int, end: int, text: str) -> Command:
        word = argv[index]
        return spliced(index, index + 1, (word[:start] + text + word[end:],))

    words = tuple(Word(value=word) for word in argv)
    return Segment(where="argument", words=words, spliced=spliced, within=within)


def _of_environment(command: Command) -> Segment:
    """Each variable as one word, `NAME=VALUE`."""
    environment = command.environment

    def within(index: int, start: int, end: int, text: str) -> Command:
        name, value = environment[index]
        start, end = start - len(name) - 1, end - len(name) - 1
        changed = (name, value[:start] + text + value[end:])
        return replace(
            command, environment=(*environment[:index], changed, *environment[index + 1 :])
        )

    def spliced(*_: object) -> Command:
        raise UncertainError("a variable's name in it looks like an option")

    words = tuple(Word(value=word) for word in environment_words(command))
    return Segment(
        where="environment", is_environment=True, words=words, spliced=spliced, within=within
    )


def _unfolded(segment: Segment, depth: int) -> Iterator[Segment]:
    yield segment
    previous = ""
    last = {_list_name(word.value, ""): index for index, word in enumerate(segment.words)}
    for index, word in enumerate(segment.words):
        if depth < DEEPEST and is_command(word.value, previous):
            for inner in _inner(segment, index, 0):
                yield from _unfolded(inner, depth + 1)
        elif options := option_list(word.value):
            lists = tuple(_inner(segment, index, len(word.value) - len(options)))
            if len(lists) > 1 and _MATTERS.search(options):
                raise UncertainError("an option list in it holds more than options")
            name = _list_name(word.value, previous)
            for one in lists if last.get(name, index) == index else ():  # else it is set again
                yield replace(one, is_list=True, list_name=name, is_text=segment.is_text)
        previous = word.value


def _inner(outer: Segment, index: int, offset: int) -> Iterator[Segment]:
    """The simple commands in the value of a word, from a character of it on."""
    text = outer.words[index].value[offset:]
    try:
        commands = simple_commands(text)
    except UncertainError:
        if _MATTERS.search(text):
            raise
        return

    def changed(start: int, end: int, typed_text: str) -> Command:
        return outer.within(index, offset + start, offset + end, typed_text)

    for words in commands:
        yield _of_text(text, words, changed, _where(outer, index))


def _of_text(
    text: str, words: tuple[Word, ...], changed: Callable[[int, int, str], Command], where: str
) -> Segment:
    def spliced(first: int, last: int, new: tuple[str, ...]) -> Command:
        typed_words = " ".join(map(typed, new))
        if first == last:
            end = words[first - 1].end
            return changed(end, end, f" {typed_words}")
        start, end = words[first].start, words[last - 1].end
        between = zip(words[first : last - 1], words[first + 1 : last], strict=True)
        if any(text[one.end : after.start].strip(" \t") for one, after in between):
            raise UncertainError("a value in it does not stand right behind its option")
        return changed(start, end, typed_words)

    def within(index: int, start: int, end: int, new: str) -> Command:
        word = words[index]
        return changed(*word.place(start, end), word.typed(start, end, new))

    return Segment(where=where, is_text=True, words=words, spliced=spliced, within=within)


def _where(outer: Segment, index: int) -> str:
    """How a person finds the word, such as `bash -c` or `-e EXTRA_ARGS`."""
    value = outer.words[index].value
    before = ["", "", *(word.value for word in outer.words[max(0, index - 2) : index])][-2:]
    named = NAMED.match(value)
    if outer.is_environment:
        return f"environment {value.partition('=')[0]}"
    if named is not None:
        flag = before[1] if before[1] in ("-e", "--env") else value[: named.start("name")]
        return f"{flag.rstrip('=')} {named['name']}".lstrip()
    if before[1].startswith("--"):
        return before[1]
    return " ".join((posixpath.basename(before[0]), before[1])).strip() or outer.where


def _list_name(word: str, previous: str) -> str:
    named = NAMED.match(word)
    return named["name"] if named else previous
