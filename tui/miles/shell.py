"""Shell text split into simple commands, each character of a word with its place in the text.

POSIX rules, as dash and bash read them. What the shell would fill in is kept as it is typed, and
marked. What cannot be read with certainty is refused, never guessed.
"""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass, field

_MOST_CHARS = 1 << 17
"""Linux passes no longer word than this."""

_REDIRECT = re.compile(r"&>>?|<>|[<>]&|>>|>\||[<>]")
_DESCRIPTOR = re.compile(r"[0-9]+")
_OPERATORS = frozenset(";&|()\n")
_PATTERN = frozenset("*?[{")
_PLAIN = re.compile(r"[\w/.,:=@%+-]+")
_PLAIN_IN_DOUBLE = re.compile(r'[^"\\$`]+')
_ESCAPED_IN_DOUBLE = frozenset('$`"\\')
_VARIABLE = re.compile(r"\$(?:[A-Za-z_]\w*|[0-9@*#?$!-])", re.ASCII)
_EXPANDS = re.compile(rf"{_VARIABLE.pattern}|\$[({{]|`", re.ASCII)
_NESTING = re.compile(r"\\.|\$?\(|\$\{|['\"`)}]", re.DOTALL)
_CLOSERS = {"$(": ")", "(": ")", "${": "}", '"': '"', "`": "`"}
_OPTION = re.compile(r"(--[\w-]+=)(.*)", re.DOTALL)


class UncertainError(Exception):
    """What a command means, or would mean, cannot be told for certain; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """One word as the program gets it, unless the shell fills something in."""

    value: str = field(repr=False)
    start: int = 0
    end: int = 0
    """Where it stands in the text, quotes included."""
    spans: tuple[tuple[int, int], ...] = field(default=(), repr=False)
    """Where each character of its value stands."""
    quotes: str = field(default="", repr=False)
    """How each character is quoted: `'`, `"`, or a blank for not at all."""
    is_live: bool = False
    """The shell fills something in: a variable, a command's output, a home folder, file names."""
    splits: bool = False
    """What it fills in may be no word or several."""

    def place(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of the value stands in the text.

        An empty part stands right behind the character before it.
        """
        if start == end:
            return self.spans[start - 1][1], self.spans[start - 1][1]
        return self.spans[start][0], self.spans[end - 1][1]

    def typed(self, start: int, end: int, new: str) -> str:
        """What has to be typed in a part's place, for the value to have new text there."""
        first = self.quotes[start if start < end else start - 1]
        last = self.quotes[end - 1]
        ends_and_begins = "" if first == last else f"{first}{last}".replace(" ", "")
        return _typed_within(new, first) + ends_and_begins


def simple_commands(text: str) -> tuple[tuple[Word, ...], ...]:
    """The words of each simple command, without redirections and comments."""
    if len(text) > _MOST_CHARS:
        raise UncertainError("it is longer than Linux lets a word be")
    return _Reader(text).commands()


def typed(word: str) -> str:
    """A word as it has to be typed in a shell command."""
    option = _OPTION.fullmatch(word)
    return option[1] + shlex.quote(option[2]) if option else shlex.quote(word)


def _typed_within(text: str, quote: str) -> str:
    """Text as it has to be typed inside a word, where the word is quoted so."""
    if quote == "'":
        return text.replace("'", "'\\''")
    if quote == '"':  # `$` in quotes of its own, as Python's shlex keeps the backslash of `\$`
        text = re.sub(r'([\\"])', r"\\\1", text)
        return re.sub(r"([$`]+)", "\"'\\1'\"", text)
    return shlex.quote(text)


class _Reader:
    """Reads one text, from its first character to its last."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._at = 0
        self._commands: list[tuple[Word, ...]] = []
        self._command: list[Word] = []
        self._is_target = False
        """The next word is where a redirection leads."""
        self._open_groups = 0
        self._next_word()

    def _next_word(self) -> None:
        self._start: int | None = None
        self._end = 0
        self._letters: list[str] = []
        self._spans: list[tuple[int, int]] = []
        self._quotes: list[str] = []
        self._is_live = self._splits = False

    def commands(self) -> tuple[tuple[Word, ...], ...]:
        while self._at < len(self._text):
            self._step(self._text[self._at])
        self._end_command()
        if self._open_groups:
            raise UncertainError("a parenthesis in it has no partner")
        return tuple(self._commands)

    def _step(self, char: str) -> None:
        text, at = self._text, self._at
        if text.startswith("\\\n", at):
            self._at += 2
        elif char in " \t":
            self._end_word()
            self._at += 1
        elif char == "#" and self._start is None:
            end = text.find("\n", at)
            self._at = end if end >= 0 else len(text)
        elif text.startswith(("<(", ">("), at):
            self._expansion(" ", opened_at=at + 1)
        elif redirect := _REDIRECT.match(text, at):
            self._redirect(redirect)
        elif char in _OPERATORS:
            self._operator(char)
        else:
            self._piece(char)

    def _operator(self, char: str) -> None:
        if char == "(" and self._start is not None:
            raise UncertainError("it has a function or an array")
        self._end_command()
        self._open_groups += (char == "(") - (char == ")")
        if self._open_groups < 0:
            raise UncertainError("a parenthesis in it has no partner")
        self._at += 1

    def _redirect(self, redirect: re.Match[str]) -> None:
        if self._text.startswith("<<", self._at):
            raise UncertainError("it has a here-document")
        if not "".join(self._quotes).strip() and _DESCRIPTOR.fullmatch("".join(self._letters)):
            self._next_word()  # as in `2>&1`
        self._end_word()
        if self._is_target:
            raise UncertainError("a redirection in it leads nowhere")
        self._is_target = True
        self._at = redirect.end()

    def _piece(self, char: str) -> None:
        """One character of a word, one expansion, or all between two quotes."""
        if self._start is None:
            self._start = self._at
            self._is_live = char == "~"
        if char == "'":
            self._single()
        elif char == '"':
            self._double()
        elif char == "\\":
            self._take_escaped(" ")
        elif self._text.startswith(("$'", '$"'), self._at):
            raise UncertainError("it has quotes that not every shell knows")
        elif _EXPANDS.match(self._text, self._at):
            self._expansion(" ", opened_at=self._at)
        else:
            if char in _PATTERN:
                self._is_live = self._splits = True
            plain = _PLAIN.match(self._text, self._at)
            self._take_all(plain.end() if plain else self._at + 1, " ")
        self._end = self._at

    def _take_all(self, end: int, quote: str) -> None:
        self._letters.append(self._text[self._at : end])
        self._spans.extend((at, at + 1) for at in range(self._at, end))
        self._quotes.append(quote * (end - self._at))
        self._at = end

    def _take_escaped(self, quote: str) -> None:
        if self._at + 1 == len(self._text):
            raise UncertainError("it ends in a backslash")
        self._letters.append(self._text[self._at + 1])
        self._spans.append((self._at, self._at + 2))
        self._quotes.append(quote)
        self._at += 2

    def _single(self) -> None:
        end = self._text.find("'", self._at + 1)
        if end < 0:
            raise UncertainError("a quote in it has no partner")
        self._at += 1
        self._take_all(end, "'")
        self._at += 1

    def _double(self) -> None:
        self._at += 1
        while self._at < len(self._text):
            char, following = self._text[self._at], self._text[self._at + 1 : self._at + 2]
            if char == '"':
                self._at += 1
                return
            if char == "\\" and following == "\n":
                self._at += 2
            elif char == "\\" and following in _ESCAPED_IN_DOUBLE:
                self._take_escaped('"')
            elif _EXPANDS.match(self._text, self._at):
                self._expansion('"', opened_at=self._at)
            else:
                plain = _PLAIN_IN_DOUBLE.match(self._text, self._at)
                self._take_all(plain.end() if plain else self._at + 1, '"')
        raise UncertainError("a quote in it has no partner")

    def _expansion(self, quote: str, opened_at: int) -> None:
        if self._start is None:
            self._start = self._at
        end = _past_expansion(self._text, opened_at)
        expansion = self._text[self._at : end]
        self._is_live = True
        self._splits |= quote == " " or "@" in expansion
        self._take_all(end, quote)
        self._end = self._at

    def _end_word(self) -> None:
        if self._start is None:
            return
        if not self._is_target:
            word = Word(
                value="".join(self._letters),
                start=self._start,
                end=self._end,
                spans=tuple(self._spans),
                quotes="".join(self._quotes),
                is_live=self._is_live,
                splits=self._splits,
            )
            self._command.append(word)
        self._is_target = False
        self._next_word()

    def _end_command(self) -> None:
        self._end_word()
        if self._is_target:
            raise UncertainError("a redirection in it leads nowhere")
        if self._command:
            self._commands.append(tuple(self._command))
            self._command = []


def _past_expansion(text: str, at: int) -> int:
    """Where the expansion ends that begins here."""
    if variable := _VARIABLE.match(text, at):
        return variable.end()
    open_: list[str] = []
    while token := _NESTING.search(text, at):
        at = token.end()
        innermost = open_[-1] if open_ else ""
        if token[0] == innermost:
            open_.pop()
            if not open_:
                return at
        elif token[0] == "'" and innermost == "}":
            break
        elif token[0] == "'" and innermost != '"':
            at = text.find("'", at) + 1 or len(text)
        elif token[0] in _CLOSERS and (token[0] != "(" or innermost in ("", ")")):
            open_.append(_CLOSERS[token[0]])
    raise UncertainError("an expansion in it has no end that can be told")
