"""A converter is begun once, whatever process is killed, and what it leaves is put away."""

from __future__ import annotations

import time
from functools import partial
from pathlib import Path

import action_plans
from begun import Stage, is_alive, killed_at, staged
from carried_plans import carried_out, finished, keep

from tui.actions import converting
from tui.actions.executor import Perform
from tui.model.action import ActionRecord, ActionState
from tui.model.plan import ActionPlan, ConvertCheckpoint

PERFORMERS: dict[type, Perform] = {ConvertCheckpoint: converting.perform}
WRITES_NOTHING_USEFUL = 'echo $$ >> "$0/begun"; sleep 0.5; mkdir "$0/model"'


def planned(stage: Stage) -> ActionPlan:
    """A converter whose output is no model."""
    log = f"{stage.folder}/model.log"
    step = ConvertCheckpoint(
        converter="convert_fsdp_to_hf.py",
        argv=("sh", "-c", WRITES_NOTHING_USEFUL, str(stage.folder)),
        checkpoint=f"{stage.folder}/iter_0000020",
        output=f"{stage.folder}/model",
        log=log,
        inside_log=log,
        tensors=1,
    )
    plan = action_plans.plan((step,), made_at=time.time())
    keep(plan, stage.state)
    return plan


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def not_proven(stage: Stage, record: ActionRecord) -> None:
    assert record.state is ActionState.FAILED
    assert record.line.startswith("not proven: ")
    assert f"renamed to {stage.folder}/model.failed" in record.line
    assert names(stage.folder) == {"begun", "model.failed", "model.log"}
    (pid,) = stage.begun()
    assert not is_alive(pid)


def test_what_is_not_proven_is_put_away(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        not_proven(stage, carried_out(planned(stage), stage.state, PERFORMERS))


def test_an_output_that_is_there_is_left_alone(tmp_path: Path) -> None:
    with staged(tmp_path) as stage:
        (stage.folder / "model").mkdir()
        record = carried_out(planned(stage), stage.state, PERFORMERS)
        assert record.line.startswith(f"{stage.folder}/model is there already")
        assert names(stage.folder) == {"model"}


def test_killed_before_any_step_into_the_world_it_is_begun_once(tmp_path: Path) -> None:
    number, was_killed = 0, True
    while was_killed:
        number += 3
        with staged(tmp_path / str(number)) as stage:
            plan = planned(stage)
            was_killed = killed_at(number, partial(carried_out, plan, stage.state, PERFORMERS))
            not_proven(stage, finished(plan, stage.state, PERFORMERS))
    assert number > 15
