"""The moves by the keys of the screen, in a real terminal, on a real container and a process."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from docker_box import DockerBox
from places import BareProcess, Place, RemovedContainer, until
from terminal import Terminal

pytestmark = [pytest.mark.engine, pytest.mark.pty]

DOWN = "\x1b[B"
SELECTED = re.compile(r"▶ +(\d+)  rollout .*whole(?!.*resumes at)")


def opened(run: Place) -> Terminal:
    return run.box.screen()


def ask(terminal: Terminal, key: str, title: str, go: str) -> None:
    """Press the key, see what would be done, confirm it."""
    terminal.type(key)
    terminal.shows(title, "[ Cancel ]", go)
    terminal.type("\t")
    terminal.shows(f"[ {go} ]")
    terminal.type("\r")
    terminal.shows(f"Begun: {title}")


def stop(terminal: Terminal, name: str) -> None:
    terminal.type("K")
    terminal.shows(f"type its name: {name}")
    terminal.type(f"{name}\r")
    terminal.shows("[ stop without saving ]")
    terminal.type("\r")
    terminal.shows(f"Begun: Stop {name}")
    terminal.shows("○ STOPPED", "stopped within")


def roll_back_by_one(terminal: Terminal) -> str:
    """To the checkpoint below the newest; which that is."""
    terminal.type(f"4{DOWN}{DOWN}")
    terminal.until(lambda text: bool(SELECTED.search(text)))
    iteration = str(SELECTED.findall(terminal.text)[0])
    ask(terminal, "b", "Roll ", "roll back")
    terminal.shows(f"a restart loads {iteration} ")
    return iteration


def test_docker_run_rm(docker_box: DockerBox, tmp_path: Path) -> None:
    with RemovedContainer(docker_box, tmp_path) as run, opened(run) as terminal:
        run.wait_for_checkpoint(8)
        terminal.shows("run-a", "● RUNNING", "runs/plain.log", "step")
        ask(terminal, "k", "Kill and resume run-a", "save, then kill and resume")
        terminal.shows("● RUNNING", "runs/plain-resume.log", "resumed at rollout")
        ask(terminal, "s", "Save run-a now", "save now")
        terminal.shows("is whole: asked")
        terminal.type("4")
        ask(terminal, "c", "Convert checkpoint", "convert")
        terminal.shows("139,648 parameters arrived")
        stop(terminal, "run-a")
        assert run.containers == {}
        iteration = roll_back_by_one(terminal)
        ask(terminal, "r", "Resume run-a", "resume")
        resumed = f"resumed at rollout {iteration} from iteration {iteration}"
        terminal.shows("● RUNNING", "plain-resume-2.log", resumed)
        assert len(run.drivers()) == 1
        assert terminal.leave() == 0


def test_nohup(docker_box: DockerBox, tmp_path: Path) -> None:
    with BareProcess(docker_box.box, tmp_path) as run, opened(run) as terminal:
        run.wait_for_checkpoint(8)
        terminal.shows("plain", "● RUNNING", "runs/plain.log", "step")
        ask(terminal, "k", "Kill and resume plain", "save, then kill and resume")
        terminal.shows("● RUNNING", "runs/plain-resume.log", "resumed at rollout")
        stop(terminal, "plain")
        roll_back_by_one(terminal)
        ask(terminal, "u", "Undo the last roll back of plain", "undo")
        terminal.shows("undo the last roll back: ")
        assert run.drivers() == []
        assert terminal.leave() == 0


@pytest.mark.parametrize("stage", range(4), ids=["save", "stop", "start", "prove"])
def test_a_terminal_that_is_lost_in_the_middle(
    docker_box: DockerBox, tmp_path: Path, stage: int
) -> None:
    with BareProcess(docker_box.box, tmp_path) as run:
        with opened(run) as terminal:
            terminal.shows("plain", "● RUNNING", "runs/plain.log", "step")
            ask(terminal, "k", "Kill and resume plain", "save, then kill and resume")
            until(lambda: stage in begun(run))
            terminal.hang_up()
            terminal.ends()
        with opened(run) as terminal:
            terminal.shows("plain-resume.log", "● RUNNING", "resumed at rollout")
            assert len(run.drivers()) == 1
            assert terminal.leave() == 0


def begun(run: Place) -> set[int]:
    """The steps of the action that have begun."""
    (journal,) = run.state.rglob("journal.jsonl")
    entries = map(json.loads, journal.read_text().splitlines())
    return {entry["step"] for entry in entries if entry["mark"] == "step begun"}
