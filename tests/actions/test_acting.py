"""The moves as commands, on a simulated run: a real process, real files, a real executor."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from acting import ActedOn, acted_on, until


@pytest.fixture
def run(tmp_path: Path) -> Iterator[ActedOn]:
    with acted_on(tmp_path, save_interval=3) as acted:
        yield acted


def test_saved_now_it_is_whole_on_disk(run: ActedOn) -> None:
    record = run.outcome("save", *run.target)
    assert record["state"] == "done"
    assert "is whole" in record["line"]
    assert not run.run.save_trigger.exists()


def test_killed_and_resumed_it_goes_on_at_the_right_step(run: ActedOn) -> None:
    run.wait_for_checkpoint(3)
    before = run.run.log.read_bytes()
    record = run.outcome("resume", *run.target)
    assert record["steps"] == ["save", "stop", "start", "prove"]
    iteration = int(record["facts"]["tracker_at_start"])
    assert record["line"] == f"resumed at rollout {iteration} from iteration {iteration}"
    assert [log.name for log in run.logs] == ["plain.log", "plain-resume.log"]
    assert run.run.log.read_bytes().startswith(before)
    assert len(run.drivers()) == 1


def test_a_run_that_is_dead_is_resumed_by_its_name(run: ActedOn) -> None:
    run.wait_for_checkpoint(3)
    run.milepost("status", *run.target, code=None)
    until(lambda: any(run.state.rglob("recipe.json")))
    run.run.process.kill()
    run.run.process.wait()
    until(lambda: not run.drivers())
    record = run.outcome("resume", *run.target)
    assert record["steps"] == ["start", "prove"]
    assert record["state"] == "done", record["line"]
    assert len(run.drivers()) == 1


def test_stopped_without_saving_nothing_of_it_is_left(run: ActedOn) -> None:
    record = run.outcome("stop", "--no-save-first", *run.target)
    assert record["steps"] == ["stop"]
    assert record["state"] == "done"
    assert run.drivers() == []


def test_rolled_back_and_undone_everything_is_where_it_was(run: ActedOn) -> None:
    run.wait_for_checkpoint(6)
    run.outcome("stop", "--no-save-first", *run.target)
    names = sorted(path.name for path in run.run.checkpoints.rglob("*"))
    tracker = run.tracker
    record = run.outcome("rollback", "3", *run.target)
    assert record["state"] == "done", record["line"]
    assert run.tracker == "3"
    assert not (run.run.checkpoints / "iter_0000006").exists()
    run.outcome("rollback", "--undo", *run.target)
    assert run.tracker == tracker
    assert sorted(path.name for path in run.run.checkpoints.rglob("*")) == names


def test_converted_every_weight_is_proven_to_have_arrived(run: ActedOn) -> None:
    run.wait_for_checkpoint(3)
    record = run.outcome("convert", "3", *run.target)
    assert record["state"] == "done", record["line"]
    assert "parameters arrived" in record["line"]
    output = Path(record["facts"]["output"])
    assert (output / "model.safetensors").exists()
    assert run.milepost("convert", "3", "--yes", *run.target, code=8).startswith("milepost: ")


def test_a_dry_run_changes_nothing_and_begins_nothing(run: ActedOn) -> None:
    told = run.milepost("resume", "--dry-run", *run.target)
    assert "Will stop" in told
    assert "plain-resume.log" in "".join(told.split())
    assert not any(run.state.rglob("plans"))
    document = json.loads(run.milepost("stop", "--dry-run", "--json", *run.target))
    assert document["steps"][-1] == "stop"
    assert len(run.drivers()) == 1


def test_nobody_there_to_confirm_is_a_refusal(run: ActedOn) -> None:
    told = run.milepost("stop", *run.target, code=2)
    assert "--yes" in told
    assert len(run.drivers()) == 1


def test_read_only_refuses_at_the_desk(run: ActedOn, tmp_path: Path) -> None:
    config = tmp_path / "config.toml"
    config.write_text("read_only = true\n")
    told = run.milepost("stop", "--yes", "--config", str(config), *run.target, code=8)
    assert "read-only" in told
    assert len(run.drivers()) == 1


def test_a_fresh_start_where_a_resume_was_meant_is_stopped_before_it_saves(run: ActedOn) -> None:
    run.wait_for_checkpoint(3)
    argv = [word for word in run.run.argv if word != "--leash"]
    at = argv.index("--load")
    fresh = [*argv[: at + 1], "/nowhere", *argv[at + 2 :]]
    run.outcome("stop", "--no-save-first", *run.target)
    tracker = run.tracker
    told = run.milepost("resume", "--yes", *run.target, "--", *fresh, code=5)
    assert "fresh" in told
    assert "stopped before its first save" in told
    assert run.drivers() == []
    assert run.tracker == tracker


def test_a_start_that_dies_at_once_is_told_with_its_last_words(run: ActedOn) -> None:
    run.wait_for_checkpoint(3)
    run.outcome("stop", "--no-save-first", *run.target)
    broken = ("sh", "-c", "echo docker: no such image >&2; exit 125")
    told = run.milepost("resume", "--yes", *run.target, "--", *broken, code=5)
    assert "ended before its first step, and said last: docker: no such image" in told
