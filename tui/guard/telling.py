"""Which lines of a run's log are kept beside the samples. Pure."""

from __future__ import annotations

from tui.guard.records import Words
from tui.model.progress import LineKind, LogLine

_ROUTINE = frozenset({LineKind.HTTP, LineKind.BAR, LineKind.ENGINE, LineKind.MARK})
"""Most lines of a log, and what they tell is in the samples."""
_MOST, _LOOKED_THROUGH = 2, 200
_TEXT_CHARS, _SOURCE_CHARS = 160, 32


def is_telling(line: LogLine) -> bool:
    """It says something that no sample does."""
    return line.kind not in _ROUTINE and bool(line.text)


def words_of(line: LogLine) -> Words:
    """The line as it is kept."""
    source = line.source[:_SOURCE_CHARS]
    return Words(at=round(line.at, 2), source=source, text=line.text[:_TEXT_CHARS])


def words_since(seen: LogLine | None, lines: tuple[LogLine, ...]) -> tuple[Words, ...]:
    """The newest two telling lines behind `seen`, oldest first."""
    words: list[Words] = []
    for line in lines[: -_LOOKED_THROUGH - 1 : -1]:
        if line is seen or len(words) == _MOST:
            break
        if is_telling(line):
            words.append(words_of(line))
    return tuple(reversed(words))
