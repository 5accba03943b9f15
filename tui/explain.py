"""Read a finished or copied log and judge it by its own clock. Needs nothing but files."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tui.errors import NothingFoundError, UsageError
from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock, seconds_of
from tui.model.checkpoint import CheckpointTree
from tui.model.events import CheckpointsScanned, LinesRead, LogRead, TimePassed
from tui.model.launch import Attachment, Found
from tui.model.progress import Story
from tui.model.reading import mapped
from tui.model.reduce import reduce
from tui.model.snapshot import Snapshot
from tui.probes.checkpoints import CheckpointsProbe
from tui.probes.log_bytes import FileFollower, decode
from tui.probes.log_tail import first_stamp, folded

TICK_S = 30.0
"""Judged at least this often in the log's own time, so that an alert that came and went is seen."""
_TAIL_BYTES = 8 << 20
"""Read line by line and judged on the way; what is before is folded only."""
_TIME = re.compile(r"(?:(\d{4}-\d\d-\d\d)[ T])?(\d\d:\d\d(?::\d\d)?)$")
_LATER = re.compile(r"\+(\d+(?:\.\d+)?)([smhd])$")
_UNITS = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

_ZONE_STEP_S, _ZONE_LIMIT_S = 900.0, 15 * 3600.0

Report = Callable[[float], None]


def explained(
    log: Path,
    *,
    checkpoints: Path | None = None,
    as_of: str | None = None,
    report: Report = lambda _: None,
) -> Snapshot:
    """The snapshot that a log leaves behind, judged at its last line or at `as_of`.

    Args:
        log: the file.
        checkpoints: the run's save folder; without it the log alone speaks.
        as_of: a time of the log's own clock, see `moment_of`.
        report: told the share that is read, from 0.0 to 1.0.

    Raises:
        NothingFoundError: the log cannot be read.
        UsageError: `as_of` is no time.
    """
    follower = FileFollower(log)
    start, size = follower.open_at_end(_TAIL_BYTES)
    parser = LogParser(LogClock(live=False))
    parser.clock.begin(first_stamp(follower, size))
    snapshot = _attached(log, checkpoints)
    for story, reached in folded(follower.history(start), parser, snapshot.story):
        snapshot = replace(snapshot, story=story)
        report(reached / size)
    snapshot, written_at = _with_tail(snapshot, parser, follower, report)
    end = parser.clock.last_at or 0.0
    snapshot = reduce(
        snapshot, LogRead(at=end, path=str(log), size_bytes=size, written_at=written_at)
    )
    now = moment_of(as_of, end) if as_of else end
    if checkpoints is not None:
        snapshot = _scanned(snapshot, now, written_at - end)
    return reduce(snapshot, TimePassed(at=now))


def moment_of(text: str, end: float) -> float:
    """`2026-11-29 12:08`, `12:08:30` (on the last line's day) or `+15m` (after the last line).

    Raises:
        UsageError: it is none of these.
    """
    if later := _LATER.match(text.strip()):
        return end + float(later.group(1)) * _UNITS[later.group(2)]
    if match := _TIME.match(text.strip()):
        clock = match.group(2) if len(match.group(2)) == 8 else f"{match.group(2)}:00"
        midnight = end - end % 86400.0
        day = seconds_of(f"{match.group(1)} 00:00:00") if match.group(1) else midnight
        moment = seconds_of(f"1970-01-01 {clock}")
        if day is not None and moment is not None:
            return day + moment
    raise UsageError(
        f"--as-of {text!r} is no time", "write '2026-11-29 12:08', '12:08:30' or '+15m'"
    )


def _attached(log: Path, checkpoints: Path | None) -> Snapshot:
    return Snapshot(
        live=False,
        attachment=Attachment(
            name=log.stem,
            log=Found(value=str(log), source="command line"),
            checkpoints=Found(value=str(checkpoints), source="--checkpoints")
            if checkpoints
            else None,
        ),
    )


def _with_tail(
    snapshot: Snapshot, parser: LogParser, follower: FileFollower, report: Report
) -> tuple[Snapshot, float]:
    """The snapshot after the end of the log, and when the file was last written."""
    ticked_at: float | None = None
    while True:
        read = follower.read()
        if read.fault is not None:
            raise NothingFoundError(read.fault.reason, "give the run's log file")
        contents = [line.content for line in read.lines]
        if not read.is_behind and read.pending:
            contents.append(read.pending)
        for content in contents:
            snapshot, ticked_at = _with_line(snapshot, parser, decode(content), ticked_at)
        if not read.is_behind:
            report(1.0)
            return snapshot, read.written_at
        report(min(1.0, read.lines[-1].offset / read.size_bytes) if read.lines else 1.0)


def _with_line(
    snapshot: Snapshot, parser: LogParser, text: str, ticked_at: float | None
) -> tuple[Snapshot, float | None]:
    parsed = parser.feed(text)
    at = parser.clock.last_at or 0.0
    if ticked_at is None or at - ticked_at >= TICK_S:
        if ticked_at is not None:
            snapshot = reduce(snapshot, TimePassed(at=at))
        ticked_at = at
    for event in parsed.events:
        snapshot = reduce(snapshot, event)
    if parsed.line is not None:
        snapshot = reduce(snapshot, LinesRead(at=parsed.line.at, lines=(parsed.line,)))
    return snapshot, ticked_at


def _scanned(snapshot: Snapshot, now: float, offset_s: float) -> Snapshot:
    """With the save folder, its times set to the log's clock."""
    (event,) = CheckpointsProbe().read(now + offset_s, snapshot)
    assert isinstance(event, CheckpointsScanned)
    tree = mapped(event.tree, lambda scanned: _in_log_time(scanned, snapshot.story, offset_s))
    return reduce(snapshot, CheckpointsScanned(at=now, tree=tree))


def _in_log_time(tree: CheckpointTree, story: Story, offset_s: float) -> CheckpointTree:
    """A save that log and folder both tell of ties their clocks; zones differ by quarter hours."""
    saved_at = {save.iteration: save.saved_at for save in story.saves}
    for checkpoint in tree.checkpoints:
        said = saved_at.get(checkpoint.iteration)
        if said is not None and abs(checkpoint.taken_at - said) <= _ZONE_LIMIT_S:
            offset_s = round((checkpoint.taken_at - said) / _ZONE_STEP_S) * _ZONE_STEP_S
            break
    moved = tuple(
        replace(checkpoint, taken_at=checkpoint.taken_at - offset_s)
        for checkpoint in tree.checkpoints
    )
    return replace(tree, checkpoints=moved)
