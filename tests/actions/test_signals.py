"""Signals hit the process that was meant, and no other, whatever its pid was given to since."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import psutil
import pytest
from box import opened_box
from families import Families, until

from tui.actions.process_table import ProcessRow, kin, read_row
from tui.actions.signals import Delivered, is_alive, send, target_of, target_started_at, tree_of
from tui.model.target import ProcessTarget

ROOT = Path(__file__).parents[2]


def target(process: subprocess.Popen[bytes]) -> ProcessTarget:
    found = target_of(process.pid, "a test's")
    assert found is not None
    return found


@pytest.fixture
def sleeper(families: Families) -> subprocess.Popen[bytes]:
    return families.start("sleep", "1000")


def test_one_that_lives_is_hit(sleeper: subprocess.Popen[bytes]) -> None:
    meant = target(sleeper)
    assert is_alive(meant)
    assert send(meant, signal.SIGTERM).result is Delivered.SENT
    assert sleeper.wait(30) == -signal.SIGTERM
    assert not is_alive(meant)
    assert send(meant, signal.SIGTERM).result is Delivered.GONE


def test_a_zombie_is_gone(sleeper: subprocess.Popen[bytes]) -> None:
    meant = target(sleeper)
    sleeper.kill()
    until(lambda: psutil.Process(sleeper.pid).status() == psutil.STATUS_ZOMBIE)
    assert not is_alive(meant)
    assert send(meant, signal.SIGKILL).result is Delivered.GONE
    assert target_of(sleeper.pid) is None


def test_one_whose_first_thread_alone_has_ended_is_not_gone(families: Families) -> None:
    """So looks a process that is stuck while it ends, and still holds its memory."""
    script = (
        "import ctypes, threading, time\n"
        "threading.Thread(target=time.sleep, args=(1000,)).start()\n"
        "ctypes.CDLL(None).pthread_exit(None)\n"
    )
    process = families.start(sys.executable, "-c", script)
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_ZOMBIE)
    meant = target(process)
    assert is_alive(meant)
    assert send(meant, signal.SIGKILL).result is Delivered.SENT
    assert process.wait(30) == -signal.SIGKILL


@pytest.mark.parametrize("other", [{"start_ticks": 1}, {"boot_id": "of another boot"}])
def test_another_of_the_same_pid_is_left_alone(
    sleeper: subprocess.Popen[bytes], other: dict[str, Any]
) -> None:
    meant = replace(target(sleeper), **other)
    assert not is_alive(meant)
    assert send(meant, signal.SIGKILL).result is Delivered.GONE
    assert tree_of([meant]) == ()
    assert sleeper.poll() is None


_REUSE = """
import signal, subprocess, sys, time
from tui.actions.signals import is_alive, send, target_of, tree_of

first = subprocess.Popen(["sleep", "1000"])
meant = target_of(first.pid)
first.kill()
first.wait()
time.sleep(0.05)  # more than a tick of the clock that starts are told in
try:
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(first.pid - 1))
except OSError as error:
    print("skip", error)
    sys.exit()
second = subprocess.Popen(["sleep", "1000"])
assert second.pid == first.pid, (first.pid, second.pid)
assert target_of(second.pid) != meant
assert not is_alive(meant)
assert tree_of([meant]) == ()
print(send(meant, signal.SIGKILL).result)
time.sleep(0.1)
print("alive" if second.poll() is None else "killed")
second.kill()
"""


def test_a_pid_that_was_really_given_to_another_is_not_hit() -> None:
    with opened_box() as box:
        ran = box.run("env", f"PYTHONPATH={ROOT}", sys.executable, "-c", _REUSE)
    if ran.stdout.startswith("skip"):
        pytest.skip(f"this kernel lets nobody choose a pid: {ran.stdout}")
    assert ran.stderr == ""
    assert ran.stdout.split("\n")[:2] == ["already gone", "alive"]


def test_a_signal_that_may_not_be_sent_is_a_value(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: int, __: int) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(signal, "pidfd_send_signal", refuse)
    delivery = send(target(sleeper), signal.SIGTERM)
    assert delivery.result is Delivered.REFUSED
    assert "sudo" in delivery.reason
    assert str(sleeper.pid) in delivery.reason


def test_a_signal_to_another_users_process_is_refused(sleeper: subprocess.Popen[bytes]) -> None:
    if os.geteuid() != 0:
        pytest.skip("needs root to be two users")
    script = (
        "import os, signal, sys\n"
        "from tui.actions.signals import send, target_of\n"
        "meant = target_of(int(sys.argv[1]))\n"
        "os.setuid(65534)\n"
        "print(send(meant, signal.SIGTERM).result)\n"
    )
    told = subprocess.run(
        [sys.executable, "-c", script, str(sleeper.pid)],
        capture_output=True, text=True, cwd=ROOT, timeout=300,
    )  # fmt: skip
    assert (told.stdout.strip(), told.stderr) == ("refused", "")
    assert sleeper.poll() is None


def test_a_kernel_without_pid_descriptors_is_a_value(
    sleeper: subprocess.Popen[bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    def missing(_: int) -> int:
        raise OSError(38, "Function not implemented")

    monkeypatch.setattr(os, "pidfd_open", missing)
    delivery = send(target(sleeper), signal.SIGTERM)
    assert (delivery.result, "Linux 5.3" in delivery.reason) == (Delivered.REFUSED, True)


def test_a_start_time_of_psutil(sleeper: subprocess.Popen[bytes]) -> None:
    started_at = psutil.Process(sleeper.pid).create_time()
    assert target_started_at(sleeper.pid, started_at + 0.04, "a test's") == target(sleeper)
    assert target_started_at(sleeper.pid, started_at + 0.06) is None
    assert target_started_at(2**22 + 1, started_at) is None


_FAMILY = """
import os, subprocess, sys, time
child = "import os, sys, time; {}; print(os.getpid(), flush=True); time.sleep(1000)"
plain = subprocess.Popen([sys.executable, "-c", child.format("pass")])
away = subprocess.Popen([sys.executable, "-c", child.format("os.setsid(); os.fork() and time.sleep(1000)")])
time.sleep(1000)
"""


def test_a_tree_is_all_below_in_whatever_session(families: Families) -> None:
    process = families.start(sys.executable, "-c", _FAMILY)
    assert process.stdout is not None
    below = {int(process.stdout.readline()) for _ in range(2)}
    top = target(process)
    members = tree_of([top])
    for each in reversed(members):
        send(each, signal.SIGKILL)
    assert members[0] == top
    pids = {each.pid for each in members}
    assert below < pids
    assert len(pids) == 4
    assert os.getpid() not in pids


def row(pid: int, parent: int, group: int = 0, session: int = 0) -> ProcessRow:
    return ProcessRow(
        pid=pid, name="p", state="S", parent=parent, group=group, session=session, threads=1,
        start_ticks=pid,
    )  # fmt: skip


def test_a_login_shell_and_its_other_jobs_are_not_of_the_tree() -> None:
    shell, run, worker, other = 10, 20, 21, 30
    table = {
        each.pid: each
        for each in (
            row(shell, 1, shell, shell),
            row(run, shell, run, shell),
            row(worker, run, run, shell),
            row(other, shell, other, shell),
            row(40, 1, run, shell),  # an orphan in the run's group
        )
    }
    assert kin(table, [run]) == {run, worker, 40}


def test_the_first_process_is_of_no_tree() -> None:
    table = {1: row(1, 0, 1, 1), 2: row(2, 1, 1, 1)}
    assert kin(table, [2]) == {2}


def test_a_name_with_brackets_and_blanks(tmp_path: Path, families: Families) -> None:
    program = tmp_path / "a) R 1 (b"
    program.symlink_to("/bin/sleep")
    process = families.start(program, "1000")
    found = read_row(process.pid)
    assert found is not None
    assert (found.name, found.parent) == ("a) R 1 (b", os.getpid())
