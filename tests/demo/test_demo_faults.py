"""Each fault leaves on disk, on the wire and in the log what it does in a real run."""

from __future__ import annotations

import json
import math
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from demo_runs import run_demo

from tui.demo import faults, launch
from tui.demo.checkpoint import Stage
from tui.demo.launch import DemoRun

DEADLINE_S = 200.0
NO_EVAL = ("--eval-interval", "0")
PARTS = ("model", "optimizer", "lr_scheduler")


def wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def said(run: DemoRun, text: str) -> Callable[[], bool]:
    return lambda: text in run.log.read_text()


def indexed(folder: Path) -> list[str]:
    """The parts of a checkpoint whose index is there."""
    return [part for part in PARTS if (folder / part / ".metadata").exists()]


@pytest.mark.parametrize("stage", list(Stage))
def test_a_killed_save_leaves_what_its_stage_leaves(tmp_path: Path, stage: Stage) -> None:
    argv = ("--num-rollout", "4", "--save-interval", "1", "--fault", f"save-killed-{stage}@1")

    run = run_demo(tmp_path, *NO_EVAL, *argv)

    assert run.code == -signal.SIGKILL
    folder = run.checkpoints / "iter_0000002"
    assert all((folder / part).is_dir() for part in PARTS)
    indexes = 0 if stage < Stage.MODEL_INDEX else 1 if stage < Stage.LR_SCHEDULER else 2
    assert indexed(folder) == list(PARTS[: 3 if stage > Stage.LR_SCHEDULER else indexes])
    assert (folder / "model/__0_0.distcp").exists() == (stage >= Stage.MODEL_SHARD)
    assert (folder / "optimizer/__0_0.distcp").exists() == (stage >= Stage.OPTIMIZER)
    assert (folder / "rng.pt").exists() == (stage >= Stage.RNG)
    assert (folder / "meta.json").exists() == (stage >= Stage.META)
    tracker = (run.checkpoints / "latest_checkpointed_iteration.txt").read_text()
    assert tracker == ("2" if stage >= Stage.TRACKER else "1")
    data_source = run.checkpoints / "rollout/global_dataset_state_dict_1.pt"
    assert data_source.exists() == (stage >= Stage.DATA_SOURCE)
    assert ("Saved checkpoint to" in run.log.splitlines()[-1]) == (stage == Stage.DATA_SOURCE)


def test_a_half_written_shard_is_shorter_than_a_whole_one(tmp_path: Path) -> None:
    run = run_demo(tmp_path, *NO_EVAL, "--save-interval", "1", "--fault", "save-killed-1@1")

    whole, half = (
        (run.checkpoints / folder / "model/__0_0.distcp").stat().st_size
        for folder in ("iter_0000001", "iter_0000002")
    )
    assert 0 < half < whole


def test_after_a_killed_save_a_run_resumes_from_the_one_before(tmp_path: Path) -> None:
    argv = (*NO_EVAL, "--save-interval", "1")
    run_demo(tmp_path, *argv, "--fault", "save-killed-3@1")

    again = run_demo(tmp_path, *argv, "--num-rollout", "2")

    assert [number for number, _ in again.metrics("step")] == [2, 3]
    assert indexed(again.checkpoints / "iter_0000002") == list(PARTS)
    assert "Detected an existing checkpoint" in again.log


def test_a_save_without_its_data_source_resumes_without_it(tmp_path: Path) -> None:
    argv = (*NO_EVAL, "--save-interval", "1")
    run_demo(tmp_path, *argv, "--fault", "save-killed-7@0")

    again = run_demo(tmp_path, *argv, "--num-rollout", "2")

    assert "global_dataset_state_dict_0.pt does not exist." in again.log
    assert [number for number, _ in again.metrics("step")] == [2, 3]


def test_a_full_disk_fails_the_job_and_leaves_a_part(tmp_path: Path) -> None:
    run = run_demo(tmp_path, *NO_EVAL, "--save-interval", "1", "--fault", "disk-full@1")

    assert run.code == 1
    assert "OSError: [Errno 28] No space left on device" in run.job_log
    assert "' failed\x1b[39m" in run.log
    assert indexed(run.checkpoints / "iter_0000002") == ["model"]
    assert (run.checkpoints / "latest_checkpointed_iteration.txt").read_text() == "1"


def test_nan_shows_in_grad_norm_first_then_in_the_loss_and_the_run_goes_on(
    tmp_path: Path,
) -> None:
    run = run_demo(tmp_path, *NO_EVAL, "--num-rollout", "3", "--fault", "nan@1")

    steps = dict(run.metrics("step"))
    broken = {
        key: [number for number, step in steps.items() if step[key] == "nan"]
        for key in ("train/grad_norm", "train/loss")
    }
    assert broken == {"train/grad_norm": [2, 3, 4, 5], "train/loss": [3, 4, 5]}
    assert run.code == 0


def test_a_stalled_run_stops_in_actor_train_and_lives(tmp_path: Path) -> None:
    run = launch.start(tmp_path, speed=600, eval_interval=0, faults=("stall@1",))
    try:
        wait_until(said(run, "Timer actor_train start"), "rollout 0 trains")
        wait_until(
            lambda: run.log.read_text().count("Timer actor_train start") == 2, "rollout 1 trains"
        )
        stalled = run.log.read_text()
        assert "step 2:" not in stalled
        assert run.process.poll() is None
    finally:
        assert run.stop() == -signal.SIGTERM
    assert "' succeeded\x1b[39m" not in run.log.read_text()


def test_without_fault_tolerance_a_dead_engine_ends_the_job(tmp_path: Path) -> None:
    run = run_demo(tmp_path, *NO_EVAL, "--fault", "engine-dies@1", speed=1000)

    url = r"url=http://127.0.0.1:"
    assert f"retrying... (attempt 1/60, {url}" in run.job_log
    assert f"retrying... (attempt 60/60, {url}" in run.job_log
    assert "Max retries (60) reached, failing..." in run.job_log
    assert "ray::RolloutManager.generate()" in run.job_log
    assert [number for number, _ in run.metrics("step")] == [0, 1]
    assert run.code == 1


def test_the_other_engines_finish_the_rollout_and_the_abort_fails(tmp_path: Path) -> None:
    argv = ("--engines", "2", "--fault", "engine-dies@1")

    run = run_demo(tmp_path, *NO_EVAL, *argv, speed=1000)

    assert "/abort_request, response=None)" in run.job_log
    assert run.code == 1


@pytest.mark.parametrize("fault", ["engine-dies", "engine-hangs"])
def test_with_fault_tolerance_a_lost_engine_comes_back_at_the_update(
    tmp_path: Path, fault: str
) -> None:
    argv = ("--engines", "2", "--use-fault-tolerance", "--num-rollout", "3")

    run = run_demo(tmp_path, *NO_EVAL, *argv, "--fault", f"{fault}@1")

    assert run.code == 0
    words = (
        "Health check failed for rollout engine 0",
        "Killing server engine_indices=[0]...",
        "Successfully killed engine at index 0",
        "perf 1: {'rollout/",
        "Ports for engine 0: ",
        "Recovered 1 dead rollout engines (worker_type=regular)",
        "perf 2: {'rollout/",
    )
    at = 0
    for word in words:
        at = run.log.find(word, at)
        assert at >= 0, word


def test_an_engine_that_hangs_leaves_the_bar_where_it_was(tmp_path: Path) -> None:
    run = launch.start(tmp_path, speed=200, eval_interval=0, faults=("engine-hangs@0",))
    try:
        wait_until(said(run, "Rollout generation:  "), "generation starts")
        wait_until(lambda: _hung(run), "no token moves any more")
        assert run.process.poll() is None
        assert "Rollout generation: 100%" not in run.log.read_text()
    finally:
        run.stop()


def _hung(run: DemoRun) -> bool:
    """The log has stood still for a while, well before the rollout's end."""
    before = run.log.stat().st_size
    time.sleep(0.6)
    return run.log.stat().st_size == before and "POST /generate" in run.log.read_text()


def test_the_floor_of_memory_is_reached_within_seconds(tmp_path: Path) -> None:
    run = launch.start(tmp_path, speed=60, eval_interval=0, faults=("memory-floor@0",))
    try:
        wait_until(lambda: _available_gb(run) < 8.0, "memory falls")
    finally:
        run.stop()


def _available_gb(run: DemoRun) -> float:
    if not run.meminfo.exists():
        return math.inf
    rows = dict(line.split(":") for line in run.meminfo.read_text().splitlines())
    return int(rows["MemAvailable"].split()[0]) / 2**20


def test_the_gpu_readings_follow_the_phase(tmp_path: Path) -> None:
    run = launch.start(tmp_path, speed=1, eval_interval=0)
    try:
        wait_until(said(run, "Rollout generation:   0%"), "generation starts")
        wait_until(lambda: _utilisation(run) > 0.9, "the GPU is busy")
    finally:
        run.stop()


def _utilisation(run: DemoRun) -> float:
    [device] = json.loads(run.gpu.read_text())["devices"]
    return float(device["utilisation_ratio"])


def test_faults_are_read_by_name_and_rollout() -> None:
    chosen = faults.parsed(["nan@7", "stall", "save-killed-4@9"])

    assert chosen.since("nan", 7)
    assert not chosen.since("nan", 6)
    assert chosen.now("stall", faults.DEFAULT_ROLLOUT)
    assert chosen.killed_at(9) is Stage.LR_SCHEDULER
    assert chosen.killed_at(8) is None
