"""The recipe of a run in a container, kept while it lives, and its client started again, once."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from begun import Stage, is_alive, killed_at, staged, wait_until
from docker_box import REPOSITORY, DockerBox

from tui.attach import Target, found
from tui.errors import MilepostError
from tui.miles.shown_recipe import shown
from tui.model.action import ActionState
from tui.model.launch import Attachment
from tui.model.recipe import Recipe, RecipeKind
from tui.runs.journal import Journal
from tui.runs.merge import FoundRun
from tui.runs.recipe_changes import startable
from tui.runs.recipe_keeping import keep_seen
from tui.runs.state_dir import run_folder

pytestmark = pytest.mark.engine

OWN = f"{os.getpid()}-{random.randrange(1 << 32):x}"
"""Other engines may be at work here, whose clients are seen too: nothing of ours is called alike."""
DEMO = (
    *(sys.executable, "-m", "tui.demo", "--dir", f"/tmp/demo-{OWN}", "--speed", "40"),
    *("--num-rollout", "5000", "--save", "/ckpt/run-a", "--load", "/ckpt/run-a"),
)
IDLE = ("/bin/sh", "-c", "echo hello; exec sleep 600", f"{OWN}/train.py")
NAME = f"run-{OWN}"
SECRET = "hunter2hunter2"


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path) as stage:
        (stage.folder / "ckpt").mkdir()
        yield stage


@pytest.fixture
def _milepost_inside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", str(REPOSITORY))


@contextmanager
def client(stage: Stage, *argv: str) -> Iterator[subprocess.Popen[bytes]]:
    """`docker … > plain.log 2>&1`."""
    with (stage.folder / "plain.log").open("wb") as log:
        started = subprocess.Popen(
            ["docker", *argv],
            cwd=stage.folder,
            env={**os.environ, "HF_TOKEN": SECRET},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        yield started
    finally:
        started.kill()
        started.wait()


def run_with_driver(container: str) -> tuple[FoundRun, Attachment]:
    """The run, once all of it can be seen."""
    end = time.monotonic() + 60.0
    while True:
        with suppress(MilepostError):
            finding = found(Target(container=container), at=time.time())
            if finding.run is not None and finding.run.driver is not None:
                return finding.run, finding.attachment
        assert time.monotonic() < end, "the driver never came"
        time.sleep(0.1)


def recipe_of(run: FoundRun, attachment: Attachment) -> Recipe:
    recipe = keep_seen(run, attachment, time.time())
    assert isinstance(recipe, Recipe), recipe
    return recipe


def running(docker_box: DockerBox) -> list[str]:
    return docker_box.docker("ps", "--format={{.Names}}").split()


def client_words(docker_box: DockerBox, stage: Stage, *options: str) -> tuple[str, ...]:
    return docker_box.run_words(f"--volume={stage.folder}/ckpt:/ckpt", *options)


@pytest.mark.parametrize("options", [(f"--name={NAME}",), ()], ids=["named", "unnamed"])
def test_a_run_by_docker_run_is_started_again_after_all_of_it_is_gone(
    docker_box: DockerBox, stage: Stage, options: tuple[str, ...]
) -> None:
    secrets = ("--env=HF_TOKEN", f"--env=WANDB_API_KEY={SECRET}")
    words = client_words(docker_box, stage, "--rm", *options, *secrets)
    with client(stage, *words, *DEMO) as first:
        wait_until(lambda: bool(running(docker_box)), "it never ran")
        (name,) = running(docker_box)
        run, attachment = run_with_driver(name)
        recipe = recipe_of(run, attachment)

        assert recipe.kind is RecipeKind.PROCESS
        assert recipe.source == f"docker run client, process {first.pid}"
        assert recipe.argv == ("docker", *words, *DEMO)
        assert dict(recipe.environment or ())["HF_TOKEN"] == SECRET
        assert (recipe.cwd, recipe.log) == (str(stage.folder), str(stage.folder / "plain.log"))
        assert recipe.is_client
        assert recipe.removes_container
        assert recipe.container_name == (NAME if options else "")
        assert recipe.missing == ()
        assert SECRET not in repr(recipe) + str(shown(recipe))
        assert replace(recipe_of(run, attachment), captured_at=recipe.captured_at) == recipe
        docker_box.docker("kill", name)
        first.wait(60)

    printed = (stage.folder / "plain.log").read_bytes()
    record = stage.carried_out(stage.plan(startable(recipe, "20261129-181503")[0]))
    assert record.state is ActionState.DONE, record.line
    (again,) = running(docker_box)
    assert record.facts["container_name"] == again
    assert f"container {again} (" in record.line
    run, attachment = run_with_driver(again)
    assert attachment.log is not None
    assert attachment.log.value == str(stage.log)
    wait_until(
        lambda: b"Loaded" in stage.log.read_bytes() or stage.log.stat().st_size > 500, "mute"
    )
    assert (stage.folder / "plain.log").read_bytes() == printed
    assert run.client is not None
    assert run.client.argv == recipe.argv

    (stage.state / "recipe.json").rename(made(run_folder(attachment)) / "recipe.json")
    kept = recipe_of(run, attachment)
    assert kept.ours
    assert kept.pid == run.client.pid == int(record.facts["pid"])
    docker_box.docker("kill", again)
    wait_until(lambda: not is_alive(kept.pid), "its client lives on")


def made(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def test_the_client_counts_though_it_died_before_its_container(
    docker_box: DockerBox, stage: Stage
) -> None:
    words = client_words(docker_box, stage, f"--name={NAME}")
    with client(stage, *words, *DEMO) as first:
        wait_until(lambda: bool(running(docker_box)), "it never ran")
        recipe = recipe_of(*run_with_driver(NAME))
        first.kill()
    run, attachment = run_with_driver(NAME)
    assert run.client is None
    assert recipe_of(run, attachment) == recipe


def test_a_container_in_the_background_is_created_again(
    docker_box: DockerBox, stage: Stage
) -> None:
    docker_box.docker(*client_words(docker_box, stage, "--detach", "--rm", f"--name={NAME}"), *DEMO)
    recipe = recipe_of(*run_with_driver(NAME))
    assert recipe.kind is RecipeKind.CONTAINER
    assert recipe.argv == DEMO
    assert (str(stage.folder / "ckpt"), "/ckpt") in recipe.mounts
    docker_box.docker("kill", NAME)
    wait_until(lambda: not docker_box.docker("ps", "--all", "--quiet"), "it was never removed")
    record = stage.carried_out(stage.plan(recipe))
    assert record.state is ActionState.DONE, record.line
    run, _ = run_with_driver(NAME)
    assert run.container is not None
    assert not run.container.container.auto_remove


def test_what_was_started_by_hand_in_a_container_is_started_by_exec(
    docker_box: DockerBox, stage: Stage
) -> None:
    words = client_words(docker_box, stage, "--detach", f"--name={NAME}")
    docker_box.docker(*words, "/bin/sleep", "600")
    typed = f"cd /ckpt && exec {' '.join(DEMO)} > /tmp/plain.log 2>&1"
    docker_box.docker("exec", "--detach", f"--env=HF_TOKEN={SECRET}", NAME, "/bin/sh", "-c", typed)
    run, attachment = run_with_driver(NAME)
    recipe = recipe_of(run, attachment)
    assert run.driver is not None
    assert recipe.kind is RecipeKind.PROCESS
    assert recipe.source == f"process {run.driver.pid}, started by hand in container {NAME}"
    assert recipe.argv[-len(DEMO) :] == DEMO
    assert SECRET not in " ".join(recipe.argv)
    assert f"container {NAME}: that has to run" in " ".join(recipe.missing)
    pid = run.driver.pid
    os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not is_alive(pid), "it does not die")

    record = stage.carried_out(stage.plan(recipe))
    assert record.state is ActionState.DONE, record.line
    again, _ = run_with_driver(NAME)
    assert again.driver is not None
    assert again.driver.pid != pid
    inside = Path(f"/proc/{again.driver.pid}/environ").read_bytes().split(b"\0")
    assert f"HF_TOKEN={SECRET}".encode() in inside
    assert Path(f"/proc/{again.driver.pid}/cwd").readlink() == Path("/ckpt")
    assert again.client is not None
    assert again.client.pid == int(record.facts["pid"])
    os.kill(again.client.pid, signal.SIGKILL)


def test_a_run_of_docker_compose_says_so(docker_box: DockerBox, stage: Stage) -> None:
    labels = ("project=lab", "service=train", "project.config_files=/lab/docker-compose.yml")
    words = [f"--label=com.docker.compose.{label}" for label in labels]
    docker_box.docker(*client_words(docker_box, stage, "--detach", *words, f"--name={NAME}"), *DEMO)
    recipe = recipe_of(*run_with_driver(NAME))
    assert recipe.kind is RecipeKind.CONTAINER
    assert recipe.missing == (
        "docker compose made it as lab/train from /lab/docker-compose.yml: a container like it is "
        "created without compose, and `docker compose up` may end one of the two",
    )


def test_a_client_with_a_terminal_starts_without_one(docker_box: DockerBox, stage: Stage) -> None:
    words = ("docker", *client_words(docker_box, stage, "-it", "--rm", f"--name={NAME}"), *IDLE)
    recipe = client_recipe(stage, *words)
    refused = stage.carried_out(stage.plan(recipe))
    assert refused.state is ActionState.FAILED
    assert refused.line.startswith("the docker client has ended: the input device is not a TTY")
    stage.log.unlink()
    able, changes = startable(recipe, "20261129-181503")
    assert changes == ("docker's -i is left out: there is no terminal to type at",)
    plan = replace(stage.plan(able), id="20261129-181504-resume-0002")
    stage.keep(plan)
    assert stage.carried_out(plan).state is ActionState.DONE
    wait_until(lambda: stage.log.read_bytes() == b"hello\r\n", "it prints on no terminal")
    assert running(docker_box) == [NAME]


def client_recipe(stage: Stage, *argv: str) -> Recipe:
    names = [each.removeprefix("--name=") for each in argv if each.startswith("--name=")]
    return stage.recipe(
        argv=argv,
        environment=tuple(os.environ.items()),
        is_client=True,
        container_name=names[0] if names else "",
    )


def test_an_id_file_is_set_aside_as_docker_overwrites_none(
    docker_box: DockerBox, stage: Stage
) -> None:
    (stage.folder / "id").write_text("of the container before")
    words = client_words(docker_box, stage, "--rm", "--cidfile=id")
    record = stage.carried_out(stage.plan(client_recipe(stage, "docker", *words, *IDLE)))
    assert record.state is ActionState.DONE, record.line
    assert (stage.folder / "id").read_text() == record.facts["container_id"]
    (aside,) = stage.folder.glob("id-until-*")
    assert aside.read_text() == "of the container before"


def test_a_running_container_keeps_its_name(docker_box: DockerBox, stage: Stage) -> None:
    words = client_words(docker_box, stage, "--rm", f"--name={NAME}")
    docker_box.docker(words[0], "--detach", *words[1:], *IDLE)
    record = stage.carried_out(stage.plan(client_recipe(stage, "docker", *words, *IDLE)))
    assert record.state is ActionState.FAILED
    assert record.line.splitlines()[0] == f"container {NAME} is running: it keeps its name"
    assert not stage.log.exists()


@pytest.mark.parametrize("options", [(f"--name={NAME}",), (f"--name={NAME}", "--rm"), ("--rm",)])
def test_killed_before_any_step_into_the_world_there_is_one_container(
    docker_box: DockerBox, tmp_path: Path, options: tuple[str, ...]
) -> None:
    number = -1
    while True:
        number += 2
        with staged(tmp_path / str(number)) as stage:
            words = client_words(docker_box, stage, *options)
            plan = stage.plan(client_recipe(stage, "docker", *words, *IDLE))
            was_killed = killed_at(number, partial(stage.carried_out, plan))
            (record,) = Journal(stage.state).actions() or (None,)
            if record is None or record.is_open:
                record = stage.carried_out(plan)
            assert record.state is ActionState.DONE, record.line
            names = docker_box.docker("ps", "--all", "--format={{.Names}}").split()
            assert names == [record.facts["container_name"]]
            wait_until(lambda log=stage.log: log.read_text() == "hello\n", "mute")  # type: ignore[misc]
            docker_box.docker("rm", "--force", *names)
            pid = int(record.facts["pid"])
            wait_until(lambda pid=pid: not is_alive(pid), "its client lives on")  # type: ignore[misc]
        if not was_killed:
            break
    assert number > 15
