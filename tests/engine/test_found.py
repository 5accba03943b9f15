"""Runs in containers of a real engine, found end to end with no option at all."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from docker_box import DockerBox

pytestmark = pytest.mark.engine

DEMO = (
    *(sys.executable, "-m", "tui.demo", "--dir", "/tmp/demo", "--speed", "40"),
    *("--num-rollout", "5000", "--save-interval", "2"),
)
SAVED = ("--save", "/ckpt/run-a", "--load", "/ckpt/run-a")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name in ("runs", "ckpt"):
        (tmp_path / name).mkdir()
    return tmp_path


def client(docker_box: DockerBox, folder: Path, *argv: str) -> subprocess.Popen[bytes]:
    """`docker … > runs/plain.log 2>&1`, as a process of its own."""
    with (folder / "runs" / "plain.log").open("wb") as log:
        return docker_box.box.start(
            "docker", *argv, cwd=folder, stdout=log, stderr=subprocess.STDOUT
        )


def parts_of(run: dict[str, Any]) -> tuple[str, ...]:
    """What a run was found by, without numbers."""
    return tuple(part.replace(",", "").split()[0] for part in run["found_by"])


@pytest.mark.parametrize("network", ["host", "bridge"])
@pytest.mark.parametrize("options", [("--name=run-a",), ()], ids=["named", "unnamed"])
def test_docker_run_into_a_file(
    docker_box: DockerBox, folder: Path, network: str, options: tuple[str, ...]
) -> None:
    own = (*options, "--rm", f"--volume={folder}/ckpt:/ckpt")
    words = docker_box.run_words(*own, network=network)
    at_its_address = f"exec {' '.join((*DEMO, *SAVED))} --host $(hostname -i)"
    client(docker_box, folder, *words, "/bin/sh", "-c", at_its_address)
    run = docker_box.box.the_run(rollout=3)

    attachment = run["attachment"]
    assert parts_of(run) == ("container", "docker", "driver")
    assert attachment["log"]["value"] == str(folder / "runs" / "plain.log")
    assert attachment["log"]["source"].startswith("output of `docker run`, process ")
    assert attachment["checkpoints"]["value"] == str(folder / "ckpt" / "run-a")
    pid, name = attachment["driver_pid"]["value"], attachment["name"]
    assert attachment["checkpoints"]["source"] == (
        f"--save /ckpt/run-a of process {pid}, through a mount of container {name}"
    )
    assert attachment["notes"] == []
    assert attachment["launch"]["save_interval"] == 2
    snapshot = docker_box.box.status()["snapshot"]
    assert snapshot["container"]["value"]["status"] == "running"
    assert snapshot["checkpoints"]["value"]["root"] == str(folder / "ckpt" / "run-a")
    (engine,) = snapshot["engines"]
    assert engine["probe"]["reachable"]["value"] is True
    assert engine["probe"]["url"].startswith("http://172.17.0." if network == "bridge" else "http")


def test_docker_run_in_the_background(docker_box: DockerBox, folder: Path) -> None:
    words = docker_box.run_words("--detach", "--name=run-b", f"--volume={folder}/ckpt:/ckpt")
    docker_box.docker(*words, *DEMO, *SAVED)
    run = docker_box.box.the_run()

    attachment = run["attachment"]
    assert parts_of(run) == ("container", "driver")
    assert attachment["log"]["source"] == "container run-b, its output copied here"
    assert attachment["checkpoints"]["value"] == str(folder / "ckpt" / "run-a")
    assert docker_box.box.status()["summary"]["rollout"] is not None


def test_a_save_path_on_no_mount_is_said_to_vanish(docker_box: DockerBox, folder: Path) -> None:
    words = docker_box.run_words("--rm", "--name=run-c")
    client(docker_box, folder, *words, *DEMO, "--save", "/tmp/saved")
    run = docker_box.box.the_run()

    pid = run["attachment"]["driver_pid"]["value"]
    assert run["attachment"]["checkpoints"] is None
    assert run["attachment"]["notes"] == [
        f"checkpoints: --save /tmp/saved of process {pid} is on no mount of container run-c: they "
        "vanish with it"
    ]
    told = docker_box.box.milepost("status").stdout
    assert "is on no mount of container run-c" in " ".join(told.split())


def test_docker_exec_into_a_container_of_something_else(
    docker_box: DockerBox, folder: Path
) -> None:
    words = docker_box.run_words("--detach", "--name=tools", f"--volume={folder}/ckpt:/ckpt")
    docker_box.docker(*words, "/bin/sleep", "600")
    assert docker_box.box.runs() == []
    client(docker_box, folder, "exec", "tools", *DEMO, *SAVED)
    run = docker_box.box.the_run()

    assert parts_of(run) == ("container", "docker", "driver")
    assert run["attachment"]["log"]["value"] == str(folder / "runs" / "plain.log")
    assert run["attachment"]["checkpoints"]["value"] == str(folder / "ckpt" / "run-a")


def test_a_log_that_the_container_itself_writes_to_a_mount(
    docker_box: DockerBox, folder: Path
) -> None:
    words = docker_box.run_words("--detach", "--name=run-d", f"--volume={folder}/ckpt:/ckpt")
    inside = f"{' '.join((*DEMO, *SAVED))} 2>&1 | tee /ckpt/own.log"
    docker_box.docker(*words, "/bin/sh", "-c", inside)
    run = docker_box.box.the_run()

    assert run["attachment"]["log"]["value"] == str(folder / "ckpt" / "own.log")
    assert run["attachment"]["log"]["source"].startswith("output of the driver, process ")


COMPOSE = """
version: "3"
services:
  train:
    image: {image}
    network_mode: host
    command: [{command}]
    volumes: [{volumes}]
    tmpfs: [/tmp]
"""


@pytest.fixture
def _compose(docker_box: DockerBox, folder: Path) -> None:
    if shutil.which("docker-compose") is None:
        pytest.skip("needs docker-compose")
    mounts = [mount.removeprefix("--volume=") for mount in docker_box.mounts]
    (folder / "docker-compose.yml").write_text(
        COMPOSE.format(
            image=docker_box.image,
            command=", ".join(f'"{word}"' for word in (*DEMO, *SAVED)),
            volumes=", ".join(f'"{mount}"' for mount in (*mounts, f"{folder}/ckpt:/ckpt")),
        )
    )
    words = ("docker-compose", "--project-name", "lab", "--project-directory", str(folder))
    environment = {**os.environ, "DOCKER_HOST": docker_box.host}
    up = [*words, "--file", str(folder / "docker-compose.yml"), "up", "--detach"]
    ran = subprocess.run(up, env=environment, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stderr


@pytest.mark.usefixtures("_compose")
def test_docker_compose(docker_box: DockerBox, folder: Path) -> None:
    run = docker_box.box.the_run()

    assert run["found_by"][0].endswith(", made by docker compose as lab/train")
    assert run["attachment"]["checkpoints"]["value"] == str(folder / "ckpt" / "run-a")
    for name in (run["handle"], "train", "lab/train"):
        assert docker_box.box.status(name)["summary"]["rollout"] is not None


def test_in_the_same_container_as_the_monitor(docker_box: DockerBox, folder: Path) -> None:
    words = docker_box.run_words("--detach", "--name=run-e", f"--volume={folder}/ckpt:/ckpt")
    docker_box.docker(*words, "/bin/sleep", "600")
    logged = f"cd /tmp && exec {' '.join((*DEMO, *SAVED))} > plain.log 2>&1"
    docker_box.docker("exec", "--detach", "run-e", "/bin/sh", "-c", logged)
    (seen_from_outside,) = docker_box.box.runs_until(lambda runs: len(runs) == 1)
    milepost = (sys.executable, "-m", "tui", "status", "--json")
    inside = docker_box.docker("exec", "run-e", *milepost, check=False)

    attachment = json_of(inside)["snapshot"]["attachment"]
    assert attachment["log"]["value"] == "/tmp/plain.log"
    assert attachment["checkpoints"]["value"] == "/ckpt/run-a"
    assert json_of(inside)["summary"]["state"] in ("starting", "running")
    assert seen_from_outside["attachment"]["log"] is None
    assert "run milepost inside it" in seen_from_outside["attachment"]["notes"][0]


def json_of(text: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads(text)
    return document


def test_two_containers_at_once(docker_box: DockerBox, folder: Path) -> None:
    for name in ("run-f", "run-g"):
        docker_box.docker(*docker_box.run_words("--detach", f"--name={name}"), *DEMO)
    listed = docker_box.box.runs_until(lambda runs: len(runs) == 2)

    assert sorted(run["handle"] for run in listed) == ["run-f", "run-g"]
    told = docker_box.box.milepost("status")
    assert told.returncode == 2
    assert "there are 2 runs on this machine" in told.stderr
    status = docker_box.box.status("run-f")
    assert status["snapshot"]["container"]["value"]["name"] == "run-f"


@pytest.mark.pty
def test_a_container_is_found_and_told_on_the_screen(docker_box: DockerBox, folder: Path) -> None:
    words = docker_box.run_words("--rm", "--name=run-h", network="bridge")
    client(docker_box, folder, *words, *DEMO, "--save", "/tmp/saved")
    docker_box.box.the_run()
    with docker_box.box.screen() as terminal:
        terminal.shows("run-h", "● RUNNING", "runs/plain.log", "is on no mount of container run-h")
        assert terminal.leave() == 0
