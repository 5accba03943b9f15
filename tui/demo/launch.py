"""Start a simulated run as a process of its own, and stop it again."""

from __future__ import annotations

import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

_GRACE_S = 5.0


@dataclass(frozen=True, slots=True, kw_only=True)
class DemoRun:
    """A simulated run that was started, and where it keeps what."""

    directory: Path
    log: Path
    checkpoints: Path
    save_trigger: Path
    meminfo: Path
    gpu: Path
    argv: tuple[str, ...]
    process: subprocess.Popen[bytes]

    @property
    def pid(self) -> int:
        return self.process.pid

    def stop(self, grace_s: float = _GRACE_S) -> int:
        """Ask it to end, and after the grace period make it; the exit code. May be called twice."""
        if self.process.stdin is not None:
            self.process.stdin.close()
        self.process.terminate()
        try:
            return self.process.wait(grace_s)
        except subprocess.TimeoutExpired:
            # It leads its own session, so the group is it and its engines, and nobody else.
            os.killpg(self.process.pid, signal.SIGKILL)  # noqa: TID251
            return self.process.wait()


def start(
    directory: Path,
    *,
    speed: float = 10.0,
    seed: int = 0,
    faults: Sequence[str] = (),
    num_rollout: int = 200,
    save_interval: int = 5,
    eval_interval: int = 10,
    engines: int = 1,
    fault_tolerance: bool = False,
    model_mb: float = 2.0,
    leash: bool = True,
) -> DemoRun:
    """Start a run in `directory`; on a leash it ends with this process, however that ends."""
    directory = directory.absolute()
    checkpoints, save_trigger = directory / "checkpoints", directory / "save-now"
    argv = [
        *(sys.executable, "-m", "tui.demo", "--dir", str(directory)),
        *("--speed", f"{speed:g}", "--seed", str(seed), "--engines", str(engines)),
        *("--num-rollout", str(num_rollout), "--model-mb", f"{model_mb:g}"),
        *("--save", str(checkpoints), "--load", str(checkpoints)),
        *("--save-interval", str(save_interval), "--eval-interval", str(eval_interval)),
        *("--save-trigger-sentinel", str(save_trigger), "--colocate"),
        *itertools.chain.from_iterable(("--fault", fault) for fault in faults),
        *(["--use-fault-tolerance"] if fault_tolerance else []),
        *(["--leash"] if leash else []),
    ]
    path, log = _new_log(directory / "runs")
    with log:
        process = subprocess.Popen(  # noqa: S603 - our own module
            argv,
            stdin=subprocess.PIPE if leash else subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    return DemoRun(
        directory=directory,
        log=path,
        checkpoints=checkpoints,
        save_trigger=save_trigger,
        meminfo=directory / "meminfo",
        gpu=directory / "gpu.json",
        argv=tuple(argv),
        process=process,
    )


def _new_log(folder: Path) -> tuple[Path, BinaryIO]:
    """A log that did not exist: `plain.log`, else `plain-2.log` and so on."""
    folder.mkdir(parents=True, exist_ok=True)
    for number in itertools.count(1):
        path = folder / ("plain.log" if number == 1 else f"plain-{number}.log")
        try:
            return path, path.open("xb")
        except FileExistsError:
            continue
    raise AssertionError("counting does not end")
