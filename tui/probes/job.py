"""The run's Ray job, asked of the cluster: how it ended, where nobody followed its output.

Only then: while it runs, everything else tells more. A driver's own log stops with the driver.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from tui.miles.secrets import masked_text
from tui.model.events import End, Event, JobEnded
from tui.model.reading import Known, Reading, Unknown
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.runs.ray_jobs import RayJob, jobs_of

_ENDS: Mapping[str, End] = {
    "SUCCEEDED": End.SUCCEEDED,
    "STOPPED": End.STOPPED,
    "FAILED": End.FAILED,
}
_CALM_S = 10.0
"""Between two questions while its driver is seen to live."""


class JobProbe:
    """Asks for the list of jobs until the watched one has ended."""

    name = "job"
    cadence_s = 2.0
    deadline_s = 10.0

    def __init__(self, ask: Callable[[float], Reading[str]]) -> None:
        """`ask`: Ray's answer about its jobs."""
        self._ask = ask
        self._asked_at = 0.0

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """That it has ended, and how; nothing while it has not, or Ray does not answer."""
        job, ending = seen.attachment.job, seen.story.ending
        if job is None or (ending is not None and ending.end != End.DRIVER_ERROR):
            return ()
        if _driver_lives(seen) and 0.0 <= now - self._asked_at < _CALM_S:
            return ()
        self._asked_at = now
        answer = self._ask(now)
        listed = jobs_of(answer.value) if not isinstance(answer, Unknown) else None
        its = next((each for each in listed or () if each.submission_id == job.value), None)
        return _end_of(its, now) if its is not None else ()

    def close(self) -> None:
        """Nothing is held."""


def _driver_lives(seen: Snapshot) -> bool:
    table = seen.processes
    return isinstance(table, Known) and not table.value.driver_exited_at


def _end_of(job: RayJob, now: float) -> Sequence[Event]:
    end = _ENDS.get(job.status)
    if end is None:
        return ()
    at = min(job.ended_at or now, now)
    detail = harmless(masked_text(job.message)) if end is End.FAILED else ""
    return (JobEnded(at=at, submission_id=job.submission_id, end=end, detail=detail),)
