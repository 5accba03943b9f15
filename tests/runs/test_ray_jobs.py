"""Ray's list of jobs, as captured and as it can be garbled."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tui.runs.ray_jobs import RayJob, jobs_of, submission_of


def test_a_captured_answer(data: Path) -> None:
    jobs = jobs_of((data / "captures" / "ray-jobs.json").read_text())
    assert jobs == (
        RayJob(
            submission_id="raysubmit_RTeF8VHLjG1rkgw5",
            status="SUCCEEDED",
            entrypoint="python3 /root/miles/train.py --save /ckpt/run-a --load /ckpt/run-a "
            "--save-interval 20 --num-rollout 200",
            message="Job finished successfully.",
            driver_pid=21924,
            started_at=1795952349.126,
            ended_at=1795952355.192,
        ),
    )
    assert not jobs[0].is_active
    assert jobs[0].driver_log == (
        "/tmp/ray/session_latest/logs/job-driver-raysubmit_RTeF8VHLjG1rkgw5.log"
    )


@pytest.mark.parametrize("text", ["", "{}", "<html>", '{"jobs": []}', "null", "[1"])
def test_what_is_no_answer_of_ray(text: str) -> None:
    assert jobs_of(text) is None


def test_odd_entries_are_left_out_or_get_defaults() -> None:
    entries = [
        3,
        {},
        {"submission_id": None, "job_id": "02000000", "status": "RUNNING"},
        {"submission_id": "a", "driver_info": None, "start_time": None, "status": "PENDING"},
        {"submission_id": "b", "driver_info": {"pid": "x"}, "start_time": 5000, "entrypoint": None},
    ]
    assert jobs_of(json.dumps(entries)) == (
        RayJob(submission_id="b", status="", started_at=5.0),
        RayJob(submission_id="a", status="PENDING"),
    )


@pytest.mark.parametrize(
    ("output", "environment", "submission"),
    [
        ("/tmp/ray/session_x/logs/job-driver-raysubmit_AB.log", "", "raysubmit_AB"),
        ("/runs/plain.log", 'X={"metadata": {"job_submission_id": "mine", "job_name": "m"}}', "mine"),
        ("/runs/plain.log", "A=b", ""),
        ("", "", ""),
    ],
)  # fmt: skip
def test_the_job_of_a_driver(output: str, environment: str, submission: str) -> None:
    assert submission_of(output, environment) == submission


def test_an_entrypoint_is_not_shown() -> None:
    assert "hidden" not in repr(
        RayJob(submission_id="a", status="RUNNING", entrypoint="train.py --wandb-key hidden")
    )
