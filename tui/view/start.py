"""The screen when there is nothing to watch: what was looked for, and what to do instead."""

from __future__ import annotations

from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs
from tui.view.compose import drawn, drawn_row, drawn_text, words, wrapped
from tui.view.numbers import time_of_day
from tui.view.rows import Look, Role, Row, Span

_WAYS = (
    ("milepost --log FILE", "read this log, and follow it while it grows"),
    ("milepost --container NAME", "watch the run in this container"),
    ("milepost --checkpoints DIR", "look at these checkpoints"),
    ("milepost demo", "watch a simulated run: no GPU, Docker or Miles needed"),
)
_COMMAND = 28
_WIDE_FROM = _COMMAND + 2 + max(len(what) for _, what in _WAYS)


def title(snapshot: Snapshot, look: Look) -> str:
    looked = time_of_day(snapshot.now, look.utc_offset_s)
    return drawn_text(f"No run found {glyphs.DOT} looked at {looked}", look)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    notes = snapshot.attachment.notes or (snapshot.verdict.reason or "nothing was looked for",)
    out: list[Row] = [words("No Miles run was found on this box.", Role.STRONG), ()]
    for note in notes:
        out += _hanging(f"{glyphs.DASH} ", harmless(note), width)
    out += [(), words("What you can do:", Role.LABEL)]
    for command, what in _WAYS:
        if width >= _WIDE_FROM:
            out.append((Span(f"  {command:<{_COMMAND}}", Role.KEY), Span(what, Role.TEXT)))
        else:
            out += [words(f"  {command}", Role.KEY), *_hanging("    ", what, width)]
    return drawn(out, width, height, look)


def summary(snapshot: Snapshot, width: int, look: Look) -> Row:
    notes = snapshot.attachment.notes or ("nothing was found to watch",)
    return drawn_row(words(f"No run found: {harmless(notes[0])}", Role.MUTED), width, look)


def _hanging(lead: str, text: str, width: int) -> list[Row]:
    lines = wrapped(text, max(1, width - len(lead)))
    return [
        (Span(lead if i == 0 else " " * len(lead), Role.MUTED), Span(line, Role.TEXT))
        for i, line in enumerate(lines)
    ]
