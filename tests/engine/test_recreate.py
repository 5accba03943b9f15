"""A container of a real engine created again: field by field, once, and never beside a living one."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from begun import Stage, killed_at, staged
from docker_box import DockerBox

from tui.actions import claiming
from tui.actions.recreate import LABEL
from tui.model.action import ActionState
from tui.model.reading import Absence, Unknown
from tui.model.recipe import Recipe, RecipeKind
from tui.runs.docker import DockerEngine
from tui.runs.journal import Journal
from tui.runs.merge import FoundRun
from tui.runs.recipe import captured
from tui.runs.recipe_store import kept

pytestmark = pytest.mark.engine

NOTHING = ("/bin/sleep", "600")
EVERYTHING = (
    *("--hostname=box", "--domainname=lab.example", "--user=0:0", "--env=A=1"),
    *("--env=B=two words\nand a line", "--label=x=y", "--volume=kept:/kept", "--volume=/unnamed"),
    "--mount=type=tmpfs,destination=/scratch,tmpfs-size=1048576",
    *("--tmpfs=/run:size=1m", "--shm-size=256m", "--ipc=private", "--ulimit=nofile=512:1024"),
    *("--network-alias=one", "--publish=127.0.0.1:18080:80", "--cap-drop=MKNOD"),
    *("--security-opt=seccomp=unconfined", "--restart=on-failure:3", "--init"),
    *("--log-opt=max-size=10m", "--health-cmd=true", "--health-interval=30s"),
    *("--stop-signal=SIGINT", "--stop-timeout=17", "--memory=512m", "--cpus=0.5"),
    *("--cpuset-cpus=0", "--pids-limit=200", "--add-host=db:192.0.2.1", "--dns=192.0.2.53"),
    *("--dns-search=lab.example", "--device=/dev/null:/dev/other", "--group-add=12"),
    *("--oom-score-adj=100", "--workdir=/tmp", "--sysctl=net.core.somaxconn=1024"),
    *("--blkio-weight=0", "--cgroup-parent=lab", "--expose=81"),
)
GIVEN_BY_THE_ENGINE = (".EndpointID", ".NetworkID", ".SandboxID", ".SandboxKey", ".Created")


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path) as stage:
        yield stage


@pytest.fixture
def networks(docker_box: DockerBox) -> Iterator[None]:
    for name in ("lab", "lab2"):
        docker_box.docker("network", "create", name)
    yield
    containers = docker_box.docker("ps", "--all", "--quiet").split()
    docker_box.docker("rm", "--force", *containers)
    docker_box.docker("network", "rm", "lab", "lab2")


def recipe_of(name: str) -> Recipe:
    """As it is captured from the engine alone."""
    now = time.time()
    found = DockerEngine().find_miles_containers(now, name)
    assert not isinstance(found, Unknown), found
    recipe = captured(FoundRun(container=found.value[0], is_here=False), now)
    assert isinstance(recipe, Recipe)
    assert recipe.kind is RecipeKind.CONTAINER
    return recipe


def inspected(docker_box: DockerBox, name: str) -> dict[str, Any]:
    (document,) = json.loads(docker_box.docker("inspect", name))
    return dict(document)


def fields_of(document: dict[str, Any]) -> dict[str, Any]:
    """Every field that is not the container's own, its id written as `ID`."""
    text = json.dumps({name: part for name, part in document.items() if name != "State"})
    text = text.replace(document["Id"], "ID").replace(document["Id"][:12], "ID")
    flat = dict(_flat(json.loads(text), ""))
    return {name: flat[name] for name in flat if not name.endswith(GIVEN_BY_THE_ENGINE)}


def _flat(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, dict):
        for name in value:
            yield from _flat(value[name], f"{path}.{name}")
    elif path == ".Mounts":
        yield path, sorted(json.dumps(each, sort_keys=True) for each in value)
    else:
        yield path, value


def differences(one: dict[str, Any], other: dict[str, Any]) -> dict[str, tuple[Any, Any]]:
    some, others = fields_of(one), fields_of(other)
    return {
        name: (some.get(name), others.get(name))
        for name in sorted({*some, *others})
        if some.get(name) != others.get(name)
    }


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--network=host",),
        ("--network=host", "--hostname=box"),
        ("--network=none", "--read-only", "--entrypoint=/usr/bin/env"),
        ("--network=bridge", "--publish-all", "--expose=80", "--rm"),
        ("--network=container:other", "--pid=host", "--ipc=host"),
        ("--tty", "--interactive", "--restart=always"),
    ],
    ids=" ".join,
)
def test_the_copy_is_as_the_one_before(
    docker_box: DockerBox, stage: Stage, options: tuple[str, ...]
) -> None:
    docker_box.docker(
        "run", "--detach", "--name=other", *docker_box.mounts, docker_box.image, *NOTHING
    )
    own = ("run", "--detach", "--name=run-a", *docker_box.mounts, *options)
    docker_box.docker(*own, docker_box.image, *NOTHING)
    before = inspected(docker_box, "run-a")
    plan = stage.plan(recipe_of("run-a"))
    docker_box.docker("kill", "run-a")

    record = stage.carried_out(plan)
    assert record.state is ActionState.DONE, record.line
    after = inspected(docker_box, "run-a")
    assert after["State"]["Running"] is True
    assert record.facts["container_id"] == after["Id"] != before["Id"]
    found = differences(before, after)
    assert found.pop(f".Config.Labels.{LABEL}") == (None, plan.id)
    assert found.pop(".HostConfig.AutoRemove", (True, False)) == (True, False)
    chosen_anew = ("IPAddress", "MacAddress", ".Ports.80/tcp")
    assert [name for name in found if not name.endswith(chosen_anew)] == []


def test_everything_that_can_be_set_is_set_again(
    docker_box: DockerBox, stage: Stage, networks: None
) -> None:
    own = ("create", "--name=run-a", "--network=lab", *docker_box.mounts, *EVERYTHING)
    docker_box.docker(*own, docker_box.image, *NOTHING)
    docker_box.docker("network", "connect", "--alias=two", "--alias=zwei", "lab2", "run-a")
    docker_box.docker("start", "run-a")
    docker_box.docker("exec", "run-a", "/bin/sh", "-c", "echo here > /unnamed/file")
    recipe = recipe_of("run-a")
    docker_box.docker("kill", "run-a")
    before = inspected(docker_box, "run-a")

    record = stage.carried_out(stage.plan(recipe))
    assert record.state is ActionState.DONE, record.line
    assert docker_box.docker("exec", "run-a", "/bin/cat", "/unnamed/file") == "here"
    docker_box.docker("kill", "run-a")
    found = differences(before, inspected(docker_box, "run-a"))
    assert found.pop(f".Config.Labels.{LABEL}")[0] is None
    # The volume that Docker made up is named now, as its content is wanted again.
    old, new = found.pop(".HostConfig.Binds")
    assert len(new) == len(old) + 1
    assert new[-1].endswith(":/unnamed")
    old, new = found.pop(".Mounts")
    assert [each.replace('"Mode": "z"', '"Mode": ""') for each in new] == [
        each.replace('"Mode": "z"', '"Mode": ""') for each in old
    ]
    assert found == {}


def test_gpus_and_devices_are_asked_for_again(docker_box: DockerBox, stage: Stage) -> None:
    """There is no GPU here, so it is created and then does not start."""
    own = ("create", "--name=run-a", "--gpus=all", "--cap-add=SYS_ADMIN", "--privileged")
    docker_box.docker(*own, "--ulimit=memlock=-1", *docker_box.mounts, docker_box.image, *NOTHING)
    before = inspected(docker_box, "run-a")
    assert before["HostConfig"]["DeviceRequests"][0]["Capabilities"] == [["gpu"]]

    record = stage.carried_out(stage.plan(recipe_of("run-a")))
    assert record.state is ActionState.FAILED
    assert record.line.startswith("container run-a does not start: ")
    found = differences(before, inspected(docker_box, "run-a"))
    made_at_the_start = ("Path",)
    assert [name for name in found if not name.endswith(made_at_the_start)] == [
        f".Config.Labels.{LABEL}"
    ]


def test_a_changed_command_and_environment_are_what_is_created(
    docker_box: DockerBox, stage: Stage
) -> None:
    own = ("run", "--detach", "--name=run-a", "--entrypoint=/bin/sleep", "--env=A=1")
    docker_box.docker(*own, *docker_box.mounts, docker_box.image, "600")
    recipe = recipe_of("run-a")
    docker_box.docker("kill", "run-a")
    changed = replace(
        recipe, argv=("/bin/sleep", "900"), environment=(*(recipe.environment or ()), ("B", "2"))
    )
    record = stage.carried_out(stage.plan(changed))
    assert record.state is ActionState.DONE, record.line
    config = inspected(docker_box, "run-a")["Config"]
    assert (config["Entrypoint"], config["Cmd"]) == (["/bin/sleep"], ["900"])
    assert config["Env"][:1] + config["Env"][-1:] == ["A=1", "B=2"]


def test_the_ended_one_is_kept_aside_and_never_comes_back(
    docker_box: DockerBox, stage: Stage
) -> None:
    own = ("run", "--detach", "--name=run-a", "--restart=always", *docker_box.mounts)
    docker_box.docker(*own, docker_box.image, "/bin/sh", "-c", "echo said; exec sleep 600")
    recipe = recipe_of("run-a")
    docker_box.docker("stop", "--time=0", "run-a")
    stage.carried_out(stage.plan(recipe))

    names = docker_box.docker("ps", "--all", "--format={{.Names}}").split()
    (aside,) = (name for name in names if name != "run-a")
    assert aside.startswith("run-a-until-20")
    old = inspected(docker_box, aside)
    assert old["HostConfig"]["RestartPolicy"]["Name"] == "no"
    assert old["State"]["ExitCode"] == 137
    assert docker_box.docker("logs", aside) == "said"
    assert inspected(docker_box, "run-a")["HostConfig"]["RestartPolicy"]["Name"] == "always"
    recipe_now = kept(stage.state)
    assert recipe_now is not None
    assert recipe_now.container_id == inspected(docker_box, "run-a")["Id"]


def test_a_running_one_keeps_its_name(docker_box: DockerBox, stage: Stage) -> None:
    own = ("run", "--detach", "--name=run-a", *docker_box.mounts)
    docker_box.docker(*own, docker_box.image, *NOTHING)
    record = stage.carried_out(stage.plan(recipe_of("run-a")))
    assert record.state is ActionState.FAILED
    assert record.line.splitlines()[0] == "container run-a is running: it keeps its name"
    assert docker_box.docker("ps", "--format={{.Names}}") == "run-a"


def test_an_image_whose_name_went_on_is_found_by_its_id(
    docker_box: DockerBox, stage: Stage
) -> None:
    docker_box.docker("tag", docker_box.image, "moving:latest")
    own = ("run", "--detach", "--name=run-a", *docker_box.mounts)
    docker_box.docker(*own, "moving:latest", *NOTHING)
    before = inspected(docker_box, "run-a")
    docker_box.docker("rmi", "--no-prune", "moving:latest")
    recipe = recipe_of("run-a")
    docker_box.docker("kill", "run-a")
    assert stage.carried_out(stage.plan(recipe)).state is ActionState.DONE
    assert inspected(docker_box, "run-a")["Image"] == before["Image"]


def test_killed_before_any_step_into_the_world_one_is_created_and_runs(
    docker_box: DockerBox, tmp_path: Path
) -> None:
    own = ("run", "--detach", "--name=run-a", *docker_box.mounts)
    number = -1
    while True:
        number += 2
        with staged(tmp_path / str(number)) as stage:
            docker_box.docker(*own, docker_box.image, *NOTHING)
            plan = stage.plan(recipe_of("run-a"))
            docker_box.docker("kill", "run-a")
            was_killed = killed_at(number, partial(stage.carried_out, plan))
            (record,) = Journal(stage.state).actions() or (None,)
            if record is None or record.is_open:
                record = stage.carried_out(plan)
            assert record.state is ActionState.DONE, record.line
            assert docker_box.docker("ps", "--format={{.Names}}") == "run-a"
            listed = docker_box.docker("ps", "--all", "--format={{.Names}}").split()
            assert len(listed) == 2
            assert record.facts["container_id"] == inspected(docker_box, "run-a")["Id"]
            docker_box.docker("rm", "--force", *listed)
        if not was_killed:
            break
    assert number > 20


def test_an_engine_that_comes_back_is_waited_for(
    docker_box: DockerBox, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ("run", "--detach", "--name=run-a", *docker_box.mounts)
    docker_box.docker(*own, docker_box.image, *NOTHING)
    plan = stage.plan(recipe_of("run-a"))
    docker_box.docker("kill", "run-a")

    class Restarting(DockerEngine):
        asked_before = 0

        def asked(self, at: float, question: Any) -> Any:
            Restarting.asked_before += 1
            if Restarting.asked_before % 3:
                reason = "Docker is not running or not installed"
                return Unknown(why=Absence.MISSING, reason=reason, at=at)
            return super().asked(at, question)

    monkeypatch.setattr(claiming, "DockerEngine", Restarting)
    record = stage.carried_out(plan)
    assert record.state is ActionState.DONE, record.line
    assert docker_box.docker("ps", "--format={{.Names}}") == "run-a"


def test_an_engine_that_stays_away_is_a_failure_that_says_so(
    docker_box: DockerBox, stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ("run", "--detach", "--name=run-a", *docker_box.mounts)
    docker_box.docker(*own, docker_box.image, *NOTHING)
    plan = stage.plan(recipe_of("run-a"))
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    monkeypatch.setattr(claiming, "PATIENCE_S", 0.0)
    record = stage.carried_out(plan)
    assert record.state is ActionState.FAILED
    assert record.line == "Docker is not running or not installed"
