"""Containers of a real Docker engine: how they end is read, even where they remove themselves."""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from children import release
from docker_box import DockerBox

from tui.model.events import ContainerRead
from tui.model.launch import Attachment, Container, Found
from tui.model.reading import Known, Reading
from tui.model.snapshot import Snapshot
from tui.probes.container import ContainerProbe
from tui.runs.docker import DockerEngine

pytestmark = pytest.mark.engine


def look(probe: ContainerProbe, name: str) -> Reading[Container]:
    found = Found(value=name, source="--container")
    seen = Snapshot(attachment=Attachment(container=found))
    (event,) = probe.read(time.time(), seen)
    assert isinstance(event, ContainerRead)
    return event.container


def look_until(probe: ContainerProbe, name: str, wanted: Callable[[Container], bool]) -> Container:
    deadline = time.monotonic() + 60.0
    while True:
        reading = look(probe, name)
        if isinstance(reading, Known) and wanted(reading.value):
            return reading.value
        assert time.monotonic() < deadline, f"never came true: {reading}"
        time.sleep(0.02)


def start(box: DockerBox, *options: str, command: str) -> None:
    box.docker(*box.run_words("--detach", *options), "/bin/sh", "-c", command)


def test_one_that_removes_itself_tells_its_exit_code(docker_box: DockerBox, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    start(
        docker_box, "--rm", "--name=run-a", f"--volume={tmp_path}:/ckpt",
        command="read line < /ckpt/go; exit 3",
    )  # fmt: skip
    probe = ContainerProbe()
    running = look_until(probe, "run-a", lambda seen: seen.status == "running")
    assert running.auto_remove
    assert running.exit_code is None
    assert running.started_at > time.time() - 3600.0
    assert (str(tmp_path), "/ckpt") in running.mounts
    release(tmp_path / "go")
    gone = look_until(probe, "run-a", lambda seen: seen.status == "gone")
    probe.close()
    assert gone.id == running.id
    assert (gone.exit_code, gone.oom_killed) == (3, False)
    assert gone.finished_at >= running.started_at


def test_one_that_is_kept(docker_box: DockerBox) -> None:
    start(docker_box, "--name=run-b", command="exit 3")
    probe = ContainerProbe()
    seen = look_until(probe, "run-b", lambda seen: seen.status == "exited")
    probe.close()
    assert (seen.exit_code, seen.oom_killed, seen.auto_remove) == (3, False, False)
    assert min(seen.started_at, seen.finished_at) > time.time() - 3600.0


@pytest.mark.parametrize("options", [("--rm",), ()])
@pytest.mark.parametrize("verb", ["stop", "kill", ""])
def test_one_that_somebody_ends_is_told_from_one_that_ends(
    docker_box: DockerBox, tmp_path: Path, options: tuple[str, ...], verb: str
) -> None:
    """A shell as first process does not heed SIGTERM: stopped or killed, its exit code is 137."""
    os.mkfifo(tmp_path / "go")
    start(
        docker_box, "--name=run-a", f"--volume={tmp_path}:/ckpt", *options,
        command="read line < /ckpt/go; kill -9 $$; exit 137",
    )  # fmt: skip
    probe = ContainerProbe()
    look_until(probe, "run-a", lambda seen: seen.status == "running")
    if verb:
        timeout = ("--time=1",) if verb == "stop" else ()
        docker_box.docker(verb, *timeout, "run-a")
    else:
        release(tmp_path / "go")
    ended = look_until(probe, "run-a", lambda seen: seen.status in ("exited", "gone"))
    probe.close()

    assert ended.exit_code == 137
    assert ended.told_to_end is bool(verb)


@pytest.mark.parametrize("options", [("--rm",), ()])
def test_one_that_the_kernel_kills_for_memory(
    docker_box: DockerBox, tmp_path: Path, options: tuple[str, ...]
) -> None:
    if json.loads(docker_box.docker("info", "--format={{json .}}")).get("MemoryLimit") is not True:
        pytest.skip("this kernel does not limit a container's memory")
    os.mkfifo(tmp_path / "go")
    start(
        docker_box, *options, "--name=run-c", "--memory=64m", f"--volume={tmp_path}:/ckpt",
        command=f"read line < /ckpt/go; exec {sys.executable} -c 'bytearray(1 << 30)'",
    )  # fmt: skip
    probe = ContainerProbe()
    look_until(probe, "run-c", lambda seen: seen.status == "running")
    release(tmp_path / "go")
    ended = look_until(probe, "run-c", lambda seen: seen.status in ("gone", "exited"))
    probe.close()
    assert (ended.exit_code, ended.oom_killed) == (137, True)


def test_lines_of_two_streams_stay_whole(docker_box: DockerBox, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    start(
        docker_box, "--name=run-d", f"--volume={tmp_path}:/ckpt",
        command="printf 'one\\ntw'; printf 'error\\n' >&2; printf 'o 🚀\\n'; read line < /ckpt/go",
    )  # fmt: skip
    engine = DockerEngine()
    heard = engine.follow_logs("run-d", 0.0)
    text = ""
    while text.count("\n") < 3:
        text += next(heard).decode()
    release(tmp_path / "go")
    assert list(heard) == []
    engine.close()
    assert sorted(text.splitlines()) == ["error", "one", "two 🚀"]


def test_a_log_is_followed_while_it_grows(docker_box: DockerBox, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    os.mkfifo(tmp_path / "end")
    start(
        docker_box, "--tty", "--rm", "--name=run-e", f"--volume={tmp_path}:/ckpt",
        command="echo begun; read line < /ckpt/go; echo done; read line < /ckpt/end",
    )  # fmt: skip
    engine = DockerEngine()
    heard = engine.follow_logs("run-e", 0.0)
    assert next(heard) == b"begun\r\n"
    release(tmp_path / "go")
    assert next(heard) == b"done\r\n"
    release(tmp_path / "end")
    assert list(heard) == []
    engine.close()


def test_a_run_is_found_by_its_command(docker_box: DockerBox) -> None:
    start(docker_box, "--name=run-f", command="sleep 600 # python3 /root/miles/train.py")
    start(docker_box, "--name=other", command="sleep 600")
    engine = DockerEngine()
    found = engine.find_miles_containers(time.time())
    listed = engine.containers(time.time())
    engine.close()
    assert isinstance(found, Known)
    assert [one.container.name for one in found.value] == ["run-f"]
    assert isinstance(listed, Known)
    assert sorted(container.name for container in listed.value) == ["other", "run-f"]


def test_this_python_runs_inside(docker_box: DockerBox) -> None:
    words = docker_box.run_words("--rm")
    code = "import tui.runs.docker, psutil; print(psutil.Process().pid)"
    assert docker_box.docker(*words, sys.executable, "-c", code) == "1"
