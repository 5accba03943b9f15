"""Healthy runs raise no alert: not the captured ones, and not a long simulated one."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from tui.cli.commands import demo_attachment, demo_config
from tui.config import Config
from tui.demo.launch import start
from tui.explain import explained
from tui.model.snapshot import RunState, Snapshot
from tui.watch import monitor_of

DEADLINE_S = 400.0
SPEED, ROLLOUTS = 3000.0, 500


def told(snapshot: Snapshot) -> list[str]:
    return [f"{record.alert.code}: {record.alert.line}" for record in snapshot.alert_log]


@pytest.mark.parametrize("name", ["fresh", "resume", "sentinel"])
def test_a_captured_run_that_went_well(data: Path, name: str) -> None:
    snapshot = explained(data / "captures" / f"{name}.log")
    assert snapshot.verdict.state is RunState.FINISHED
    assert told(snapshot) == []


def test_a_captured_run_whose_trainer_died_tells_of_that_alone(data: Path) -> None:
    snapshot = explained(data / "captures" / "actordied.log")
    assert [record.alert.code for record in snapshot.alert_log] == ["run-failed"]


@pytest.mark.parametrize("engines", [1, 2])
def test_five_hundred_rollouts(tmp_path: Path, engines: int) -> None:
    """With evals, saves, long-tail rollouts and engines that are offloaded while the trainer works."""
    run = start(
        tmp_path, speed=SPEED, num_rollout=ROLLOUTS, save_interval=10, eval_interval=20,
        engines=engines,
    )  # fmt: skip
    config = demo_config(Config(interval_s=0.2), SPEED)
    monitor = monitor_of(demo_attachment(run), config, at=time.time(), demo_folder=run.directory)
    over = threading.Event()
    try:
        monitor.start(lambda seen: over.set() if seen.verdict.state is RunState.FINISHED else None)
        assert over.wait(DEADLINE_S), monitor.latest.verdict
    finally:
        monitor.stop()
        run.stop()

    assert told(monitor.latest) == []
    assert monitor.latest.story.rollouts_done == ROLLOUTS
    assert told(explained(run.log, checkpoints=run.checkpoints)) == []
