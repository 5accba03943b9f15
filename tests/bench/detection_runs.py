"""The simulated runs that a guard is timed on: bare, or in a container of a `docker run --rm`."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil
from docker_box import DockerBox, opened_engine

from tui.attach import Target, attached
from tui.cli.commands import demo_attachment
from tui.demo.launch import start
from tui.errors import MilepostError
from tui.model.launch import Attachment

_SCRIPT = """\
#!/bin/sh
# Not the first process itself, which no signal from within its container would kill.
{python} -m tui.demo --dir /demo --speed {speed:g} --num-rollout 1000 --save-interval 1 \
    --eval-interval 100 --save /demo/checkpoints --load /demo/checkpoints ${{FAULT}}
exit $?
"""
FAULT = "--env=FAULT="
"""Begins the word of the docker client that has a fault strike."""
_START_S = 60.0
MOUNTS, IMAGE = "DETECTION_MOUNTS", "DETECTION_IMAGE"
"""Environment of a trial in a container."""


@dataclass(frozen=True, kw_only=True)
class Subject:
    """One run, and what is known of it beside what milepost finds out."""

    folder: Path
    """Where its simulated box is."""
    log: Path
    pid: int
    attachment: Attachment
    is_gone: Callable[[], bool]
    container: str = ""

    @property
    def meminfo(self) -> Path:
        return self.folder / "meminfo"

    @property
    def gpu(self) -> Path:
        return self.folder / "gpu.json"

    def text(self) -> str:
        """What its log tells."""
        return self.log.read_text(errors="replace")

    def children(self) -> list[psutil.Process]:
        """Of its driver."""
        with suppress(psutil.Error):
            return [each for each in psutil.Process(self.pid).children() if each.is_running()]
        return []


@contextmanager
def bare(folder: Path, speed: float, fault: str) -> Iterator[Subject]:
    """A process."""
    run = start(
        folder / "demo", speed=speed, num_rollout=1000, save_interval=1, eval_interval=100,
        faults=(fault,) if fault else (),
    )  # fmt: skip
    try:
        yield Subject(
            folder=run.directory,
            log=run.log,
            pid=run.pid,
            attachment=demo_attachment(run),
            is_gone=lambda: run.process.poll() is not None,
        )
    finally:
        run.stop()


@contextmanager
def contained(folder: Path, speed: float, fault: str) -> Iterator[Subject]:
    """A container that goes with its run, its output going through its client into a file.

    In a box of an engine, in whose environment it is told what to mount.
    """
    name, demo = f"run-{folder.name.rpartition('-')[2]}", folder / "demo"
    (demo / "runs").mkdir(parents=True)
    log = demo / "runs" / "plain.log"
    (demo / "start.sh").write_text(_SCRIPT.format(python=sys.executable, speed=speed))
    words = (
        *("docker", "run", "--rm", f"--name={name}", "--network=host", "--tmpfs=/tmp"),
        *os.environ[MOUNTS].split(), f"--volume={demo}:/demo",
        *((f"{FAULT}--fault {fault}",) if fault else ()), os.environ[IMAGE],
        *("/bin/sh", "/demo/start.sh"),
    )  # fmt: skip
    with log.open("wb") as file:
        client = subprocess.Popen(
            words, stdin=subprocess.DEVNULL, stdout=file, stderr=file, start_new_session=True
        )
    try:
        attachment = _found(name)
        assert attachment.driver_pid is not None
        pid = int(attachment.driver_pid.value)
        yield Subject(
            folder=demo,
            log=log,
            pid=pid,
            attachment=attachment,
            is_gone=lambda: not psutil.pid_exists(pid),
            container=name,
        )
    finally:
        _remove(name)
        client.wait(60)


def _remove(name: str) -> None:
    """All containers of this run: a resume may have set the old one aside."""
    told = subprocess.run(
        ["docker", "ps", "--all", "--quiet", f"--filter=name={name}"],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    if containers := told.stdout.split():
        subprocess.run(["docker", "rm", "--force", *containers], capture_output=True, check=False)


def _found(name: str) -> Attachment:
    end = time.monotonic() + _START_S
    while True:
        with suppress(MilepostError):
            attachment = attached(Target(name=name), at=time.time())
            if attachment.driver_pid is not None and attachment.checkpoints is not None:
                return attachment
        assert time.monotonic() < end, f"container {name} has no driver"
        time.sleep(0.2)


def docker(*words: str) -> Callable[[Subject], None]:
    """What somebody does to its container."""

    def strike(run: Subject) -> None:
        subprocess.run(["docker", *words, run.container], check=True, capture_output=True)

    return strike


@contextmanager
def engine() -> Iterator[tuple[DockerBox, dict[str, str]]]:
    """An engine, and what a trial in its box needs in its environment."""
    with opened_engine() as box:
        yield box, {MOUNTS: " ".join(box.mounts), IMAGE: box.image, "DOCKER_HOST": box.host}
