"""What became of a box or a run that was recorded: read the record, ask the kernel and the log."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from tui.guard.incidents import Incident, IncidentKind, incidents
from tui.guard.inquest import PostMortem, told
from tui.guard.kernel_log import kernel_lines
from tui.guard.last_lines import last_lines
from tui.guard.past import records_in
from tui.guard.recorder import recorder_of
from tui.guard.records import Box, Record, Session
from tui.guard.sample import Moment
from tui.model.reading import Absence, Unknown

_MOST = 8
_BEFORE_S, _BEHIND_S = 120.0, 10.0
"""The kernel is asked about this much around an incident."""
_MATTER = (IncidentKind.BOX_DOWN, IncidentKind.RUN_DIED, IncidentKind.STOOD_STILL)


def post_mortem_of(
    folder: Path, now: Moment, boot_id: str, *, since: float = 0.0
) -> PostMortem | None:
    """The newest loss in the record of a run: of the box, of the run, of time. None: there is none.

    Args:
        folder: the run's state folder.
        now: see `tui.guard.box.this_moment`.
        boot_id: see `tui.guard.box.this_boot`.
        since: epoch seconds; what was last written before is not read.
    """
    found = _incidents(folder, now, boot_id, since)
    losses = [each for each in found if each.kind in _MATTER] or found
    return _told(losses[-1], now, boot_id) if losses else None


def post_mortems_of(
    folder: Path, now: Moment, boot_id: str, *, since: float = 0.0
) -> tuple[PostMortem, ...]:
    """The newest few holes and deaths in the record of a run, oldest first."""
    return tuple(_told(each, now, boot_id) for each in _incidents(folder, now, boot_id, since))


def _incidents(folder: Path, now: Moment, boot_id: str, since: float) -> list[Incident]:
    return list(deque(incidents(_records(folder, now, boot_id, since)), maxlen=_MOST))


def _records(folder: Path, now: Moment, boot_id: str, since: float) -> Iterator[Record]:
    """The record, and behind it the present: unless someone records it, it is one end of a hole."""
    yield from records_in(folder, since)
    if recorder_of(folder) is None:
        yield Session(
            at=now.at,
            uptime_s=now.uptime_s,
            began_uptime_s=now.uptime_s,
            pid=0,
            utc_offset_s=0,
            box=Box(boot_id=boot_id),
            run=folder.name,
        )


def _told(incident: Incident, now: Moment, boot_id: str) -> PostMortem:
    last, session = incident.before[-1], incident.session
    words = incident.words
    if session is None:
        reason = "the record of which boot it was is damaged"
        return told(incident, Unknown(why=Absence.MISSING, reason=reason), words)
    is_this_boot = session.box.boot_id == boot_id
    kernel = kernel_lines(
        session.box.boot_id,
        last.at - _BEFORE_S,
        _end(incident, now) + _BEHIND_S,
        booted_at=now.at - now.uptime_s if is_this_boot else None,
    )
    if session.log and incident.kind in (IncidentKind.BOX_DOWN, IncidentKind.RUN_DIED):
        words = last_lines(Path(session.log), last.log_bytes, words)
    return told(incident, kernel, words)


def _end(incident: Incident, now: Moment) -> float:
    """When it was over; of a box that went down, when it was started again."""
    if incident.after is not None:
        return incident.after.at
    resumed = incident.resumed
    if resumed is None:
        return now.at
    return resumed.at - (resumed.uptime_s if incident.kind is IncidentKind.BOX_DOWN else 0.0)
