"""Containers of a real Docker engine, stopped, killed, renamed and run commands in."""

from __future__ import annotations

import sys
import time
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from docker_box import DockerBox
from families import until

from tui.actions import py_spy
from tui.actions.containers import Outcome, exec_in, kill, rename, stop
from tui.model.launch import Process
from tui.model.reading import Absence, Known, Unknown
from tui.model.target import ContainerTarget
from tui.runs.docker import DockerEngine

pytestmark = pytest.mark.engine

LISTENS = (
    "trap 'echo ended well > /ckpt/end; exit 0' TERM; echo > /ckpt/up; while :; do sleep 0.1; done"
)
DEAF = "trap '' TERM; echo > /ckpt/up; while :; do sleep 0.1; done"


def start(
    box: DockerBox, folder: Path, command: str, *options: str, name: str = "run-a"
) -> ContainerTarget:
    box.docker(
        *box.run_words("--detach", f"--name={name}", f"--volume={folder}:/ckpt", *options),
        "/bin/sh", "-c", command,
    )  # fmt: skip
    until((folder / "up").exists)
    return look(name)


def look(name: str) -> ContainerTarget:
    reading = DockerEngine().inspect(name, time.time())
    assert isinstance(reading, Known)
    container = reading.value
    return ContainerTarget(id=container.id, name=container.name, started_at=container.started_at)


def told(reading: object) -> Outcome:
    assert isinstance(reading, Known), reading
    assert isinstance(reading.value, Outcome)
    return reading.value


def status(name: str) -> str:
    reading = DockerEngine().inspect(name, time.time())
    assert isinstance(reading, Known)
    return reading.value.status


@pytest.mark.parametrize("options", [("--rm",), ()])
def test_one_that_listens_ends_well(
    docker_box: DockerBox, tmp_path: Path, options: tuple[str, ...]
) -> None:
    target = start(docker_box, tmp_path, LISTENS, *options)
    assert told(stop(target, 60.0)) is Outcome.DONE
    assert (tmp_path / "end").read_text() == "ended well\n"
    until(lambda: status("run-a") == ("gone" if options else "exited"))
    assert told(stop(target, 60.0)) is Outcome.ALREADY
    assert told(kill(target)) is Outcome.ALREADY


def test_one_that_does_not_listen_is_ended_after_its_grace(
    docker_box: DockerBox, tmp_path: Path
) -> None:
    target = start(docker_box, tmp_path, DEAF)
    assert told(stop(target, 1.0)) is Outcome.DONE
    assert status("run-a") == "exited"


def test_one_that_is_killed(docker_box: DockerBox, tmp_path: Path) -> None:
    target = start(docker_box, tmp_path, LISTENS)
    assert told(kill(target)) is Outcome.DONE
    assert status("run-a") == "exited"
    assert not (tmp_path / "end").exists()


def test_a_paused_one_is_ended(docker_box: DockerBox, tmp_path: Path) -> None:
    target = start(docker_box, tmp_path, DEAF)
    docker_box.docker("pause", "run-a")
    assert told(stop(target, 1.0)) is Outcome.DONE
    assert status("run-a") == "exited"


def test_one_that_was_started_again_is_left_alone(docker_box: DockerBox, tmp_path: Path) -> None:
    target = start(docker_box, tmp_path, DEAF)
    docker_box.docker("restart", "--time=0", "run-a")
    assert told(stop(target, 0.0)) is Outcome.ANOTHER
    assert told(kill(target)) is Outcome.ANOTHER
    assert status("run-a") == "running"
    assert told(kill(look("run-a"))) is Outcome.DONE


def test_another_of_the_same_name_is_left_alone(docker_box: DockerBox, tmp_path: Path) -> None:
    target = start(docker_box, tmp_path, DEAF)
    docker_box.docker("rm", "--force", "run-a")
    start(docker_box, tmp_path, DEAF)
    assert told(kill(target)) is Outcome.ALREADY
    assert status("run-a") == "running"


def test_an_ended_one_is_renamed_and_one_that_runs_is_not(
    docker_box: DockerBox, tmp_path: Path
) -> None:
    target = start(docker_box, tmp_path, DEAF)
    refused = rename(target, "run-a-old")
    assert isinstance(refused, Unknown)
    assert refused.reason == "container run-a runs: it keeps its name"
    told(kill(target))
    assert told(rename(target, "run-a-old")) is Outcome.DONE
    assert told(rename(target, "run-a-old")) is Outcome.ALREADY
    assert look("run-a-old") == replace(target, name="run-a-old")

    other = start(docker_box, tmp_path, "echo > /ckpt/up", name="run-b")
    until(lambda: status("run-b") == "exited")
    taken = rename(other, "run-a-old")
    assert isinstance(taken, Unknown)
    assert "already in use" in taken.reason
    docker_box.docker("rm", "run-b")
    gone = rename(other, "run-c")
    assert isinstance(gone, Unknown)
    assert gone.why is Absence.MISSING


def test_a_command_in_it(docker_box: DockerBox, tmp_path: Path) -> None:
    target = start(docker_box, tmp_path, DEAF)
    ran = exec_in(target.id, ("sh", "-c", "echo out; echo err >&2; exit 3"))
    assert isinstance(ran, Known), ran
    assert ran.value.exit_code == 3
    assert sorted(ran.value.output.splitlines()) == ["err", "out"]

    once = ("sh", "-c", "set -C; : > /ckpt/trigger")
    codes = [known_code(exec_in(target.id, once)) for _ in range(2)]
    assert codes[0] == 0
    assert codes[1] != 0
    assert known_code(exec_in(target.id, ("true",))) == 0

    many = exec_in(target.id, ("seq", "100000"))
    assert isinstance(many, Known)
    assert len(many.value.output.splitlines()) == 100000


def known_code(reading: object) -> int:
    assert isinstance(reading, Known), reading
    code = reading.value.exit_code
    assert isinstance(code, int)
    return code


def test_a_command_that_does_not_end_is_not_waited_for(
    docker_box: DockerBox, tmp_path: Path
) -> None:
    target = start(docker_box, tmp_path, DEAF)
    late = exec_in(target.id, ("sleep", "1000"), timeout_s=0.5)
    assert isinstance(late, Unknown)
    assert (late.why, late.reason) == (Absence.TIMED_OUT, "sleep did not end within 0.5 s")
    chatty = exec_in(target.id, ("sh", "-c", "while :; do echo; sleep 0.05; done"), timeout_s=0.5)
    assert isinstance(chatty, Unknown)
    assert chatty.why is Absence.TIMED_OUT


def test_no_container_and_no_program(docker_box: DockerBox, tmp_path: Path) -> None:
    nowhere = exec_in("0" * 64, ("true",))
    assert isinstance(nowhere, Unknown)
    assert "No such container" in nowhere.reason
    target = start(docker_box, tmp_path, DEAF)
    nothing = exec_in(target.id, ("no-such-program",))
    assert isinstance(nothing, Unknown) or nothing.value.exit_code in (126, 127)


def test_a_process_in_it_is_looked_at_from_inside_where_we_may_not(
    docker_box: DockerBox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody but root may look into a container's processes, but Docker's group may ask it to."""
    beside = Path(sys.executable).parent
    if not (beside / "py-spy").exists():
        pytest.skip("needs py-spy: the extra `autopsy`")
    script = (
        "import time\ndef all_reduce():\n    open('/ckpt/up', 'w'); time.sleep(1000)\nall_reduce()"
    )
    docker_box.docker(
        *docker_box.run_words("--detach", f"--volume={tmp_path}:/ckpt", f"--env=PATH={beside}"),
        sys.executable, "-c", script, str(tmp_path),
    )  # fmt: skip
    until((tmp_path / "up").exists)
    (container,) = docker_box.docker("ps", "--quiet", "--no-trunc").split()
    (found,) = (
        each
        for each in psutil.process_iter(["cmdline"])
        if (each.info["cmdline"] or [""])[-1] == str(tmp_path)
    )
    process = Process(pid=found.pid, started_at=found.create_time(), role="trainer", title="t")
    monkeypatch.setattr(py_spy, "py_spy", lambda: None)
    sight = py_spy.look_at(process, container)
    assert sight.fault == ""
    assert sight.doing == "all_reduce"

    elsewhere = py_spy.look_at(process, "0" * 64)
    assert "No such container" in elsewhere.fault


def test_no_engine(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    missing = stop(ContainerTarget(id="0" * 64, name="run-a", started_at=1.0), 1.0)
    assert isinstance(missing, Unknown)
    assert missing.why is Absence.MISSING
    assert missing.at > 0.0
