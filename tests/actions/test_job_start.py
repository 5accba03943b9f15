"""A job of Ray is submitted once, under an id that follows from the plan."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from begun import Stage, staged

from tui.actions import ray_jobs, starting
from tui.actions.ray_jobs import Outcome
from tui.model.action import ActionState
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.recipe import Recipe, RecipeKind
from tui.model.target import JobTarget
from tui.runs.recipe_store import kept

ADDRESS = "http://127.0.0.1:8265"
RECIPE = Recipe(
    kind=RecipeKind.JOB,
    source="Ray job one",
    captured_at=0.0,
    submission_id="one",
    entrypoint="python3 train.py --load /ckpt",
    runtime_env='{"env_vars": {"A": "b"}}',
    metadata=(("owner", "me"),),
    address=ADDRESS,
)
Submit = Callable[[JobTarget], Reading[Outcome]]


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path) as stage:
        yield stage


@pytest.fixture
def submits(monkeypatch: pytest.MonkeyPatch) -> Callable[..., list[tuple[JobTarget, Any]]]:
    """Say what Ray answers, one after the other; what it was asked."""

    def submits(*answers: Reading[Outcome]) -> list[tuple[JobTarget, Any]]:
        asked: list[tuple[JobTarget, Any]] = []

        def submit(job: JobTarget, entrypoint: str, at: float, **rest: Any) -> Reading[Outcome]:
            asked.append((job, {"entrypoint": entrypoint, **rest}))
            return answers[len(asked) - 1]

        monkeypatch.setattr(ray_jobs, "submit", submit)
        return asked

    return submits


def test_the_job_is_as_before_under_a_new_id(stage: Stage, submits: Any) -> None:
    asked = submits(known(Outcome.DONE, 1.0))
    plan = stage.plan(RECIPE, submission_id="one-resume-20261129-181503")
    record = stage.carried_out(plan)
    assert record.state is ActionState.DONE
    assert record.line == "submitted job one-resume-20261129-181503"
    assert record.facts["submission_id"] == "one-resume-20261129-181503"
    ((job, body),) = asked
    assert job == JobTarget(submission_id="one-resume-20261129-181503", address=ADDRESS)
    assert body == {
        "entrypoint": "python3 train.py --load /ckpt",
        "runtime_env": json.loads(RECIPE.runtime_env),
        "metadata": {"owner": "me"},
    }
    recipe = kept(stage.state)
    assert recipe is not None
    assert (recipe.submission_id, recipe.ours) == ("one-resume-20261129-181503", True)


def test_one_that_is_there_already_was_submitted_before_us(stage: Stage, submits: Any) -> None:
    submits(known(Outcome.ALREADY, 1.0))
    assert stage.carried_out(stage.plan(RECIPE, submission_id="two")).state is ActionState.DONE


def test_an_answer_that_was_lost_is_asked_for_again(
    stage: Stage, submits: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(starting, "_RAY_LOOK_S", 0.0)
    late = Unknown(why=Absence.TIMED_OUT, reason="Ray did not answer within 15 s")
    asked = submits(late, late, known(Outcome.ALREADY, 1.0))
    assert stage.carried_out(stage.plan(RECIPE, submission_id="two")).state is ActionState.DONE
    assert len({job for job, _ in asked}) == 1


def test_without_ray_it_is_a_failure_with_a_remedy(stage: Stage, submits: Any) -> None:
    submits(Unknown(why=Absence.MISSING, reason=f"no Ray answers at {ADDRESS}"))
    record = stage.carried_out(stage.plan(RECIPE, submission_id="two"))
    assert record.state is ActionState.FAILED
    assert record.line == (
        f"job two cannot be submitted: no Ray answers at {ADDRESS}\nis Ray up at {ADDRESS}?"
    )
    assert kept(stage.state) is None


def test_the_id_follows_from_the_plan_where_none_was_chosen(stage: Stage, submits: Any) -> None:
    asked = submits(known(Outcome.DONE, 1.0))
    plan = stage.plan(RECIPE)
    stage.carried_out(plan)
    moment = time.strftime("%Y%m%d-%H%M%S", time.localtime(plan.made_at))
    assert asked[0][0].submission_id == f"one-resume-{moment}"
