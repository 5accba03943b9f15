"""The process probe over real children: roles, kin, CPU, ends, and what may not be read."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from unittest.mock import MagicMock

import psutil
import pytest
from children import end_session, release

from tui.model.events import ProcessesRead
from tui.model.launch import Attachment, Found, Process, ProcessTree
from tui.model.reading import Known, Unknown
from tui.model.snapshot import Snapshot
from tui.probes.processes import RELOOK_S, ProcessesProbe

DRIVER = """
import os, subprocess, sys, time
for title in sys.argv[1:]:
    subprocess.Popen(["bash", "-c", f"exec -a '{title}' sleep 600"])
time.sleep(600)
"""
RAYLET = """#!/usr/bin/env python3
import subprocess, sys, time
subprocess.Popen([sys.argv[1], sys.argv[2]], start_new_session=True)
for title in sys.argv[3:]:
    subprocess.Popen(["bash", "-c", f"exec -a '{title}' sleep 600"], start_new_session=True)
time.sleep(600)
"""

Start = Callable[..., int]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """Starts a command in a session of its own; everything below it ends with the test."""
    started: list[subprocess.Popen[bytes]] = []

    def start(*argv: str) -> int:
        child = subprocess.Popen(argv, cwd=tmp_path, start_new_session=True)
        started.append(child)
        return child.pid

    yield start
    for child in started:
        end_session(child)


@pytest.fixture
def driver(start: Start, tmp_path: Path) -> Start:
    """Starts a `train.py` with children of the titles given."""

    def drive(*titles: str) -> int:
        (tmp_path / "train.py").write_text(DRIVER)
        return start(sys.executable, "train.py", *titles)

    return drive


def titled(start: Start, title: str) -> int:
    return start("bash", "-c", f"exec -a '{title}' sleep 600")


def watching(pid: int | str | None = None) -> Snapshot:
    found = None if pid is None else Found(value=str(pid), source="a test")
    return Snapshot(attachment=Attachment(driver_pid=found))


def look(probe: ProcessesProbe, seen: Snapshot, now: float | None = None) -> ProcessTree:
    now = time.time() if now is None else now
    (event,) = probe.read(now, seen)
    assert isinstance(event, ProcessesRead)
    assert isinstance(event.tree, Known)
    assert event.tree.at == now
    return event.tree.value


def look_until(
    probe: ProcessesProbe, seen: Snapshot, wanted: Callable[[ProcessTree], bool]
) -> ProcessTree:
    deadline = time.monotonic() + 30.0
    while not wanted(tree := look(probe, seen)):
        assert time.monotonic() < deadline, f"never came true: {tree}"
        time.sleep(0.01)
    return tree


def roles(tree: ProcessTree) -> list[str]:
    return [process.role for process in tree.processes]


def row(tree: ProcessTree, pid: int) -> Process | None:
    return next((process for process in tree.processes if process.pid == pid), None)


def test_a_driver_and_what_is_below_it(driver: Start) -> None:
    pid = driver("sglang::router", "ray::FSDPTrainRayActor.train", "sglang::scheduler_TP0", "cat")
    tree = look_until(ProcessesProbe(), watching(pid), lambda tree: len(tree.processes) == 4)
    assert roles(tree) == ["driver", "trainer", "scheduler", "router"]
    first = tree.processes[0]
    assert first.pid == pid
    assert first.started_at == psutil.Process(pid).create_time()
    assert "train.py" in first.title
    assert first.rss_bytes > 1_000_000
    assert tree.driver_exited_at == 0.0
    assert isinstance(tree.driver_exit_code, Unknown)


def test_without_a_pid_every_role_on_the_box_is_shown(start: Start) -> None:
    pids = {titled(start, title) for title in ("ray::SGLangEngine", "sglang::detokenizer")}
    tree = look_until(
        ProcessesProbe(),
        watching(),
        lambda tree: pids <= {process.pid for process in tree.processes},
    )
    assert {row(tree, pid).role for pid in pids} == {"engine", "detokenizer"}  # type: ignore[union-attr]


def test_another_runs_processes_are_left_out(driver: Start, start: Start) -> None:
    other = titled(start, "ray::SGLangEngine.init")
    pid = driver("ray::SGLangEngine")
    probe = ProcessesProbe()
    tree = look_until(probe, watching(pid), lambda tree: roles(tree) == ["driver", "engine"])
    assert row(tree, other) is None
    look_until(probe, watching(), lambda tree: row(tree, other) is not None)


def test_under_ray_the_family_is_all_below_the_raylet(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(DRIVER)
    (tmp_path / "raylet.py").write_text(RAYLET)
    launcher = titled(start, "python3")  # no role: a bystander in a session of its own
    start(
        "bash",
        "-c",
        f"exec -a /opt/ray/raylet {sys.executable} raylet.py {sys.executable} train.py "
        "ray::FSDPTrainRayActor ray::RolloutManager.generate ray::IDLE",
    )
    probe = ProcessesProbe()
    whole = look_until(
        probe, watching(), lambda tree: "driver" in roles(tree) and "trainer" in roles(tree)
    )
    mine = [one for one in whole.processes if "train.py" in one.title and one.role == "driver"]
    pid = next(one.pid for one in mine if psutil.Process(one.pid).cwd() == str(tmp_path))
    tree = look_until(
        probe,
        watching(pid),
        lambda tree: {"driver", "trainer", "rollout manager"} <= set(roles(tree)),
    )
    assert [one.pid for one in tree.processes if one.role == "driver"] == [pid]
    assert row(tree, launcher) is None
    assert any(one.title.startswith("/opt/ray/raylet") for one in tree.processes)


def test_a_stranger_that_has_the_pid_by_now_is_no_driver(start: Start) -> None:
    """As after a restart of the box: the driver that was kept is gone."""
    pid = start("sleep", "600")
    tree = look(ProcessesProbe(), watching(pid))

    assert tree.processes == ()
    assert tree.driver_exited_at


def test_an_http_server_below_its_engine_is_an_engine(start: Start, tmp_path: Path) -> None:
    spawned = "from multiprocessing.spawn import spawn_main; import time; time.sleep(600)"
    (tmp_path / "actor.py").write_text(
        f"import subprocess, time\n"
        f"subprocess.Popen([{sys.executable!r}, '-c', {spawned!r}])\ntime.sleep(600)\n"
    )
    pid = start("bash", "-c", f"exec -a ray::SGLangEngine {sys.executable} actor.py")
    tree = look_until(
        ProcessesProbe(), watching(pid), lambda tree: roles(tree) == ["driver", "engine"]
    )
    assert tree.processes[0].title.startswith("ray::SGLangEngine")


def test_cpu_is_counted_in_cores(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("while True: pass\n")
    pid = start(sys.executable, "train.py")
    probe = ProcessesProbe()
    assert look(probe, watching(pid)).processes[0].cpu_ratio == 0.0
    tree = look_until(probe, watching(pid), lambda tree: tree.processes[0].cpu_ratio > 0.05)
    assert tree.processes[0].cpu_ratio < 4.0


def test_an_old_process_of_no_run_is_looked_at_again(start: Start, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")
    pid = start("bash", "-c", "read line < go; exec -a sglang::scheduler sleep 600")
    probe = ProcessesProbe()
    later = time.time() + 3600.0
    assert row(look(probe, watching(), later), pid) is None
    release(tmp_path / "go")
    look_until(ProcessesProbe(), watching(), lambda tree: row(tree, pid) is not None)
    assert row(look(probe, watching(), later + RELOOK_S - 1), pid) is None
    assert row(look(probe, watching(), later + RELOOK_S + 1), pid) is not None


def test_a_driver_that_ended_stays_ended(driver: Start) -> None:
    pid = driver("sglang::scheduler")
    probe = ProcessesProbe()
    look_until(probe, watching(pid), lambda tree: len(tree.processes) == 2)
    os.kill(pid, signal.SIGKILL)  # stays a zombie: nobody has waited for it
    tree = look_until(probe, watching(pid), lambda tree: tree.driver_exited_at > 0.0)
    assert roles(tree) == ["scheduler"]
    assert look(probe, watching(pid)).driver_exited_at == tree.driver_exited_at


def test_a_named_driver_that_is_not_there_has_ended() -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    probe = ProcessesProbe()
    assert look(probe, watching(child.pid), 5.0).driver_exited_at == 5.0
    assert look(probe, watching(child.pid), 9.0).driver_exited_at == 5.0


def test_naming_another_driver_starts_afresh(driver: Start) -> None:
    first = driver()
    probe = ProcessesProbe()
    look_until(probe, watching(first), lambda tree: roles(tree) == ["driver"])
    os.kill(first, signal.SIGKILL)
    look_until(probe, watching(first), lambda tree: tree.driver_exited_at > 0.0)
    second = driver()
    tree = look_until(probe, watching(second), lambda tree: roles(tree) == ["driver"])
    assert tree.processes[0].pid == second
    assert tree.driver_exited_at == 0.0


def test_a_pid_that_is_none_is_passed_over(start: Start) -> None:
    pid = titled(start, "sglang::detokenizer")
    look_until(ProcessesProbe(), watching("x"), lambda tree: row(tree, pid) is not None)


def test_forked_copies_of_a_driver_are_left_out(start: Start, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("import os, time\nos.fork()\ntime.sleep(600)\n")
    pid = start(sys.executable, "train.py")
    deadline = time.monotonic() + 30.0
    while not psutil.Process(pid).children():
        assert time.monotonic() < deadline
    assert roles(look(ProcessesProbe(), watching(pid))) == ["driver"]


def test_what_may_not_be_read_is_left_out(driver: Start, monkeypatch: pytest.MonkeyPatch) -> None:
    pid = driver("sglang::scheduler")
    probe = ProcessesProbe()
    tree = look_until(probe, watching(pid), lambda tree: len(tree.processes) == 2)
    hidden = tree.processes[1].pid

    denied = MagicMock(side_effect=psutil.AccessDenied(pid))
    monkeypatch.setattr(psutil.Process, "memory_info", denied)
    assert [one.rss_bytes for one in look(probe, watching(pid)).processes] == [0, 0]
    readable = psutil.Process.cmdline

    def partly(process: psutil.Process) -> list[str]:
        if process.pid == hidden:
            raise psutil.AccessDenied(process.pid)
        return readable(process)

    monkeypatch.setattr(psutil.Process, "cmdline", partly)
    assert roles(look(probe, watching(pid))) == ["driver"]


def test_no_process_table_is_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    def denied() -> list[int]:
        raise PermissionError(13, "Permission denied", "/proc")

    monkeypatch.setattr(psutil, "pids", denied)
    (event,) = ProcessesProbe().read(5.0, watching())
    assert isinstance(event, ProcessesRead)
    assert isinstance(event.tree, Unknown)
    assert "no process table" in event.tree.reason
