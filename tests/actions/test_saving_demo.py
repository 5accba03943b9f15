"""Saves asked of a simulated run, from the look at it to the checkpoint on disk."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest
from carried_plans import carried_out, finished, keep, killed

from tui.actions.perform import PERFORMERS
from tui.actions.planning import situation_of
from tui.actions.save_plan import plan_save
from tui.actions.situation import Situation
from tui.attach import Target, attached
from tui.config import Config
from tui.demo import launch
from tui.demo.launch import DemoRun
from tui.model.action import ActionState
from tui.model.plan import ActionPlan, Refusal
from tui.watch import monitor_of

DEADLINE_S = 200.0


def until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < deadline, what
        time.sleep(0.02)


def saves(run: DemoRun) -> list[int]:
    return [int(each) for each in re.findall(r"Saved checkpoint to .*/iter_(\d+)", text(run))]


def text(run: DemoRun) -> str:
    return run.log.read_text()


def started(folder: Path, **options: object) -> DemoRun:
    chosen = {"speed": 120, "save_interval": 0, "eval_interval": 0, "num_rollout": 100_000}
    run = launch.start(folder, **{**chosen, **options})  # type: ignore[arg-type]
    until(lambda: "perf 0:" in text(run), "the first rollout ends")
    return run


@pytest.fixture
def run(tmp_path: Path) -> Iterator[DemoRun]:
    """A run that saves nothing by itself."""
    begun = started(tmp_path)
    yield begun
    begun.stop()


def situation(run: DemoRun) -> Situation:
    """As a command would see it."""
    at = time.time()
    attachment = attached(Target(name=str(run.pid)), at=at)
    seen = situation_of(monitor_of(attachment, Config(), at=at).once(deadline_s=10.0))
    seen.folder.mkdir(parents=True, exist_ok=True)
    return seen


def planned(seen: Situation) -> ActionPlan:
    plan = plan_save(seen)
    assert isinstance(plan, ActionPlan), plan
    keep(plan, seen.folder)
    return plan


def test_save_now(run: DemoRun) -> None:
    seen = situation(run)
    plan = planned(seen)
    rows = {row.label: row.text for row in plan.rows}
    assert rows["When"].startswith("at the end of this rollout")
    assert rows["How"] == f"create {run.save_trigger}; Miles removes it"
    record = carried_out(plan, seen.folder, PERFORMERS)
    assert record.state is ActionState.DONE, record.line
    (iteration,) = saves(run)
    assert record.line.startswith(f"checkpoint {iteration} is whole: asked ")
    assert not run.save_trigger.exists()
    assert (run.checkpoints / f"iter_{iteration:07d}" / "meta.json").is_file()
    done = text(run).count("perf ")
    until(lambda: text(run).count("perf ") > done + 2, "the run goes on")


def test_a_run_that_dies_while_it_saves(tmp_path: Path) -> None:
    run = started(tmp_path, speed=15)
    try:
        seen = situation(run)
        plan = planned(seen)
        with ThreadPoolExecutor() as beside:
            action = beside.submit(carried_out, plan, seen.folder, PERFORMERS)
            until(lambda: bool(list(run.checkpoints.glob("iter_*/model"))), "the save begins")
            run.process.kill()
            record = action.result(DEADLINE_S)
    finally:
        run.stop()
    assert record.state is ActionState.FAILED
    assert record.line.startswith("the run ended before it had saved")
    assert "saves after its first rollout" in record.line
    assert run.save_trigger.exists()
    refusal = plan_save(situation_of(seen.snapshot))
    assert isinstance(refusal, Refusal)
    assert "nobody would save" in refusal.reason


def test_killed_before_every_change_it_saves_once(run: DemoRun) -> None:
    seen = situation(run)
    for at in count(1):
        plan = planned(seen)
        before = len(saves(run))
        was_killed = killed(at, lambda: carried_out(plan, seen.folder, PERFORMERS))  # noqa: B023
        record = finished(plan, seen.folder, PERFORMERS)
        assert record.state is ActionState.DONE, record.line
        assert len(saves(run)) == before + 1
        assert not run.save_trigger.exists()
        if not was_killed:
            break
    assert at > 8, "the points of the kills are not seen any more"
