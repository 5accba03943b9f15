"""What is pasted is one text, never keys: an escape character in it would end it early.

Most terminals take escapes out of a paste; a multiplexer that pastes its own buffer does not.
"""

from __future__ import annotations

BEGIN, END = "\x1b[200~", "\x1b[201~"


class PasteGuard:
    """Feed it what the terminal sends, in pieces; escapes inside a paste are left out."""

    def __init__(self) -> None:
        self._pasting = False
        self._held = ""
        """The end of the last piece, where it may be the beginning of `END`."""

    def feed(self, text: str) -> str:
        """The text as it may be read for keys."""
        text, self._held = self._held + text, ""
        out: list[str] = []
        while text:
            part, mark, text = text.partition(END if self._pasting else BEGIN)
            if self._pasting:
                part = self._pasted(part, is_last=not mark)
            out += (part, mark)
            self._pasting = self._pasting != bool(mark)
        return "".join(out)

    def _pasted(self, part: str, *, is_last: bool) -> str:
        if is_last:
            size = next((n for n in range(len(END) - 1, 0, -1) if part.endswith(END[:n])), 0)
            self._held = part[len(part) - size :]
            part = part[: len(part) - size]
        return part.replace("\x1b", "")
