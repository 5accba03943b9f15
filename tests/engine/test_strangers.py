"""What an action must not touch, whatever it is called by now, and who may act at a time."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psutil
import pytest
from docker_box import DockerBox
from places import BareProcess, DetachedContainer, Place, RemovedContainer, until
from terminal import Terminal

from tui.errors import ExitCode

pytestmark = [pytest.mark.engine, pytest.mark.pty]

TAKE_PID = """
import os, sys
pid = int(sys.argv[1])
for _ in range(1000):
    with open("/proc/sys/kernel/ns_last_pid", "w") as last:
        last.write(str(pid - 1))
    child = os.fork()
    if not child:
        os.setsid()
        os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
        os.dup2(1, 2)
        if os.getpid() == pid:
            os.execvp(sys.argv[2], sys.argv[2:])
        os._exit(1)
    if child == pid:
        sys.exit(0)
    os.waitpid(child, 0)
sys.exit("the pid is taken")
"""


@contextmanager
def asked(run: Place, *argv: str) -> Iterator[Terminal]:
    """A command that waits for its plan to be confirmed."""
    words = run.box.words(sys.executable, "-m", "tui", *argv)
    with Terminal(words, DOCKER_HOST=run.box.docker_host) as terminal:
        terminal.shows("Type ")
        yield terminal


def inner_pid(process: psutil.Process) -> int:
    """As the box counts."""
    status = Path(f"/proc/{process.pid}/status").read_text()
    (line,) = (line for line in status.splitlines() if line.startswith("NSpid:"))
    return int(line.split()[2])


def test_a_container_that_took_the_name(docker_box: DockerBox, tmp_path: Path) -> None:
    with RemovedContainer(docker_box, tmp_path) as run:
        run.wait_for_checkpoint(4)
        with asked(run, "resume", "--no-save-first", run.name) as terminal:
            docker_box.docker("rm", "--force", "run-a")
            until(lambda: run.is_gone)
            stranger = docker_box.docker(
                *docker_box.run_words("-d", "--name=run-a"), "/bin/sleep", "600"
            )
            terminal.type("yes\n")
            terminal.shows("was gone already", "container run-a is running: it keeps its name")
            assert terminal.ends() == ExitCode.ENDED_BADLY
        assert docker_box.docker("ps", "--no-trunc", "--quiet").split() == [stranger]
        docker_box.docker("rm", "--force", "run-a")


def test_a_run_that_took_the_pid(docker_box: DockerBox, tmp_path: Path) -> None:
    with BareProcess(docker_box.box, tmp_path) as run:
        run.wait_for_checkpoint(4)
        (driver,) = run.drivers()
        pid = inner_pid(driver)
        with asked(run, "resume", "--no-save-first", run.name) as terminal:
            run.kill()
            other = BareProcess(docker_box.box, tmp_path / "other")
            taken = run.box.run(sys.executable, "-c", TAKE_PID, str(pid), *other.command)
            assert taken.returncode == 0, taken.stderr
            (stranger,) = other.drivers()
            assert inner_pid(stranger) == pid
            terminal.type("yes\n")
            terminal.shows("it was gone already")
            terminal.shows("resumed at rollout")
            assert terminal.ends() == ExitCode.WELL
        assert len(run.drivers()) == 1
        other.kill()


def test_a_run_of_another_day_whose_pid_is_taken(docker_box: DockerBox, tmp_path: Path) -> None:
    with BareProcess(docker_box.box, tmp_path) as run:
        run.wait_for_checkpoint(4)
        run.wait_for_recipe()
        pid = inner_pid(run.drivers()[0])
        run.kill()
        other = BareProcess(docker_box.box, tmp_path / "other")
        taken = run.box.run(sys.executable, "-c", TAKE_PID, str(pid), *other.command)
        assert taken.returncode == 0, taken.stderr
        assert "nothing of plain runs here" in run.refusal("stop", run.name)
        told = run.box.milepost("resume", "--dry-run", run.name).stdout
        assert "Will stop" not in told
        assert str(run.saves) in "".join(told.split())  # it is broken over lines
        assert len(other.drivers()) == 1
        other.kill()


def test_one_that_was_started_by_hand_meanwhile(docker_box: DockerBox, tmp_path: Path) -> None:
    with BareProcess(docker_box.box, tmp_path) as run:
        run.wait_for_checkpoint(4)
        run.wait_for_recipe()
        run.kill()
        with asked(run, "resume", run.name) as terminal:
            (tmp_path / "runs" / "plain.log").rename(tmp_path / "runs" / "old.log")
            run.start()
            until(lambda: len(run.drivers()) == 1)
            terminal.type("yes\n")
            terminal.shows("saves to the same folder already: a second one was not started")
            assert terminal.ends() == ExitCode.ENDED_BADLY
        assert len(run.drivers()) == 1
        old = ("--log", str(tmp_path / "runs" / "old.log"), "--checkpoints", str(run.saves))
        assert "runs, and saves to the same folder" in run.refusal("resume", *old)
        assert "runs, and saves to the same folder" in run.refusal("rollback", "4", *old)


def test_an_old_container_of_a_run_that_goes_on(docker_box: DockerBox, tmp_path: Path) -> None:
    with DetachedContainer(docker_box, tmp_path) as run:
        run.wait_for_checkpoint(4)
        run.outcome("resume", "--no-save-first", run.name)
        (old,) = run.containers.keys() - {"run-a"}
        assert "act on that one: run-a" in run.refusal("resume", old)
        assert "act on that one: run-a" in run.refusal("rollback", "4", old)


def test_one_acts_and_the_others_say_who_does(docker_box: DockerBox, tmp_path: Path) -> None:
    with BareProcess(docker_box.box, tmp_path) as run, run.box.screen() as first:
        run.wait_for_checkpoint(4)
        first.shows("plain", "● RUNNING", "step")
        (driver,) = run.drivers()
        driver.suspend()
        try:
            words = (sys.executable, "-m", "tui", "save", "--yes")
            commands = [run.box.start(*words, stderr=subprocess.PIPE, text=True) for _ in range(3)]
            until(lambda: [each.poll() for each in commands].count(None) == 1)
            ended = [each for each in commands if each.poll() is not None]
            assert [each.returncode for each in ended] == [ExitCode.REFUSED] * 2
            for each in ended:
                told = str(each.communicate()[1])
                assert "Save plain now is under way" in told, told
            first.shows("save plain now: step 1 of 1")
            first.type("k")
            first.shows("Save plain now is under way")
            with run.box.screen() as second:
                second.shows("save plain now: step 1 of 1")
                second.type("x")
                second.shows("Save plain now", "under way")
                assert second.leave() == 0
            assert "Save plain now is under way" in run.refusal("stop", "--no-save-first")
        finally:
            driver.resume()
        (acting,) = (each for each in commands if each not in ended)
        acting.communicate(timeout=300)
        assert acting.returncode == ExitCode.WELL
        first.type("\r")
        first.shows("is whole: asked")
        assert first.leave() == 0
