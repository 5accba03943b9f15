"""Plans and actions of the run of `fakes`: what a confirm shows, and what is seen afterwards."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fake_box import MIN, NOW, SAVE_ROOT

from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.launch import Attachment
from tui.model.plan import (
    ActionPlan,
    Ask,
    AskToSave,
    MoveAside,
    ProveStart,
    Refusal,
    Row,
    StartRun,
    Step,
    StopRun,
    TakeAutopsy,
    WriteTracker,
)
from tui.model.recipe import Recipe, RecipeKind
from tui.model.snapshot import Level
from tui.model.target import ContainerTarget, RunTarget

NEW_LOG = "runs/plain-resume.log"
STEPS = ("save", "autopsy", "stop", "start", "prove")
REFUSED = Refusal(
    reason="nothing can be saved: --save-trigger-sentinel is not among the run's arguments",
    remedy="the next resume switches it on; a kill now costs 6 rollouts, 14 min",
)


def plan(kind: ActionKind, **changes: Any) -> ActionPlan:
    made = ActionPlan(
        id=f"20260105-140211-{kind.value.replace(' ', '-')}-4f2a",
        kind=kind,
        title=f"{kind.value.capitalize()} run-a",
        run_id="run-a-4f2a",
        run_name="run-a",
        made_at=NOW,
        rows=(),
        steps=(),
        go=kind.value,
    )
    return replace(made, **changes)


def kill_and_resume(ask: Ask) -> ActionPlan:
    """Of a run that hangs: nothing can be saved, whatever is asked for."""
    dumps = ask.take_autopsy is not False
    rows = (
        Row(
            label="Why",
            text="stalled in actor_train for 14 min (usual 0:41); GPU 0 %, no log line, "
            "no disk write",
        ),
        Row(
            label="You lose",
            text="6 rollouts, 14 min, since checkpoint 60 (whole, sums ok, finite)",
        ),
        Row(label="Save first", text="not possible: the trainer does not come to its save point"),
        Row(
            label="Will stop",
            text="container miles-run-a (9f3c…, up 2 d) and its 14 processes; nothing else",
        ),
        Row(
            label="Will start",
            text='docker run --rm --gpus all … -e MILES_EXTRA_ARGS="--save /ckpt/run-a … '
            '--load /ckpt/run-a"',
        ),
        Row(label="Will start", text="changes: + --save-trigger-sentinel /ckpt/run-a.save-now"),
        Row(label="Will start", text=f"log: {NEW_LOG} (new; plain.log stays)"),
        Row(label="Checks", text="● disk 412 G free   ● ports free after stop"),
        Row(label="Checks", text="2.1 GiB held by pid 1881 (jupyter)", level=Level.WARNING),
        Row(
            label="Then",
            text="watch for “Loaded model/optimizer”, data position, first step 60; "
            + ("stop it otherwise" if ask.stop_if_wrong else "tell otherwise"),
        ),
    )
    return plan(
        ActionKind.RESUME,
        title="Kill and resume run-a",
        rows=rows,
        steps=(
            *((TakeAutopsy(attachment=Attachment()),) if dumps else ()),
            stop(),
            StartRun(recipe=recipe(), log=NEW_LOG, container_name="miles-run-a"),
            ProveStart(
                log=NEW_LOG,
                save_folder=SAVE_ROOT,
                iteration=60,
                first_rollout=60,
                stop_if_wrong=ask.stop_if_wrong,
            ),
        ),
        go="autopsy, then kill and resume" if dumps else "kill and resume",
    )


def save_now() -> ActionPlan:
    rows = (
        Row(
            label="Will do",
            text="create /ckpt/run-a.save-now; Miles saves at the end of rollout 61",
        ),
        Row(label="When", text="in about 3 min; 7.1 GiB, 47 s"),
    )
    return plan(
        ActionKind.SAVE, title="Save now run-a", rows=rows, steps=(ask_to_save(),), go="save now"
    )


def stop_unsaved(ask: Ask) -> ActionPlan:
    saves = ask.save_first is True
    loses = "nothing: it is saved first" if saves else "6 rollouts, 14 min, since checkpoint 60"
    return plan(
        ActionKind.STOP,
        title="Stop run-a without saving" if not saves else "Save run-a, then stop it",
        rows=(
            Row(label="You lose", text=loses, level=Level.INFO if saves else Level.WARNING),
            Row(label="Will stop", text="container miles-run-a (9f3c…, up 2 d)"),
        ),
        steps=(*((ask_to_save(),) if saves else ()), stop()),
        go="save, then stop" if saves else "stop without saving",
        typed_name="" if saves else "run-a",
    )


def roll_back(iteration: int | None) -> ActionPlan:
    return plan(
        ActionKind.ROLLBACK,
        title=f"Roll back run-a to {iteration}",
        rows=(Row(label="Will move", text="iter_0000060 into quarantine-20260105-140211"),),
        steps=(
            MoveAside(root=SAVE_ROOT, paths=("iter_0000060",), quarantine="quarantine-1"),
            WriteTracker(path=f"{SAVE_ROOT}/latest", text=str(iteration), old_text="60"),
        ),
        go="roll back",
    )


def convert(iteration: int | None) -> ActionPlan:
    return plan(
        ActionKind.CONVERT,
        title=f"Convert checkpoint {iteration} of run-a",
        rows=(Row(label="Output", text=f"models/run-a-step-{iteration}, 3.1 GiB"),),
        go="convert",
    )


def stop() -> Step:
    container = ContainerTarget(id="9f3c" * 16, name="miles-run-a", started_at=NOW - 2e5)
    return StopRun(target=RunTarget(container=container))


def ask_to_save() -> Step:
    trigger = "/ckpt/run-a.save-now"
    return AskToSave(trigger=trigger, host_trigger=trigger)


def recipe() -> Recipe:
    return Recipe(
        kind=RecipeKind.PROCESS, source="docker run client, process 4242", captured_at=NOW
    )


def record(**changes: Any) -> ActionRecord:
    """A kill and resume in its third step, waiting for memory."""
    made = ActionRecord(
        id="20260105-140039-resume-4f2a",
        kind=ActionKind.RESUME,
        title="Kill and resume run-a",
        state=ActionState.OPEN,
        began_at=NOW - 92,
        changed_at=NOW - 2,
        steps=STEPS,
        done=("saved iteration 62 in 0:47", "written to runs/plain-autopsy-140127, 14 processes"),
        step=2,
        step_began_at=NOW - 12,
        line="waiting for memory: 2.1 GiB held by pid 1881 (jupyter)",
    )
    return replace(made, **changes)


def resumed(**changes: Any) -> ActionRecord:
    """One that came to what was wanted, three minutes ago."""
    done = (
        "saved iteration 62 in 0:47",
        "written to runs/plain-autopsy-140127",
        "stopped in 0:09, memory and ports free",
        f"started, log {NEW_LOG}",
        "resumed at step 62",
    )
    ended = {"state": ActionState.DONE, "changed_at": NOW - 3 * MIN, "began_at": NOW - 8 * MIN}
    return record(**{**ended, "done": done, "step": None, "line": "resumed at step 62", **changes})


def failed(**changes: Any) -> ActionRecord:
    """One whose run started fresh, and was stopped."""
    line = "started fresh: stopped before its first save\nlook at --load, then resume again"
    ended = {"state": ActionState.FAILED, "changed_at": NOW - 3 * MIN, "began_at": NOW - 8 * MIN}
    done = resumed().done[:4]
    return record(**{**ended, "done": done, "step": 4, "line": line, **changes})
