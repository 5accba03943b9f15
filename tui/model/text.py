"""Text from outside made harmless, and measured in terminal cells.

Nothing that a log, a container name or a model's answer holds may reach a terminal as anything but
text: escape sequences go, other control, bidirectional and invisible characters become visible.
"""

from __future__ import annotations

import re
import unicodedata
from functools import lru_cache

_ESCAPES = re.compile(
    r"(?:\x1b|\^\[|\\x1b|\\u001b|\\033)(?:\[[0-?]*[ -/]*[@-~])"  # CSI, intact or spelt out
    r"|\x1b\][^\x07\x1b]{0,4096}(?:\x07|\x1b\\)?"  # OSC up to its end
    r"|\x1b[PX^_][^\x1b]{0,4096}(?:\x1b\\)?"  # DCS, SOS, PM, APC
    r"|\x1b[ -/]*[0-~]"  # two-byte escapes
    r"|\x9b[0-?]*[ -/]*[@-~]"  # CSI as one C1 byte
)
_BARE_COLOUR = re.compile(r"\[(?:\d{1,3}(?:;\d{1,3}){0,4})m")
_HARMFUL = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180e"
    "\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\ud800-\udfff"
    "\U000110bd\U000110cd\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a"
    "\U000e0000-\U000e0fff]"
)
_MARKS = "[\u0300-\u036f\u0483-\u0489\u1ab0-\u1aff\u1dc0-\u1dff\u20d0-\u20ff\ufe20-\ufe2f]"
_STACK = re.compile(f"({_MARKS}{{4}}){_MARKS}+")
"""Marks of no script in particular, more of them on one letter than any writing needs."""
_DROPPED = frozenset("\u200d\ufe0e\ufe0f\u00ad")
"""Joiners and variation selectors: the characters beside them are shown, each by itself."""


def without_escapes(text: str) -> str:
    r"""The text without terminal escapes, whole or decayed: raw, `^[[1m`, `\x1b[1m`, `[36m`."""
    if "\x1b" not in text and "[" not in text and "\x9b" not in text:
        return text
    return _BARE_COLOUR.sub("", _ESCAPES.sub("", text))


def harmless(text: str) -> str:
    """The text as it may be shown: no escape, no control, bidirectional or invisible character."""
    cleaned = _ESCAPES.sub("", text).replace("\t", "    ").replace("\n", " ")
    if cleaned.isascii() and cleaned.isprintable():
        return cleaned
    return _STACK.sub(r"\1", _HARMFUL.sub(_visible, cleaned))


def _visible(match: re.Match[str]) -> str:
    char = match.group()
    if char in _DROPPED:
        return ""
    code = ord(char)
    if code < 0x20:
        return chr(0x2400 + code)
    if code == 0x7F:
        return "\u2421"
    return f"<{code:04X}>"


@lru_cache(maxsize=8192)
def _char_width(char: str) -> int:
    if unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cell_width(text: str) -> int:
    """Cells the text takes on a terminal; expects harmless text."""
    if text.isascii():
        return len(text)
    return sum(map(_char_width, text))


def fitted(text: str, width: int, more: str = "…") -> str:
    """The text cut to at most `width` cells, `more` at the end when something was cut."""
    if cell_width(text) <= width:
        return text
    room = width - cell_width(more)
    if room < 0:
        return more[:width]
    out = []
    for char in text:
        room -= _char_width(char)
        if room < 0:
            break
        out.append(char)
    return "".join(out) + more


def padded(text: str, width: int, *, right: bool = False) -> str:
    """The text cut or padded to exactly `width` cells; `right` aligns it to the right."""
    cut = fitted(text, width)
    gap = " " * (width - cell_width(cut))
    return gap + cut if right else cut + gap
