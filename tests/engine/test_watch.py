"""The demo in a real container, its output redirected as users do, watched on a real terminal."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker_box import DockerBox
from terminal import Terminal

pytestmark = [pytest.mark.engine, pytest.mark.pty]


@pytest.fixture
def run(docker_box: DockerBox, tmp_path: Path) -> Iterator[Path]:
    """`docker run --rm … > runs/plain.log 2>&1`, as a process of its own; the folder it runs in."""
    (tmp_path / "runs").mkdir()
    (tmp_path / "ckpt").mkdir()
    words = docker_box.run_words("--rm", "--name=run-a", f"--volume={tmp_path}/ckpt:/ckpt")
    demo = (
        *(sys.executable, "-m", "tui.demo", "--dir", "/tmp/demo", "--speed", "40"),
        *("--save", "/ckpt/run-a", "--load", "/ckpt/run-a", "--save-interval", "2"),
        *("--num-rollout", "5000"),
    )
    with (tmp_path / "runs" / "plain.log").open("wb") as log:
        client = docker_box.box.start(
            "docker", *words, *demo, stdout=log, stderr=subprocess.STDOUT, cwd=tmp_path
        )
    yield tmp_path
    docker_box.docker("kill", "run-a", check=False)
    client.wait(60)


def test_a_run_in_a_container_is_watched_to_its_end(docker_box: DockerBox, run: Path) -> None:
    with docker_box.box.screen("--log", str(run / "runs" / "plain.log")) as terminal:
        terminal.shows("● RUNNING", "container run-a", "actor_train", "whole", "resumes")
        terminal.shows("of 5 000", "container-auto-remove", "runs/plain.log")
        docker_box.docker("kill", "run-a")
        terminal.shows("FAILED", "137", "run-failed", deadline_s=30.0)
        assert terminal.leave() == 0


def test_a_container_whose_output_goes_nowhere_is_read_through_docker(
    docker_box: DockerBox, tmp_path: Path
) -> None:
    words = docker_box.run_words("--detach", "--name=run-b", f"--volume={tmp_path}:/ckpt")
    demo = ("-m", "tui.demo", "--dir", "/tmp/demo", "--speed", "40", "--save", "/ckpt/run-b")
    docker_box.docker(*words, sys.executable, *demo, "--num-rollout", "5000")
    argv = docker_box.box.words(sys.executable, "-m", "tui", "run-b")
    env = {"DOCKER_HOST": docker_box.host, "XDG_STATE_HOME": str(tmp_path / "state")}
    with Terminal(argv, size=(100, 40), **env) as terminal:
        terminal.shows("● RUNNING", "run-b", "reward")
        assert terminal.leave() == 0
