"""A guard that is killed at any stage of what it does: the next one sees to it that one run lives."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from acting import MILEPOST, ActedOn, acted_on, until

from tui.model.action import ActionKind, ActionState
from tui.runs.journal import Journal

SPEED = 60.0
Line = Callable[[dict[str, Any]], bool]


def remark(code: str) -> Line:
    return lambda line: line.get("remark", {}).get("code") == code


def step(number: int, mark: str) -> Line:
    return lambda line: line.get("mark") == mark and line.get("step") == number


STAGES: dict[str, Line] = {
    "verifies": remark("guard-verifies"),
    "has written down what it does": remark("guard-acts"),
    "has begun": lambda line: line.get("mark") == "started",
    "starts the run": step(0, "step begun"),
    "has started the run": step(0, "step done"),
    "proves": step(1, "noted"),
}


@pytest.fixture(autouse=True)
def _no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")


@contextmanager
def guard_of(on: ActedOn) -> Iterator[subprocess.Popen[bytes]]:
    argv = [*MILEPOST, "guard", "--act", "resume", "--checkpoints", str(on.run.checkpoints)]
    with subprocess.Popen(
        [*argv, "--log", str(on.newest_log)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "XDG_STATE_HOME": str(on.state)},
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def folder_of(on: ActedOn) -> Path:
    return next(file.parent for file in on.state.rglob("journal.jsonl"))


def lines(on: ActedOn) -> list[dict[str, Any]]:
    found = []
    for file in on.state.rglob("journal.jsonl"):
        for line in file.read_text().split("\n"):
            with suppress(ValueError):
                found.append(json.loads(line))
    return found


def executors(on: ActedOn) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if "tui.actions" in words and any(str(on.state) in word for word in words):
                found.append(process)
    return found


def resumed(on: ActedOn) -> bool:
    actions = [each for each in Journal(folder_of(on)).actions() if each.kind is ActionKind.RESUME]
    return bool(actions) and actions[-1].state is ActionState.DONE and len(on.drivers()) == 1


@pytest.mark.parametrize("with_executor", [False, True], ids=["guard", "guard and executor"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_next_guard_goes_on(stage: str, with_executor: bool, tmp_path: Path) -> None:
    with acted_on(tmp_path, speed=SPEED, save_interval=1) as on:
        on.wait_for_checkpoint(2)
        with guard_of(on) as first:
            until(lambda: any(map(remark("guard-watches"), lines(on))))
            until(lambda: any(on.state.rglob("recipe.json")))
            on.run.process.kill()
            on.run.process.wait()
            until(lambda: any(map(STAGES[stage], lines(on))))
            first.send_signal(signal.SIGKILL)
            first.wait()
        if with_executor:
            for process in executors(on):
                with suppress(psutil.Error):
                    process.kill()
        with guard_of(on):
            until(lambda: resumed(on), 150.0)
        actions = Journal(folder_of(on)).actions()
        assert [each.kind for each in actions] == [ActionKind.RESUME]
        assert len(on.drivers()) == 1
        assert len(on.logs) == 2
