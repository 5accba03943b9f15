"""Every move on a job of a real Ray cluster, by commands."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from box import Box
from moves import CHECKPOINT, moved_while_gone, moved_while_it_lives, resumed
from places import RayClient, RayJob, until
from ray_cluster import ADDRESS, RAY, opened_cluster

pytestmark = pytest.mark.ray


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    with opened_cluster(tmp_path_factory.mktemp("cluster")) as box:
        yield box


def test_a_job_is_submitted_again(cluster: Box, tmp_path: Path) -> None:
    with RayJob(cluster, tmp_path) as run:
        moved_while_it_lives(run)
        assert run.jobs.pop("one") == "STOPPED"
        run.kill()
        moved_while_gone(run)
        own = {job: status for job, status in run.jobs.items() if job.startswith("one")}
        assert sorted(own.values()) == ["FAILED", "RUNNING", "STOPPED", "STOPPED"]
        assert all(len(job) == len("one-resume-20261129-181503") for job in own.keys() - {"one"})


def test_the_client_of_a_job_is_started_again_with_another_id(cluster: Box, tmp_path: Path) -> None:
    with RayClient(cluster, tmp_path) as run:
        run.wait_for_checkpoint(CHECKPOINT)
        resumed(run, ["save", "stop", "start", "prove"])
        assert run.logs == ["plain.log", "plain-resume.log"]
        run.kill()
        resumed(run, ["start", "prove"], run.name)
        assert run.logs == ["plain.log", "plain-resume.log", "plain-resume-2.log"]
        own = [status for job, status in run.jobs.items() if job.startswith("two")]
        assert sorted(own) == ["FAILED", "RUNNING", "STOPPED"]


def test_a_job_that_nobody_followed_is_stopped_by_a_person_or_killed(
    cluster: Box, tmp_path: Path
) -> None:
    place = RayJob(cluster, tmp_path)
    place.name = "three"
    with place as run:
        run.wait_for_checkpoint(CHECKPOINT)
        run.wait_for_recipe()
        assert cluster.run(RAY, "job", "stop", *ADDRESS, run.name).returncode == 0
        until(lambda: run.jobs[run.name] == "STOPPED")
        assert _state(cluster, run.name) == "stopped"
        job = run.outcome("resume", run.name)["facts"]["submission_id"]
        run.kill()
        assert _state(cluster, job) == "failed"


def _state(cluster: Box, job: str) -> str:
    told = cluster.milepost("status", "--json", job)
    return str(json.loads(told.stdout)["summary"]["state"])
