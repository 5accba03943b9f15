"""What a resume would do, from what is known of a run."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fakes import running, stalled

from tui.actions.resume_checks import again, against
from tui.actions.resume_plan import plan_resume
from tui.actions.situation import Situation
from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.checkpoint import Checkpoint, CheckpointState, Soundness, Verification
from tui.model.plan import (
    ActionPlan,
    Ask,
    AskToSave,
    ProveStart,
    Refusal,
    StartRun,
    StopRun,
    TakeAutopsy,
    WriteTracker,
)
from tui.model.reading import Known, known
from tui.model.recipe import Recipe, RecipeKind
from tui.model.snapshot import Snapshot
from tui.model.target import ProcessTarget, RunTarget

ASK = Ask(kind=ActionKind.RESUME)
DRIVER = ProcessTarget(pid=2**22 + 1, start_ticks=1, boot_id="b", title="python train.py")
SAVE = "/ckpt/run-a"


def recipe(*argv: str) -> Recipe:
    words = argv or ("python", "train.py", "--save", SAVE, "--num-rollout", "200")
    return Recipe(
        kind=RecipeKind.PROCESS,
        source="driver, process 1",
        captured_at=0.0,
        argv=words,
        environment=(),
        cwd="/work",
        log="/nowhere/plain.log",
    )


def situation(
    snapshot: Snapshot, folder: Path, *, lives: bool = True, **changes: object
) -> Situation:
    told = Situation(
        snapshot=snapshot,
        run=None,
        target=RunTarget(driver=DRIVER) if lives else None,
        recipe=recipe(),
        run_id="run-a-1",
        folder=folder,
        at=snapshot.now,
    )
    return replace(told, **changes)  # type: ignore[arg-type]


def with_checkpoints(snapshot: Snapshot, *changed: Checkpoint) -> Snapshot:
    assert isinstance(snapshot.checkpoints, Known)
    tree = replace(snapshot.checkpoints.value, checkpoints=changed)
    return replace(snapshot, checkpoints=known(tree, snapshot.now))


def checkpoints(snapshot: Snapshot) -> tuple[Checkpoint, ...]:
    assert isinstance(snapshot.checkpoints, Known)
    return snapshot.checkpoints.value.checkpoints


def planned(told: Situation, ask: Ask = ASK) -> ActionPlan:
    plan = plan_resume(told, ask)
    assert isinstance(plan, ActionPlan), plan
    return plan


def refused(told: Situation, ask: Ask = ASK) -> str:
    plan = plan_resume(told, ask)
    assert isinstance(plan, Refusal), plan
    return plan.reason


def kinds(plan: ActionPlan) -> list[type]:
    return [type(step) for step in plan.steps]


def test_a_dead_run_is_started_and_proven(tmp_path: Path) -> None:
    plan = planned(situation(running(), tmp_path, lives=False))
    assert kinds(plan) == [StartRun, ProveStart]
    start, prove = plan.steps
    assert isinstance(start, StartRun)
    assert isinstance(prove, ProveStart)
    best = checkpoints(running())[0]
    assert (prove.iteration, prove.first_rollout) == (best.iteration, best.resumes_at)
    assert start.recipe.argv[:6] == ("python", "train.py", "--save", SAVE, "--load", SAVE)
    assert start.log == prove.log
    assert plan.go == "resume"


def test_a_run_that_hangs_is_looked_at_before_it_is_gone(tmp_path: Path) -> None:
    plan = planned(situation(stalled(), tmp_path), replace(ASK, save_first=False))
    assert kinds(plan) == [TakeAutopsy, StopRun, StartRun, ProveStart]
    without = replace(ASK, save_first=False, take_autopsy=False)
    assert TakeAutopsy not in kinds(planned(situation(stalled(), tmp_path), without))


@pytest.mark.parametrize(
    "broken",
    [
        {"state": CheckpointState.DAMAGED, "reason": "bad sum"},
        {"verification": Verification(soundness=Soundness.NOT_FINITE, at=1.0, non_finite=3)},
    ],
)
def test_what_loads_is_bad_so_the_best_is_made_to_load(
    tmp_path: Path, broken: dict[str, object]
) -> None:
    newest, *older = checkpoints(running())
    root = tmp_path / "save"
    bad = replace(newest, tracked=True, **broken)  # type: ignore[arg-type]
    snapshot = with_checkpoints(running(), bad, *older)
    assert isinstance(snapshot.checkpoints, Known)
    tree = replace(snapshot.checkpoints.value, root=str(root))
    snapshot = replace(snapshot, checkpoints=known(tree, snapshot.now))
    for each in (newest, *older):
        (root / Path(each.path).name).mkdir(parents=True)
    (root / "latest_checkpointed_iteration.txt").write_text(str(newest.iteration))
    plan = planned(situation(snapshot, tmp_path, lives=False))
    assert WriteTracker in kinds(plan)
    prove = plan.steps[-1]
    assert isinstance(prove, ProveStart)
    assert prove.iteration == older[0].iteration


def test_a_run_that_is_done_is_not_started_to_succeed_at_once(tmp_path: Path) -> None:
    snapshot = running()
    launch = replace(snapshot.story.launch, num_rollout=checkpoints(snapshot)[0].resumes_at)
    snapshot = replace(snapshot, story=replace(snapshot.story, launch=launch))
    assert "would end at once" in refused(situation(snapshot, tmp_path))


def test_nothing_whole_is_no_resume(tmp_path: Path) -> None:
    assert "no whole checkpoint" in refused(situation(with_checkpoints(running()), tmp_path))


def test_a_command_that_was_never_seen_can_be_given(tmp_path: Path) -> None:
    unknown = situation(running(), tmp_path, lives=False, recipe=None)
    assert "never seen" in refused(unknown)
    plan = planned(unknown, replace(ASK, command=("python", "train.py", "--load", SAVE)))
    start = plan.steps[0]
    assert isinstance(start, StartRun)
    assert start.recipe.argv == ("python", "train.py", "--load", SAVE)


@pytest.mark.parametrize("load", [SAVE, f"{SAVE}/", "/elsewhere", None])
def test_a_script_that_hides_the_command_is_started_as_it_is_where_it_loads_what_it_saves(
    tmp_path: Path, load: str | None
) -> None:
    snapshot = running()
    launch = replace(snapshot.story.launch, argv=("train.py",), save=SAVE, load=load)
    snapshot = replace(snapshot, story=replace(snapshot.story, launch=launch))
    script = recipe("sh", "start.sh")
    plan = plan_resume(situation(snapshot, tmp_path, lives=False, recipe=script), ASK)

    if load in (None, "/elsewhere"):
        assert isinstance(plan, Refusal)
        assert "start.sh builds the train command" in plan.reason
        return
    assert isinstance(plan, ActionPlan)
    (start,) = [step for step in plan.steps if isinstance(step, StartRun)]
    assert start.recipe.argv == ("sh", "start.sh")
    told = [row.text for row in plan.rows]
    assert f"changes: none: its last start printed that it loads {SAVE}" in told


def test_an_older_checkpoint_that_is_chosen_is_not_saved_over_first(tmp_path: Path) -> None:
    snapshot = running()
    older = checkpoints(snapshot)[1].iteration
    told = situation(snapshot, tmp_path)
    answer = plan_resume(told, replace(ASK, iteration=older))
    saves = isinstance(answer, ActionPlan) and AskToSave in kinds(answer)
    assert not saves


def failed(
    failure: str, signature: str = "s", kind: ActionKind = ActionKind.RESUME
) -> ActionRecord:
    return ActionRecord(
        id=failure,
        kind=kind,
        title="Resume",
        state=ActionState.FAILED,
        began_at=1.0,
        changed_at=2.0,
        facts={"failure": failure, "signature": signature},
    )


@pytest.mark.parametrize(
    ("records", "warns", "refuses"),
    [
        ((), False, False),
        ((failed("oom"),), True, False),
        ((failed("oom"), failed("oom")), True, True),
        ((failed("oom"), failed("gone")), True, False),
        ((failed("oom"), failed("oom", signature="other")), False, False),
        ((failed("oom"), failed("x", kind=ActionKind.SAVE), failed("oom")), True, True),
        ((failed("oom"), replace(failed("oom"), state=ActionState.DONE)), False, False),
    ],
)
def test_the_same_failure_is_warned_of_once_and_refused_at_the_third_try(
    tmp_path: Path, records: tuple[ActionRecord, ...], warns: bool, refuses: bool
) -> None:
    told = situation(running(), tmp_path, records=records)
    best = checkpoints(running())[0]
    assert bool(again(told, "s")) is warns
    assert (against(told, best, "s", ASK) is not None) is refuses
    assert against(told, best, "s", replace(ASK, force=True)) is None
