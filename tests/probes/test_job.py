"""How a Ray job ended is asked of Ray, where its own log just stops."""

from __future__ import annotations

import json
from dataclasses import replace
from typing import Any

import fakes
import pytest
from fake_box import NOW

from tui.model.events import End, JobEnded, TimePassed
from tui.model.launch import Attachment, Found, Process, ProcessTree
from tui.model.progress import Ending
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.reduce import reduce
from tui.model.snapshot import RunState, Snapshot
from tui.probes.job import JobProbe

WATCHED = Attachment(
    log=Found(value="/tmp/ray/session_latest/logs/job-driver-one.log", source="Ray"),
    job=Found(value="one", source="Ray's list of jobs"),
)
QUOTING = (
    "Job entrypoint command failed with exit code 137, last available logs (truncated to 20,000 "
    "chars):\nWANDB_API_KEY=" + "5" * 40
)


class Ray:
    """Answers with these jobs, and counts."""

    def __init__(self, *jobs: dict[str, Any]) -> None:
        self.jobs = list(jobs)
        self.asked = 0

    def __call__(self, at: float) -> Reading[str]:
        self.asked += 1
        return known(json.dumps(self.jobs), at)


def job(status: str, **changes: Any) -> dict[str, Any]:
    fields = {"submission_id": "one", "status": status, "start_time": 1_000, "message": ""}
    return {**fields, **changes}


def watched(**changes: Any) -> Snapshot:
    return replace(Snapshot(now=NOW, attachment=WATCHED), **changes)


@pytest.mark.parametrize(
    ("status", "end", "state"),
    [
        ("STOPPED", End.STOPPED, RunState.STOPPED),
        ("FAILED", End.FAILED, RunState.FAILED),
        ("SUCCEEDED", End.SUCCEEDED, RunState.FINISHED),
    ],
)
def test_how_it_ended(status: str, end: End, state: RunState) -> None:
    ended = job(status, end_time=(NOW - 5.0) * 1_000, message=QUOTING)
    snapshot = watched(story=replace(fakes.running().story, ending=None))
    (event,) = JobProbe(Ray(ended)).read(NOW, snapshot)
    after = reduce(reduce(snapshot, event), TimePassed(at=NOW))

    assert isinstance(event, JobEnded)
    assert (event.at, event.end) == (NOW - 5.0, end)
    assert after.verdict.state is state
    if status == "FAILED":
        assert event.detail == "Job entrypoint command failed with exit code 137"


@pytest.mark.parametrize(
    "jobs", [(), (job("RUNNING"),), (job("PENDING"),), (job("FAILED", submission_id="two"),)]
)
def test_what_goes_on_or_is_another_has_not_ended(jobs: tuple[dict[str, Any], ...]) -> None:
    assert JobProbe(Ray(*jobs)).read(NOW, watched()) == ()


@pytest.mark.parametrize("answer", ["", "[", "{}", "[1]", '[{"submission_id": "one"}]'])
def test_what_is_no_answer_of_ray_ends_nothing(answer: str) -> None:
    assert JobProbe(lambda at: known(answer, at)).read(NOW, watched()) == ()


def test_where_ray_does_not_answer_nothing_is_told() -> None:
    fault = Unknown(why=Absence.TIMED_OUT, reason="no answer", at=NOW)

    assert JobProbe(lambda _: fault).read(NOW, watched()) == ()


def test_it_is_asked_seldom_while_the_driver_lives_and_at_once_when_it_is_gone() -> None:
    ray = Ray(job("RUNNING"))
    probe = JobProbe(ray)
    process = Process(pid=40, started_at=1.0, role="driver")
    lives = watched(processes=known(ProcessTree(processes=(process,)), NOW))
    gone = watched(processes=known(ProcessTree(driver_exited_at=NOW), NOW))
    for second in range(0, 20, 2):
        probe.read(NOW + second, lives)
    calm = ray.asked
    for second in range(20, 40, 2):
        probe.read(NOW + second, gone)

    assert calm == 2
    assert ray.asked == calm + 10


def test_no_job_and_one_whose_end_is_known_are_not_asked_about() -> None:
    ray = Ray(job("FAILED"))
    ending = Ending(end=End.STOPPED.value, detail="", at=NOW)
    JobProbe(ray).read(NOW, Snapshot(now=NOW))
    JobProbe(ray).read(NOW, watched(story=replace(Snapshot().story, ending=ending)))

    assert ray.asked == 0


def test_the_end_of_a_job_that_was_watched_before_is_no_news() -> None:
    later = replace(WATCHED, job=Found(value="one-resume-20261129-000000", source="started"))
    event = JobEnded(at=NOW, submission_id="one", end=End.FAILED)

    assert reduce(watched(attachment=later), event).story.ending is None
