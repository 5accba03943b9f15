"""What a recorder writes, and when: samples that are due, the log's telling lines, who records.

A tape that cannot be written to drops what it is given, tries again with every sample that is due,
and once it can, says how much it dropped and why.
"""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from tui.guard.records import Box, Dropped, Ended, Session, written
from tui.guard.ring import DAYS, LIMIT_BYTES, Ring
from tui.guard.sample import Moment, Sample, is_due, sample_of
from tui.guard.telling import words_since
from tui.model.progress import LogLine
from tui.model.reading import Known
from tui.model.snapshot import Snapshot
from tui.runs.lock import LockHeldError

SAMPLES = "samples"
_LOG = logging.getLogger("milepost")
_ROSTER, _PATH_CHARS = 64, 1024


class Tape:
    """Everything a recorder does but wait."""

    def __init__(
        self, folder: Path, box: Box, *, days: int = DAYS, limit_bytes: int = LIMIT_BYTES
    ) -> None:
        self._ring = Ring(folder / SAMPLES, days=days, limit_bytes=limit_bytes)
        self._run = folder.name
        self._box = box
        self._began_uptime_s: float | None = None
        self._session: Session | None = None
        self._last: Sample | None = None
        self._line: LogLine | None = None
        self._dropped: Dropped | None = None
        self.notice = ""
        """Why nothing is recorded now; empty while it is."""

    def take(self, looks: Iterable[tuple[Moment, Snapshot]]) -> None:
        """Record what is due of these, in one write."""
        lines, due = b"", list[tuple[Moment, Snapshot]]()
        for moment, snapshot in looks:
            sample = sample_of(snapshot, moment)
            if not is_due(self._last, sample, snapshot.limits.memory_critical_bytes):
                continue
            words = words_since(self._line, snapshot.lines)
            lines += b"".join(map(written, words)) + written(sample)
            due.append((moment, snapshot))
            self._last = sample
            self._line = snapshot.lines[-1] if snapshot.lines else None
        if due:
            self._write(*due[-1], lines, count=len(due))

    def end(self, moment: Moment) -> None:
        """Say that this was the end, and not the power."""
        if self._session is not None and not self.notice:
            try:
                self._ring.append(written(Ended(at=round(moment.at, 2))))
            except OSError as fault:
                self._drop(moment, fault, count=0)
        self._ring.release()

    def _write(self, moment: Moment, snapshot: Snapshot, lines: bytes, *, count: int) -> None:
        try:
            is_begun = self._ring.begin(moment, f"process {os.getpid()}")
            session = self._session_of(moment, snapshot)
            if is_begun or _is_news(session, self._session):
                lines = written(session) + lines
            if self._dropped is not None:
                lines = written(self._dropped) + lines
            self._ring.append(lines)
        except LockHeldError as held:
            self._began_uptime_s = self._session = self._dropped = None
            self._say(f"{held.holder} records this run")
        except OSError as fault:
            self._drop(moment, fault, count=count)
        else:
            self._session, self._dropped = session, None
            self._say("")

    def _session_of(self, moment: Moment, snapshot: Snapshot) -> Session:
        if self._began_uptime_s is None:
            self._began_uptime_s = round(moment.uptime_s, 2)
        box = self._box
        if isinstance(snapshot.gpus, Known):
            box = replace(box, driver=snapshot.gpus.value.driver_version or box.driver)
        return Session(
            at=round(moment.at, 2),
            uptime_s=round(moment.uptime_s, 2),
            began_uptime_s=self._began_uptime_s,
            pid=os.getpid(),
            utc_offset_s=time.localtime(moment.at).tm_gmtoff,
            box=box,
            run=self._run,
            log=snapshot.log.path[:_PATH_CHARS],
            roster=_roster(snapshot),
        )

    def _drop(self, moment: Moment, fault: OSError, *, count: int) -> None:
        self._ring.release()
        self._session = None
        before = self._dropped
        self._dropped = Dropped(
            at=moment.at,
            since=before.since if before else moment.at,
            count=count + (before.count if before else 0),
            reason=fault.strerror or str(fault),
        )
        self._say(f"nothing is recorded: {self._dropped.reason}")

    def _say(self, notice: str) -> None:
        if notice and notice != self.notice:
            _LOG.warning("%s", notice)
        self.notice = notice


def _roster(snapshot: Snapshot) -> tuple[tuple[int, str], ...]:
    if not isinstance(snapshot.processes, Known):
        return ()
    known = sorted((each.pid, each.role) for each in snapshot.processes.value.processes)
    return tuple(known[:_ROSTER])


def _is_news(session: Session, before: Session | None) -> bool:
    """It says something that was not said before."""
    if before is None:
        return True
    return replace(session, at=before.at, uptime_s=before.uptime_s) != before
