"""Every move on a run, by commands: in containers of a real engine, and in a process beside it."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_box import DockerBox
from moves import moved_while_gone, moved_while_it_lives
from places import BareProcess, DetachedContainer, RemovedContainer

pytestmark = pytest.mark.engine


def test_docker_run_rm(docker_box: DockerBox, tmp_path: Path) -> None:
    with RemovedContainer(docker_box, tmp_path) as run:
        moved_while_it_lives(run)
        assert run.logs == ["plain.log", "plain-resume.log"]
        assert run.containers == {"run-a": "running"}
        run.kill()
        moved_while_gone(run)
        assert run.logs[2:] == ["plain-resume-2.log", "plain-resume-3.log"]
        assert run.containers == {"run-a": "running"}


def test_docker_run_d(docker_box: DockerBox, tmp_path: Path) -> None:
    with DetachedContainer(docker_box, tmp_path) as run:
        moved_while_it_lives(run)
        (old,) = run.containers.keys() - {"run-a"}
        assert old.startswith("run-a-until-")
        assert run.containers == {"run-a": "running", old: "exited"}
        assert "perf 3:" in docker_box.docker("logs", old)
        given = docker_box.docker("inspect", "--format={{.Config.Env}}", "run-a")
        assert "MILES_SCRIPT_EXTRA_ARGS=--save /ckpt/run-a --load /ckpt/run-a --save-tri" in given
        run.kill()
        assert run.containers["run-a"] == "exited"
        docker_box.docker("rm", "run-a", old)
        moved_while_gone(run)
        assert run.containers.pop("run-a") == "running"


def test_nohup(docker_box: DockerBox, tmp_path: Path) -> None:
    with BareProcess(docker_box.box, tmp_path) as run:
        moved_while_it_lives(run)
        assert run.logs == ["plain.log", "plain-resume.log"]
        run.kill()
        moved_while_gone(run)
        assert run.logs[2:] == ["plain-resume-2.log", "plain-resume-3.log"]
