"""Text that must reach no terminal as anything but text, and how a test knows that it did not."""

from __future__ import annotations

import re
import unicodedata

STRINGS = (
    "\x1b[2J\x1b[H",
    "\x1b[3;7;9;53m",
    "\x1b[?1049l\x1b[?47h",
    "\x1b]0;title\x07",
    "\x1b]8;;http://192.0.2.9/\x1b\\link\x1b]8;;\x1b\\",
    "\x1b]52;c;aGFja2Vk\x07",
    "\x1bP+q544e\x1b\\",
    "\x1b_Ga=T;AAAA\x1b\\",
    "\x1b[",
    "\x1b]52;c;unfinished",
    "\x1bc\x1b(0",
    "\x9b2J",
    "\x9d52;c;x\x9c",
    "\x90q\x9c",
    "\x07\x08\x0b\x0c\x0e\x0f\x00\x7f\x05\x85",
    "\r\r\roverwritten",
    "\u202egnirts\u2066\u2069\u200f\u061c",
    "zero\u200bwidth\u2060\ufeff\u00ad",
    "\u2028\u2029",
    "e" + "\u0301\u0316\u20dd" * 400,
    "回答は四十二です",
    "👩\u200d🔬🏳\ufe0f\u200d🌈🇩🇪",
    "[/]",
    "[@click=app.quit]x[/]",
    "[link=http://192.0.2.9]x[/link]",
    "[bold red]x[/bold red]",
    "$(reboot) `reboot` ${x} %s %n {0} {x}",
    "\ud800\udfff",
    "\udc9b2J",
    "\U000e0041\U000e007f",
    "x" * 20_000,
)
"""One of each kind."""

SGR = re.compile(r"\x1b\[[0-9;]*m")


def unmeant(text: str, allowed: re.Pattern[str] | None = None) -> list[str]:
    """What is more than text: controls, formats, surrogates, stacks; lines may end."""
    if allowed is not None:
        text = allowed.sub("", text)
    found = sorted(
        {c for c in text if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp") and c != "\n"}
    )
    stacks = re.findall(r"[\u0300-\u036f\u20d0-\u20ff]{9,}", text)
    return [repr(one) for one in (*found, *stacks)]
