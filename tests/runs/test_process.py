"""Drivers found on this machine: real processes, and where what they print ends up."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from children import end_session

from tui.model.reading import Absence, Known, Reading, Unknown, mapped
from tui.runs.output import OutputFile, output_of
from tui.runs.process import RunProcess, container_in, find_processes

NOW = 1_795_956_000.0
ID = "ab12" * 16
SLEEPER = "import time\nprint('ready', flush=True)\ntime.sleep(600)\n"

Start = Callable[[str], int]
"""Runs a shell command in a folder that holds `train.py`; the pid that drives."""


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "train.py").write_text(SLEEPER)
    shells: list[subprocess.Popen[bytes]] = []

    def start(command: str) -> int:
        line = command.replace("PYTHON", sys.executable)
        shell = subprocess.Popen(
            ["bash", "-c", line], cwd=tmp_path, stdin=subprocess.DEVNULL, start_new_session=True
        )
        shells.append(shell)
        return wait_for(lambda: driver_below(shell.pid))

    yield start
    for shell in shells:
        end_session(shell)


def wait_for(look: Callable[[], int | None]) -> int:
    deadline = time.monotonic() + 30.0
    while (found := look()) is None:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return found


def driver_below(shell: int) -> int | None:
    """The Python process once it runs `train.py`; the shell itself when it replaced itself."""
    family = [psutil.Process(shell), *psutil.Process(shell).children(recursive=True)]
    for member in family:
        with suppress(psutil.Error):
            if "train.py" in member.cmdline() and "python" in member.cmdline()[0]:
                return member.pid
    return None


def found(pid: int) -> RunProcess:
    (driver,) = [driver for driver in find_processes(NOW).drivers if driver.pid == pid]
    return driver


def path_of(output: Reading[OutputFile]) -> Reading[str]:
    return mapped(output, lambda file: file.path)


def test_a_driver_that_prints_into_a_file(start: Start, tmp_path: Path) -> None:
    pid = start("exec PYTHON train.py --save /ckpt --wandb-key hidden1 > run.log 2>&1")
    driver = found(pid)
    log = tmp_path / "run.log"
    assert path_of(driver.output) == Known(value=str(log), at=NOW)
    assert isinstance(driver.output, Known)
    assert driver.output.value.is_at(str(log))
    assert not driver.output.value.is_at(str(tmp_path / "train.py"))
    assert not driver.output.value.is_at(str(tmp_path / "none.log"))
    assert driver.cwd == str(tmp_path)
    assert driver.launch.save == "/ckpt"
    assert driver.argv[-1] == "hidden1"
    assert "hidden1" not in repr(driver)
    assert driver.started_at == psutil.Process(pid).create_time()
    assert driver.ancestors[0] == psutil.Process(pid).ppid()
    assert driver.inner_pid == pid
    assert not driver.is_elsewhere
    assert not driver.demo


@pytest.mark.parametrize(
    "command",
    [
        "PYTHON train.py 2>&1 | tee run.log > /dev/null",
        "PYTHON train.py 2>&1 | tee -a ./run.log > /dev/null",
        "PYTHON train.py 2>&1 | cat | tee run.log > /dev/null",
        "PYTHON train.py 2>&1 | cat > run.log",
        "PYTHON train.py > /dev/null 2> run.log",
    ],
)
def test_the_log_behind_a_pipe(start: Start, tmp_path: Path, command: str) -> None:
    pid = start(command)
    log = Known(value=str(tmp_path / "run.log"), at=NOW)

    def connected() -> int | None:
        return pid if path_of(output_of(pid, NOW)) == log else None

    assert wait_for(connected) == pid  # the shell starts both ends of a pipe in its own order
    assert path_of(found(pid).output) == log


def test_a_deleted_log_is_said(start: Start, tmp_path: Path) -> None:
    pid = start("exec PYTHON train.py > run.log 2>&1")
    (tmp_path / "run.log").unlink()
    assert output_of(pid, NOW) == Unknown(
        why=Absence.MISSING, reason=f"its log {tmp_path}/run.log was deleted", at=NOW
    )


def test_output_that_is_no_file(start: Start) -> None:
    reading = output_of(start("exec PYTHON train.py > /dev/null 2>&1"), NOW)
    assert reading == Unknown(why=Absence.MISSING, reason="it prints to /dev/null, no file", at=NOW)


def test_a_pipe_that_leads_nowhere(start: Start) -> None:
    reading = output_of(start("PYTHON train.py 2>&1 | cat > /dev/null"), NOW)
    assert isinstance(reading, Unknown)
    assert "ends in no file" in reading.reason


def test_a_process_that_is_gone() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    assert isinstance(output_of(child.pid, NOW), Unknown)


def test_no_permission_is_said(start: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = start("exec PYTHON train.py > run.log 2>&1")

    def denied(path: Path) -> Path:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "readlink", denied)
    monkeypatch.setattr(psutil.Process, "cwd", lambda self: raise_denied(self.pid))
    driver = found(pid)
    assert isinstance(driver.output, Unknown)
    assert driver.output.why is Absence.NO_PERMISSION
    assert driver.cwd == ""


def raise_denied(pid: int) -> str:
    raise psutil.AccessDenied(pid)


def test_a_forked_copy_is_no_driver_of_its_own(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os, time\nos.fork()\ntime.sleep(600)\n")
    pid = start("exec PYTHON train.py > run.log 2>&1")
    (child,) = wait_for_children(pid)
    pids = [driver.pid for driver in find_processes(NOW).drivers]
    assert pid in pids
    assert child not in pids


def wait_for_children(pid: int) -> list[int]:
    wait_for(lambda: pid if psutil.Process(pid).children() else None)
    return [child.pid for child in psutil.Process(pid).children()]


def test_a_launcher_is_an_ancestor_of_its_driver(start: Start, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    (tmp_path / "scripts" / "run_qwen.py").write_text(
        "import subprocess, sys\nsubprocess.run([sys.executable, 'train.py'])\n"
    )
    driver = found(start("exec PYTHON scripts/run_qwen.py --save /ckpt > run.log 2>&1"))
    launchers = [each for each in find_processes(NOW).launchers if each.pid in driver.ancestors]
    assert [launcher.launch.save for launcher in launchers] == ["/ckpt"]


def test_a_docker_client(tmp_path: Path) -> None:
    (tmp_path / "docker").symlink_to("/bin/sh")
    (tmp_path / "run").write_text("sleep 600\n")
    (tmp_path / "id").write_text(f"{ID}\n")
    argv = ("./docker", "run", "--cidfile=id", "radixark/miles", "bash")
    with (tmp_path / "plain.log").open("wb") as log:
        shell = subprocess.Popen(argv, cwd=tmp_path, stdout=log, start_new_session=True)
    try:
        (client,) = [each for each in find_processes(NOW).clients if each.pid == shell.pid]
    finally:
        end_session(shell)
    assert client.docker is not None
    assert client.docker.container == ID
    assert path_of(client.output) == Known(value=str(tmp_path / "plain.log"), at=NOW)


@pytest.mark.parametrize(
    ("cgroup", "container_id"),
    [
        (f"0::/system.slice/docker-{ID}.scope\n", ID),
        (f"12:memory:/docker/{ID}\n0::/\n", ID),
        (f"0::/kubepods.slice/pod1/cri-containerd-{ID}.scope\n", ID),
        ("0::/user.slice/user-1000.slice/session-2.scope\n", ""),
        (f"0::/docker/{ID}/init.scope\n", ID),
        ("", ""),
    ],
)
def test_the_container_of_a_cgroup(cgroup: str, container_id: str) -> None:
    assert container_in(cgroup) == container_id


def test_the_newest_comes_first(start: Start) -> None:
    older = start("exec PYTHON train.py > a.log 2>&1")
    started_at = psutil.Process(older).create_time()
    newer = older
    while newer == older or psutil.Process(newer).create_time() == started_at:
        newer = start("exec PYTHON train.py > b.log 2>&1")
    pids = [driver.pid for driver in find_processes(NOW).drivers if driver.pid in (older, newer)]
    assert pids == [newer, older]


def test_a_look_alike_is_none() -> None:
    child = subprocess.Popen(
        ["bash", "-c", "exec -a 'python3 train.py' sleep 600"], env={"PATH": os.environ["PATH"]}
    )
    try:
        assert child.pid not in [driver.pid for driver in find_processes(NOW).drivers]
    finally:
        child.kill()
        child.wait()
