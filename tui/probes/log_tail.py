"""Follow the run's log: its newest state at once, then every line as it comes.

The last megabyte is read first. What stands before it is read by a second thread, folded into a
story of its own, and joined with what was read since: folding is pure, so the order of reading
does not show in the result.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.miles.bars import newest_bars
from tui.miles.loglines import LogParser
from tui.miles.records import record_of
from tui.miles.stamps import LogClock
from tui.miles.triage import telling
from tui.model.events import (
    BarMoved,
    EngineWorked,
    Event,
    HistoryRead,
    LinesRead,
    LogBroken,
    LogRead,
    LogUnreadable,
)
from tui.model.progress import LogLine, Story
from tui.model.snapshot import Snapshot
from tui.model.story import told
from tui.probes.log_bytes import BLOCK_BYTES, Block, Break, FileFollower, FileRead, Line, decode

WINDOW_BYTES = 1 << 20
CHUNK_BYTES = 1 << 20
_BUDGET_S = 0.3
"""One look never parses for longer: what is left comes with the next."""
_PENDING_LIMIT = 1 << 14
_STAMPED_WITHIN = 2000
"""Lines looked through for a stamp."""

_TOLD = {
    Break.TRUNCATED: "the log was truncated here",
    Break.REPLACED: "the log was replaced by a new file here",
}


class LogProbe:
    """Reads the log of `seen.attachment.log`."""

    name = "log"
    cadence_s = 0.5
    deadline_s = 5.0

    def __init__(self) -> None:
        self._path = ""
        self._follower: FileFollower | None = None
        self._parser = LogParser(LogClock(live=True))
        self._past: _Past | None = None
        self._since: list[Event] | None = None
        """Log events read while the past is being read; None when there is nothing to join."""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """All lines since the last look."""
        if seen.attachment.log is None:
            return ()
        if seen.attachment.log.value != self._path:
            self._begin(seen.attachment.log.value)
        assert self._follower is not None
        if self._past is None:
            self._follower.open_at_end(WINDOW_BYTES)
        events: list[Event] = []
        end = time.monotonic() + _BUDGET_S
        while True:
            read = self._follower.read(CHUNK_BYTES)
            events += self._events(read, now)
            if not read.is_behind or time.monotonic() > end:
                break
        return self._joined(events, now)

    def close(self) -> None:
        """Stop reading the past; the file is closed with the process."""
        if self._past is not None:
            self._past.stop()

    def _begin(self, path: str) -> None:
        self.close()
        self._path = path
        self._follower = FileFollower(Path(path))
        self._parser = LogParser(LogClock(live=True))
        self._past = self._since = None

    def _events(self, read: FileRead, now: float) -> list[Event]:
        assert self._follower is not None
        if read.fault is not None and not read.lines:
            return [LogUnreadable(at=now, path=self._path, fault=read.fault)]
        events: list[Event] = []
        if read.broke is not None:
            events.append(LogBroken(at=now, what=_TOLD[read.broke]))
        arrival: float | None = now
        if self._past is None and read.size_bytes:
            arrival = None
            self._open_past(read)
        events += self._parsed(read.lines, arrival)
        events += _pending_bars(read.pending, now)
        if self._since is not None:
            self._since += events
        events.append(
            LogRead(
                at=now,
                path=self._path,
                size_bytes=read.size_bytes,
                written_at=read.written_at,
                history_ratio=self._past.ratio if self._past is not None else 1.0,
            )
        )
        return events

    def _open_past(self, read: FileRead) -> None:
        """The first bytes were read: set the clock by them, and begin to read what is before."""
        assert self._follower is not None
        stamps = _stamps(read.lines)
        clock = self._parser.clock
        if stamps is not None:
            clock.calibrate(stamps.last, read.written_at, stamps.form)
            clock.begin(stamps.first)
        start = read.lines[0].offset if read.lines else 0
        self._past = _Past(self._follower.history(start), start, clock)
        if start:
            self._since = []
            self._past.start()

    def _parsed(self, lines: Sequence[Line], arrival: float | None) -> list[Event]:
        """The events of some lines. Of batch lines in a row only each engine's newest counts."""
        events: list[Event] = []
        shown: list[LogLine] = []
        working: dict[int, EngineWorked] = {}
        for line in lines:
            parsed = self._parser.feed(decode(line.content), arrival)
            for event in parsed.events:
                if isinstance(event, EngineWorked):
                    working[event.pid] = event
                else:
                    events += [*working.values(), event]
                    working.clear()
            if parsed.line is not None:
                shown.append(parsed.line)
        events += working.values()
        if shown:
            newest = max(line.at for line in shown)
            events.append(LinesRead(at=newest, lines=tuple(shown)))
        return events

    def _joined(self, events: list[Event], now: float) -> list[Event]:
        past = self._past
        if past is None or self._since is None or past.story is None:
            return events
        story = past.story
        for event in self._since:
            story = told(story, event)
        self._since = None
        return [*events, HistoryRead(at=now, story=story)]


def _pending_bars(pending: bytes, now: float) -> list[Event]:
    """A bar that is drawn over and over has no newline until it is full."""
    if b"%|" not in pending:
        return []
    bars = newest_bars(decode(pending[-_PENDING_LIMIT:]))
    return [BarMoved(at=now, name=name, done=done, total=total) for name, done, total in bars]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Stamps:
    """The first and the last stamp of one program: of another it may be in another zone."""

    form: str
    first: float
    last: float


def _stamps(lines: Sequence[Line]) -> _Stamps | None:
    """Those of the program that is heard first; None where nothing has a stamp."""
    first = next(_stamped(lines[:_STAMPED_WITHIN]), None)
    if first is None:
        return None
    form, begin = first
    newest = (stamp for of, stamp in _stamped(reversed(lines[-_STAMPED_WITHIN:])) if of == form)
    return _Stamps(form=form, first=begin, last=next(newest, begin))


def _stamped(lines: Iterable[Line]) -> Iterator[tuple[str, float]]:
    for line in lines:
        record = record_of(decode(line.content))
        if record.stamp is not None:
            yield record.form.value, record.stamp


def first_stamp(follower: FileFollower, size: int) -> float:
    """What stands before the first stamp happened then, as far as anyone can tell."""
    for block in follower.history(min(size, BLOCK_BYTES)):
        for line in block.content.split(b"\n"):
            stamp = record_of(decode(line)).stamp
            if stamp is not None:
                return stamp
    return 0.0


def folded(blocks: Iterable[Block], parser: LogParser, story: Story) -> Iterable[tuple[Story, int]]:
    """The story after each block, with the offset it reaches to."""
    for block in blocks:
        for line in telling(block.content.split(b"\n")):
            for event in parser.feed(decode(line)).events:
                story = told(story, event)
        yield story, block.end_offset


class _Past:
    """The log before our first read, folded by a thread of its own."""

    def __init__(self, blocks: Iterable[Block], until: int, clock: LogClock) -> None:
        self._blocks = blocks
        self._until = until
        self._parser = LogParser(clock.copy(), with_lines=False)
        self._stopping = False
        self._reached = 0
        self.story: Story | None = None
        """Set when all is folded."""

    @property
    def ratio(self) -> float:
        """Share that is folded."""
        return 1.0 if not self._until else min(1.0, self._reached / self._until)

    def start(self) -> None:
        threading.Thread(target=self._fold, name="log-past", daemon=True).start()

    def stop(self) -> None:
        self._stopping = True

    def _fold(self) -> None:
        told_so_far = Story()
        for story, reached in folded(self._blocks, self._parser, Story()):
            # The last step is shown only once the story is there to be joined.
            self._reached = min(reached, self._until - 1)
            told_so_far = story
            if self._stopping:
                return
        self.story = told_so_far
        self._reached = self._until
