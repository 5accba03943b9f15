"""Runs of the demo that are acted on by the command line, each with a state folder of its own."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from tui.demo.launch import DemoRun, start

MILEPOST = (sys.executable, "-m", "tui")
_DEADLINE_S = 300.0


@dataclass(frozen=True, slots=True)
class ActedOn:
    """A run, and the state folder that milepost keeps of it."""

    run: DemoRun
    state: Path

    @property
    def target(self) -> tuple[str, ...]:
        """What names it for good, whatever pid it has."""
        return ("--checkpoints", str(self.run.checkpoints), "--log", str(self.newest_log))

    @property
    def logs(self) -> list[Path]:
        return sorted(self.run.log.parent.iterdir(), key=lambda log: log.stat().st_mtime_ns)

    @property
    def newest_log(self) -> Path:
        return self.logs[-1]

    @property
    def tracker(self) -> str:
        return (self.run.checkpoints / "latest_checkpointed_iteration.txt").read_text()

    def milepost(self, *argv: str, code: int | None = 0) -> str:
        """Run a command of milepost; what it printed."""
        done = subprocess.run(
            [*MILEPOST, *argv],
            env={**os.environ, "XDG_STATE_HOME": str(self.state)},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            timeout=_DEADLINE_S,
            text=True,
            check=False,
        )
        assert code is None or done.returncode == code, done.stdout
        return done.stdout

    def outcome(self, *argv: str, code: int = 0) -> dict[str, Any]:
        """The record of the action that a command carried out."""
        told = self.milepost(*argv, "--json", "--yes", code=code)
        document: dict[str, Any] = json.loads(told.splitlines()[-1])
        record: dict[str, Any] = document["action"]
        return record

    def wait_for_checkpoint(self, iteration: int) -> None:
        until(lambda: int(self.tracker or "0") >= iteration)

    def drivers(self) -> list[psutil.Process]:
        """Every driver of this run that lives."""
        mark = f"--dir\0{self.run.directory}\0"
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                is_driver = "tui.demo\0" in (line := "\0".join(process.cmdline()) + "\0")
                if is_driver and mark in line and "\0--save\0" in line:
                    found.append(process)
        parents = {process.pid for process in found}
        return [each for each in found if each.ppid() not in parents]


def until(condition: Callable[[], bool], deadline_s: float = _DEADLINE_S) -> None:
    """Wait for it."""
    end = time.monotonic() + deadline_s
    while True:
        with suppress(OSError, ValueError):
            if condition():
                return
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


@contextmanager
def acted_on(folder: Path, *, speed: float = 30.0, **options: Any) -> Iterator[ActedOn]:
    """A simulated run; it and all that was started in its place is ended."""
    run = start(folder / "demo", speed=speed, **options)
    acted = ActedOn(run, folder / "state")
    try:
        until(lambda: bool(re.search(r"perf 0:", run.log.read_text())))
        yield acted
    finally:
        for driver in acted.drivers():
            for process in (*driver.children(recursive=True), driver):
                with suppress(psutil.Error):
                    process.kill()
        run.stop()
