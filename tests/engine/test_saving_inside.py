"""Saves asked of a run in a container, by each way to its trigger."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from carried_plans import carried_out, keep
from docker_box import DockerBox

from tui.actions.perform import PERFORMERS
from tui.actions.planning import situation_of
from tui.actions.save_plan import plan_save
from tui.actions.situation import Situation
from tui.actions.trigger import Look, Trigger
from tui.attach import Target, attached
from tui.config import Config
from tui.model.action import ActionState
from tui.model.plan import ActionPlan, AskToSave, Refusal
from tui.watch import monitor_of

pytestmark = pytest.mark.engine

DEMO = (
    *(sys.executable, "-m", "tui.demo", "--dir", "/tmp/demo", "--speed", "60"),
    *("--num-rollout", "100000", "--save-interval", "0", "--eval-interval", "0"),
    *("--save", "/ckpt/run-a", "--load", "/ckpt/run-a"),
)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "ckpt" / "run-a").mkdir(parents=True)
    return tmp_path


def situation(box: DockerBox, folder: Path, trigger: str, *options: str) -> Situation:
    """A run whose trigger is at that path, as a command would see it."""
    own = ("--detach", "--name=run-a", f"--volume={folder}/ckpt:/ckpt", *options)
    box.docker(*box.run_words(*own), *DEMO, "--save-trigger-sentinel", trigger)
    until(lambda: "perf 1:" in box.docker("logs", "run-a"))
    at = time.time()
    attachment = attached(Target(container="run-a"), at=at)
    seen = situation_of(monitor_of(attachment, Config(), at=at).once(deadline_s=10.0))
    seen.folder.mkdir(parents=True, exist_ok=True)
    return seen


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 120.0
    while not condition():
        assert time.monotonic() < deadline, "never came true"
        time.sleep(0.1)


def planned(seen: Situation, **changes: str) -> AskToSave:
    plan = plan_save(seen)
    assert isinstance(plan, ActionPlan), plan
    (step,) = plan.steps
    assert isinstance(step, AskToSave)
    step = replace(step, **changes)  # type: ignore[arg-type]
    keep(replace(plan, steps=(step,)), seen.folder)
    record = carried_out(plan, seen.folder, PERFORMERS)
    assert record.state is ActionState.DONE, record.line
    assert "is whole: asked " in record.line
    return step


def saved(box: DockerBox) -> int:
    return box.docker("logs", "run-a").count("Saved checkpoint to")


def test_through_a_mount(docker_box: DockerBox, folder: Path) -> None:
    seen = situation(docker_box, folder, "/ckpt/save-now")
    step = planned(seen)
    assert step.host_trigger == f"{folder}/ckpt/save-now"
    assert step.save_folder == f"{folder}/ckpt/run-a"
    assert saved(docker_box) == 1


def test_on_no_mount(docker_box: DockerBox, folder: Path) -> None:
    """By way of the driver's root, as root; else by a command in the container."""
    seen = situation(docker_box, folder, "/tmp/demo/save-now")
    step = planned(seen)
    assert step.host_trigger.endswith("/root/tmp/demo/save-now")
    assert saved(docker_box) == 1
    assert seen.target is not None
    assert seen.target.container is not None
    planned(seen, host_trigger="", container_id=seen.target.container.id)
    assert saved(docker_box) == 2


def test_a_folder_that_is_read_only_inside(docker_box: DockerBox, folder: Path) -> None:
    """From here the trigger could be created, and the run would end because it cannot remove it."""
    options = f"--volume={folder}/flags:/flags:ro"
    (folder / "flags").mkdir()
    refusal = plan_save(situation(docker_box, folder, "/flags/save-now", options))
    assert isinstance(refusal, Refusal)
    assert refusal.reason.startswith("/flags is mounted read-only where the run is: Miles would")


def inside(box: DockerBox, folder: Path, *options: str) -> Trigger:
    """The trigger in a container that does nothing, by a command inside."""
    own = ("--detach", f"--volume={folder}/ckpt:/ckpt", *options)
    sleeps = (sys.executable, "-c", "import time; time.sleep(600)")
    container = box.docker(*box.run_words(*own), *sleeps)
    return Trigger(path="/ckpt/save-now", container_id=container)


def test_what_a_command_inside_tells(docker_box: DockerBox, folder: Path) -> None:
    trigger = inside(docker_box, folder)
    path = folder / "ckpt" / "save-now"
    assert trigger.look() is Look.ABSENT
    assert trigger.create()
    assert path.is_file()
    assert trigger.look() is Look.PENDING
    path.write_text("by hand")
    assert not trigger.create()
    assert path.read_text() == "by hand"
    path.unlink()
    path.symlink_to("nowhere")
    assert trigger.look() is Look.DANGLING
    with pytest.raises(OSError, match="/ckpt/save-now in the container"):
        trigger.create()
    path.unlink()
    path.mkdir()
    assert trigger.look() is Look.FOLDER
    assert replace(trigger, path="/gone/save-now").look() is Look.NO_FOLDER
    assert replace(trigger, path="/usr/save-now").look() is Look.READ_ONLY
    assert replace(trigger, path="/save-now").look() is Look.ABSENT


def test_an_image_without_a_shell(docker_box: DockerBox, folder: Path) -> None:
    (folder / "empty").touch()
    shell = Path("/bin/sh").resolve().name
    trigger = inside(docker_box, folder, f"--volume={folder}/empty:/bin/{shell}:ro")
    with pytest.raises(OSError, match="/bin/sh"):
        trigger.look()
