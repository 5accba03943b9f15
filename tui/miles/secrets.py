"""Secrets in command lines made unreadable.

Miles' launchers write `--wandb-key 'KEY'` into the command, so it is in every process title, in the
log's `EXEC:` line and in Ray's job list. Whatever shows or stores a command passes through here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

MASK = "•••"

_ENDINGS = (
    r"(?:key|token|secret|passwd|password|passphrase|credentials?|authorization|cookie"
    r"|access[-_]?key[-_]?id|webhook(?:[-_]?url)?|(?<=[-_])(?:pass|pwd|pat|auth|dsn))"
)
_LOUD_ENDINGS = (
    r"(?:KEY|TOKEN|SECRET|PASSWD|PASSWORD|PASSPHRASE|CREDENTIALS?|AUTHORIZATION|COOKIE"
    r"|ACCESS_?KEY_?ID|WEBHOOK(?:_?URL)?|(?<=_)(?:PASS|PWD|PAT|AUTH|DSN))"
)
_QUOTED = (
    r"(?:'[^'\n]{0,1024}'(?:(?:\\'|\"'\")'[^'\n]{0,1024}')*"
    r"|\"(?:[^\"\\\n]|\\.){0,1024}\""
    r"|(?P<quote>\\{1,8}[\"'])[^\n]{0,1024}?(?P=quote))"
)
"""As a shell, JSON, or a text within a text quotes it."""
_FLAG = re.compile(rf"--?[\w-]{{0,64}}{_ENDINGS}", re.IGNORECASE)
_FLAG_IN_TEXT = re.compile(
    rf"(?<![\w-])(?P<name>--[\w-]{{0,64}}?{_ENDINGS})(?P<between>=|\s+)"
    rf"(?P<value>{_QUOTED}|(?!--)[^\s'\"]+)",
    re.IGNORECASE,
)
_NAMED_IN_TEXT = re.compile(
    rf"(?<![\w/-])(?P<name>\w{{0,64}}?{_ENDINGS})"
    r"(?P<between>\\{0,8}[\"']?\s{0,4}[=:]\s{0,4})"
    rf"(?P<value>{_QUOTED}|\\{{0,8}}[\"']?[^\s\"',}}]{{6,}})",
    re.IGNORECASE,
)
_VARIABLE_IN_TEXT = re.compile(
    rf"(?<![\w-])(?P<name>[A-Z0-9_]{{0,64}}?{_LOUD_ENDINGS})(?P<between>=)"
    r"(?P<value>[^\s'\";&|]+)"
)
"""A shell's `NAME=value`, where even a short value is one."""
_QUOTED_VARIABLE = re.compile(
    rf"(?P<quote>\\{{0,8}}[\"'])(?P<name>\w{{0,64}}?{_ENDINGS})(?P<between>=)"
    r"(?P<value>[^\n]{0,1024}?)(?=(?P=quote))",
    re.IGNORECASE,
)
"""`-e "NAME=two words"`."""
_VALUE_IN_TEXT = re.compile(
    r"(?<![A-Za-z0-9])(?:hf_[A-Za-z0-9]{16,}|gh[pousr]_[A-Za-z0-9]{16,}|github_pat_\w{16,}"
    r"|glpat-[\w-]{16,}|sk-[A-Za-z0-9_-]{16,}|nvapi-[\w-]{16,}|xox[a-z]-[\w-]{10,}"
    r"|AKIA[A-Z0-9]{16}|wandb_v1_\w{8,}|eyJ[\w-]{8,}\.[\w-]{8,}\.[\w-]+|[0-9a-fA-F]{40})"
    r"(?![A-Za-z0-9])"
)
_BEARER = re.compile(r"\b(?P<name>Bearer|Basic)(?P<between>\s+)(?P<value>[\w.+/=-]{6,})")
_NAMED = (_FLAG_IN_TEXT, _BEARER, _QUOTED_VARIABLE, _NAMED_IN_TEXT, _VARIABLE_IN_TEXT)
_LOGIN_IN_URL = re.compile(r"(?P<name>\b[a-zA-Z][a-zA-Z0-9+.-]{0,20})(?P<between>://)[^\s/@'\"]+@")
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,20}PRIVATE KEY-----.*?(?:-----END [A-Z ]{0,20}PRIVATE KEY-----|\Z)",
    re.DOTALL,
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
        after_secret_flag = _is_secret_flag(word)
    return tuple(shown)


def masked_text(text: str) -> str:
    """A line of text with every secret replaced that its name or its own form gives away."""
    for named in _NAMED:
        text = named.sub(_without_value, text)
    text = _LOGIN_IN_URL.sub(rf"\g<name>\g<between>{MASK}@", text)
    text = _PRIVATE_KEY.sub(MASK, text)
    return _VALUE_IN_TEXT.sub(MASK, text)


def is_secret_name(name: str) -> bool:
    """Whether a variable or option of this name holds a secret."""
    return _is_secret_flag(f"--{name.lstrip('-')}")


def secret_values(words: Iterable[str]) -> Iterator[str]:
    """The secrets that names in these words give away, to be looked for elsewhere."""
    after_secret_flag = False
    for word in words:
        name, equals, value = word.partition("=")
        if after_secret_flag and not word.startswith("--"):
            yield word
        elif equals and is_secret_name(name):
            yield value
        else:
            for named in _NAMED:
                for match in named.finditer(word):
                    if not _COLUMN_NAME.fullmatch(match["name"]):
                        yield match["value"].strip("\\'\"")
        after_secret_flag = _is_secret_flag(word)


def _masked_word(word: str) -> str:
    name, equals, value = word.partition("=")
    if equals and value and is_secret_name(name):
        return f"{name}={MASK}"
    return masked_text(word)


def _is_secret_flag(flag: str) -> bool:
    return bool(_FLAG.fullmatch(flag)) and not _COLUMN_NAME.fullmatch(flag)


def _without_value(match: re.Match[str]) -> str:
    if _COLUMN_NAME.fullmatch(match["name"]):
        return match[0]
    opening = match[0][: match.start("name") - match.start()]
    return f"{opening}{match['name']}{match['between']}{MASK}"
