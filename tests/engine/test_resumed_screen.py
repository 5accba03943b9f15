"""The moves by the keys of the screen, in a real terminal, on real containers and processes."""

from __future__ import annotations

from pathlib import Path

import pytest
from docker_box import DockerBox
from places import BareProcess, RemovedContainer

pytestmark = [pytest.mark.engine, pytest.mark.pty]


def test_docker_run_rm(docker_box: DockerBox, tmp_path: Path) -> None:
    import time
    t = time.monotonic()
    def lap(w, show=True):
        print(f"==== {time.monotonic()-t:6.1f} {w}", flush=True)
        if show: print(terminal.text, flush=True)
    run = RemovedContainer(docker_box, tmp_path)
    run.start()
    run.wait_for_checkpoint(4)
    run.box.the_run()
    with run.box.screen() as terminal:
        terminal.shows("run-a", "● RUNNING", "runs/plain.log")
        lap("screen")
        terminal.type("k")
        terminal.shows("[ Cancel ]", "save, then kill and resume")
        lap("asked")
        terminal.type("\t")
        terminal.shows("[ save, then kill and resume ]")
        terminal.type("\r")
        terminal.shows("Begun: Kill and resume run-a")
        lap("gone")
        terminal.type("x")
        terminal.shows("under way")
        lap("page")
        terminal.shows("resumed at rollout")
        lap("resumed page")
        terminal.type("\x1b")
        terminal.shows("plain-resume.log", "● RUNNING")
        lap("after")
        terminal.wait(6)
        lap("later")
        terminal.type("s")
        terminal.shows("[ Cancel ]", "save now")
        lap("s asked")
        terminal.type("\t\r")
        terminal.wait(3)
        lap("s")
        terminal.wait(3)
        lap("s")
        terminal.type("c")
        terminal.wait(2)
        lap("c")
        terminal.type("\t\r")
        terminal.wait(4)
        lap("c")
        terminal.type("K")
        terminal.shows("type its name: run-a")
        terminal.type("run-a\r")
        terminal.shows("[ stop without saving ]")
        lap("K")
        terminal.type("\r")
        terminal.until(lambda text: "[ stop without" not in text)
        lap("K gone")
        terminal.wait(5)
        lap("stopped")
        terminal.type("b")
        terminal.wait(3)
        lap("b")
        assert terminal.leave() == 0
