"""The last telling lines of a run's log: those recorded, and what the file has behind them.

A log's end is often lost with the box, and the file may since have become another run's. So it adds
to the record only where it holds the newest line that was recorded.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tui.guard.records import Words
from tui.guard.telling import is_telling, words_of
from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock
from tui.model.events import RunLaunched, RunSubmitted
from tui.probes.log_bytes import decode

_AROUND_BYTES = 128 << 10
_MOST = 12


def last_lines(log: Path, seen_bytes: int, recorded: tuple[Words, ...]) -> tuple[Words, ...]:
    """The recorded lines, and those behind them in the file up to the next start of a run.

    Args:
        log: the run's log.
        seen_bytes: how long it was when it was last seen.
        recorded: the newest telling lines as they were recorded, oldest first.
    """
    if not recorded:
        return ()
    newest = recorded[-1]
    behind: deque[Words] | None = None
    try:
        for is_seen, begins, words in _lines(log, seen_bytes):
            if begins and not is_seen:
                break
            if words is None:
                continue
            if is_seen and (words.source, words.text) == (newest.source, newest.text):
                behind = deque(maxlen=_MOST)
            elif behind is not None:
                behind.append(words)
    except OSError:
        return recorded
    return (*recorded, *(behind or ()))


def _lines(log: Path, seen_bytes: int) -> Iterator[tuple[bool, bool, Words | None]]:
    """Whether it had been seen, whether a run begins with it, and what it tells. Raises OSError."""
    offset = max(0, seen_bytes - _AROUND_BYTES)
    parser = LogParser(LogClock(live=False))
    for line in _read(log, offset).split(b"\n"):
        parsed = parser.feed(decode(line))
        begins = any(isinstance(event, RunSubmitted | RunLaunched) for event in parsed.events)
        tells = parsed.line is not None and is_telling(parsed.line)
        words = words_of(parsed.line) if parsed.line is not None and tells else None
        yield offset < seen_bytes, begins, words
        offset += len(line) + 1


def _read(log: Path, offset: int) -> bytes:
    number = os.open(log, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        return os.pread(number, 2 * _AROUND_BYTES, offset)
    finally:
        os.close(number)
