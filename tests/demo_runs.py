"""Runs of the demo for tests: fast, in a process of their own, the output kept."""

from __future__ import annotations

import ast
import atexit
import functools
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

RUN_DEADLINE_S = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class FinishedRun:
    """What one run left."""

    code: int
    log: str
    directory: Path

    @property
    def checkpoints(self) -> Path:
        return self.directory / "checkpoints"

    @property
    def job_log(self) -> str:
        """Without the tail that Ray repeats after a failure."""
        return self.log.partition("Status message:")[0]

    def metrics(self, kind: str) -> list[tuple[int, dict[str, object]]]:
        """Every `kind N: {...}` of a Miles record, in order."""
        records = re.findall(rf"\.py:\d+ - {kind} (\d+): (\{{.*\}})$", self.job_log, re.MULTILINE)
        return [(int(number), literal(text)) for number, text in records]


def literal(text: str) -> dict[str, object]:
    """A metric dict; numpy's values as floats, nan as the text `nan`."""
    plain = re.sub(r"np\.float64\(([^)]*)\)", r"\1", text)
    value = ast.literal_eval(re.sub(r": nan\b", ": 'nan'", plain))
    assert isinstance(value, dict)
    return value


def command(directory: Path, *argv: str, speed: float) -> list[str]:
    own = ["--dir", str(directory), "--speed", f"{speed:g}"]
    return [sys.executable, "-m", "tui.demo", *own, *argv]


def run_demo(directory: Path, *argv: str, speed: float = 600) -> FinishedRun:
    """Run `python -m tui.demo` to its end."""
    done = subprocess.run(
        command(directory, *argv, speed=speed),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=RUN_DEADLINE_S,
        check=False,
    )
    return FinishedRun(code=done.returncode, log=done.stdout.decode(), directory=directory)


@functools.cache
def plain_run() -> FinishedRun:
    """Four rollouts, two checkpoints, an eval at the start and one later; made once a process."""
    directory = Path(tempfile.mkdtemp(prefix="demo-plain-"))
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return run_demo(
        directory, *("--num-rollout", "4", "--save-interval", "2", "--eval-interval", "3")
    )
