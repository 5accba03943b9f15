"""Whether a run can be asked to save: each no is a sentence with a remedy."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest
import sightings
from fakes import running, stalled

from tui.actions.save_plan import plan_save
from tui.actions.signals import target_of
from tui.actions.situation import Situation
from tui.miles.flags import launch_from_argv
from tui.model.launch import Container, Found, LaunchArgs
from tui.model.plan import ActionPlan, AskToSave, Refusal
from tui.model.progress import PhaseClock
from tui.model.reading import known
from tui.model.snapshot import Alert, Level, RunState, Snapshot
from tui.model.target import RunTarget
from tui.runs.attachment import output_copy
from tui.runs.merge import FoundRun


@dataclass
class Run:
    """A run on this machine: a snapshot that is well, a folder, a process that stands for it."""

    folder: Path
    driver: subprocess.Popen[bytes]

    @property
    def trigger(self) -> Path:
        return self.folder / "save-now"

    def launch(self, **changes: Any) -> LaunchArgs:
        told = running().story.launch
        return replace(told, **{"save_trigger": str(self.trigger), **changes})

    def situation(self, snapshot: Snapshot | None = None, **changes: Any) -> Situation:
        snapshot = snapshot or running()
        story = replace(snapshot.story, launch=self.launch(**changes))
        line = "python3 train.py"
        driver = sightings.process(self.driver.pid, line, cwd=str(self.folder))
        return Situation(
            snapshot=replace(snapshot, story=story),
            run=FoundRun(driver=driver),
            target=RunTarget(driver=target_of(self.driver.pid)),
            recipe=None,
            run_id="run-a-1f0c93ab",
            folder=self.folder,
            at=snapshot.now,
        )

    def plan(self, snapshot: Snapshot | None = None, **changes: Any) -> ActionPlan:
        plan = plan_save(self.situation(snapshot, **changes))
        assert isinstance(plan, ActionPlan), plan
        return plan

    def refusal(self, snapshot: Snapshot | None = None, **changes: Any) -> Refusal:
        plan = plan_save(self.situation(snapshot, **changes))
        assert isinstance(plan, Refusal), plan
        assert not self.trigger.is_file()
        return plan


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    with subprocess.Popen("cat", stdin=subprocess.PIPE) as driver:
        yield Run(tmp_path, driver)
        driver.kill()


def step_of(plan: ActionPlan) -> AskToSave:
    (step,) = plan.steps
    assert isinstance(step, AskToSave)
    return step


def rows_of(plan: ActionPlan) -> dict[str, str]:
    return {row.label: row.text for row in plan.rows}


def test_a_run_that_can(run: Run) -> None:
    snapshot = running()
    story = replace(snapshot.story, trained_at=snapshot.now - 21)
    plan = run.plan(replace(snapshot, story=story))
    step = step_of(plan)
    assert step.trigger == step.host_trigger == str(run.trigger)
    assert step.container_id == ""
    assert step.log == "runs/plain.log"
    assert step.save_folder == "/ckpt/run-a"
    assert step.target is not None
    rows = rows_of(plan)
    assert rows["When"] == "at the end of this rollout, about 2 min"
    assert rows["How"] == f"create {run.trigger}; Miles removes it"
    assert "a save takes 46 s, about 7.1 GiB" in rows["Costs"]
    assert not run.trigger.exists()


def test_a_relative_trigger_begins_where_the_driver_is(run: Run) -> None:
    assert step_of(run.plan(save_trigger="save-now")).trigger == str(run.trigger)


def test_a_relative_trigger_of_a_driver_that_is_not_seen(run: Run) -> None:
    seen = run.situation(save_trigger="save-now")
    hidden = FoundRun(launchers=(sightings.process(1, "ray job submit", cwd="/"),))
    refusal = plan_save(replace(seen, run=hidden))
    assert isinstance(refusal, Refusal)
    assert "relative to a folder that cannot be read" in refusal.reason


def test_a_request_that_is_there_is_adopted(run: Run) -> None:
    run.trigger.touch()
    assert "asked already" in rows_of(run.plan())["How"]


def test_a_save_under_way(run: Run) -> None:
    snapshot = running()
    phase = PhaseClock(name="save", since=snapshot.now)
    saving = replace(snapshot, story=replace(snapshot.story, phase=phase))
    assert rows_of(run.plan(saving))["When"] == "a save is under way: it is waited for"


def test_a_run_that_has_not_begun_to_train(run: Run) -> None:
    snapshot = running()
    starting = replace(snapshot, verdict=replace(snapshot.verdict, state=RunState.STARTING))
    assert rows_of(run.plan(starting))["When"] == "at the end of the first rollout"


def test_a_copy_of_a_containers_output_is_not_waited_for(run: Run) -> None:
    snapshot = running()
    copy = Found(value=str(output_copy("f" * 64)), source="container run-a, its output copied here")
    container = Found(value="f" * 64, source="container run-a")
    attachment = replace(snapshot.attachment, log=copy, container=container)
    assert step_of(run.plan(replace(snapshot, attachment=attachment))).log == ""


def test_nothing_runs(run: Run) -> None:
    refusal = plan_save(replace(run.situation(), run=None, target=None))
    assert isinstance(refusal, Refusal)
    assert "nobody would save" in refusal.reason
    assert refusal.remedy


@pytest.mark.parametrize("state", [RunState.FINISHED, RunState.FAILED, RunState.CRASHED])
def test_a_run_that_has_ended(run: Run, state: RunState) -> None:
    snapshot = running()
    ended = replace(snapshot, verdict=replace(snapshot.verdict, state=state))
    assert "has ended" in run.refusal(ended).reason


def test_a_run_that_is_stalled(run: Run) -> None:
    refusal = run.refusal(stalled())
    assert "does not come to its save point: stalled in actor_train" in refusal.reason
    assert refusal.remedy == "kill and resume it"


def test_a_container_that_is_paused(run: Run) -> None:
    container = Container(id="f" * 64, name="run-a", image="miles", status="paused")
    refusal = run.refusal(replace(running(), container=known(container, 0.0)))
    assert refusal.remedy == "docker unpause run-a"


@pytest.mark.parametrize(
    ("argv", "changes", "reason", "remedy"),
    [
        ("", {"save_trigger": None}, "without --save-trigger-sentinel", "the next resume"),
        ("", {"save": None}, "without --save:", "--save-trigger-sentinel at its next start"),
        ("train_multi_lora_async.py --save /ckpt", {}, "does not look for", "by itself"),
        ("", {"async_save": True}, "--async-save with FSDP", "without --async-save"),
        (None, {}, "is not known", ""),
    ],
)
def test_commands_that_cannot_be_asked(
    run: Run, argv: str | None, changes: dict[str, Any], reason: str, remedy: str
) -> None:
    if argv:
        changes = {**changes, "argv": tuple(argv.split())}
    snapshot = running()
    if argv is None:
        changes = {"argv": ()}
        attachment = replace(snapshot.attachment, launch=launch_from_argv(()))
        snapshot = replace(snapshot, attachment=attachment)
    refusal = run.refusal(snapshot, **changes)
    assert reason in refusal.reason
    assert remedy in refusal.remedy


def test_slime_has_no_trigger(run: Run) -> None:
    snapshot = running()
    refusal = run.refusal(replace(snapshot, story=replace(snapshot.story, is_slime=True)))
    assert "slime has no save trigger" in refusal.reason


@pytest.mark.parametrize("code", ["disk-full-at-next-save", "disk-read-only"])
def test_a_disk_that_a_save_would_not_survive(run: Run, code: str) -> None:
    snapshot = running()
    alert = Alert(code=code, level=Level.CRITICAL, line="/ckpt is bad", advice="make room")
    verdict = replace(snapshot.verdict, alerts=(alert,))
    refusal = run.refusal(replace(snapshot, verdict=verdict))
    assert refusal == Refusal(
        reason="a save would fail and end the run: /ckpt is bad", remedy="make room"
    )


def test_a_folder_at_its_path_will_end_the_run(run: Run) -> None:
    run.trigger.mkdir()
    refusal = run.refusal()
    assert "is a folder: Miles takes it for a request" in refusal.reason
    assert refusal.remedy == f"before this rollout's training ends: rmdir {run.trigger}"


def test_a_link_at_its_path_that_leads_nowhere(run: Run) -> None:
    run.trigger.symlink_to(run.folder / "nowhere")
    assert "is a link that leads nowhere" in run.refusal().reason


def test_its_folder_is_missing(run: Run) -> None:
    refusal = run.refusal(save_trigger=str(run.folder / "gone" / "save-now"))
    assert f"{run.folder}/gone, where the save trigger belongs, is not there" in refusal.reason


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
def test_a_run_that_could_not_remove_it(tmp_path: Path) -> None:
    """Miles ends a run whose trigger it cannot remove."""
    for folder in (tmp_path, *tmp_path.parents[:3]):
        folder.chmod(0o755)
    with subprocess.Popen("cat", stdin=subprocess.PIPE, user=1234, group=1234) as driver:
        run = Run(tmp_path, driver)
        assert "the run's user (1234) may not remove a file from " in run.refusal().reason
        os.chown(tmp_path, 1234, 1234)
        assert step_of(run.plan()).host_trigger == str(run.trigger)
        driver.kill()
