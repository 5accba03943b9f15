"""Secrets in command lines made unreadable.

Miles' launchers write `--wandb-key 'KEY'` into the command, so it is in every process title, in the
log's `EXEC:` line and in Ray's job list. Whatever shows or stores a command passes through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

MASK = "•••"

_ENDINGS = r"(?:key|token|secret|password|passwd|credentials?)"
_FLAG = re.compile(rf"--?[\w-]{{0,64}}{_ENDINGS}", re.IGNORECASE)
_FLAG_IN_TEXT = re.compile(
    rf"(?<![\w-])(?P<name>--[\w-]{{0,64}}?{_ENDINGS})(?P<between>=|\s+)"
    r"(?P<value>'[^']*'|\"[^\"]*\"|(?!--)[^\s'\"]+)",
    re.IGNORECASE,
)
_NAMED_IN_TEXT = re.compile(
    rf"(?<![\w-])(?P<name>\w{{0,64}}?{_ENDINGS})(?P<between>[\"']?\s{{0,4}}[=:]\s{{0,4}}[\"']?)"
    r"(?P<value>[^\s\"',}]{6,})",
    re.IGNORECASE,
)
_VALUE_IN_TEXT = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|sk-[A-Za-z0-9_-]{16,}"
    r"|wandb_v1_\w{8,}|[0-9a-fA-F]{40})(?![A-Za-z0-9])"
)
_COLUMN_NAME = re.compile(
    r"-{0,2}(?:eval[-_])?(?:input|label|metadata|multimodal|tool|reward|prompt)[-_]key",
    re.IGNORECASE,
)
"""Miles' flags that name a column of the data set: `--input-key prompt` is no secret."""


def masked_words(words: Iterable[str]) -> tuple[str, ...]:
    """The words of a command with every secret replaced; a word stays one word."""
    shown: list[str] = []
    after_secret_flag = False
    for word in words:
        hide = after_secret_flag and not word.startswith("--")
        shown.append(MASK if hide else _masked_word(word))
        after_secret_flag = _is_secret_name(word)
    return tuple(shown)


def masked_text(text: str) -> str:
    """A line of text with every secret replaced that its name or its own form gives away."""
    text = _FLAG_IN_TEXT.sub(_without_value, text)
    text = _NAMED_IN_TEXT.sub(_without_value, text)
    return _VALUE_IN_TEXT.sub(MASK, text)


def _masked_word(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and value and _is_secret_name(f"--{name.lstrip('-')}"):
        return f"{name}={MASK}"
    return masked_text(word)


def _is_secret_name(flag: str) -> bool:
    return bool(_FLAG.fullmatch(flag)) and not _COLUMN_NAME.fullmatch(flag)


def _without_value(match: re.Match[str]) -> str:
    if _COLUMN_NAME.fullmatch(match["name"]):
        return match[0]
    return f"{match['name']}{match['between']}{MASK}"
