"""Where a run of the demo can live, each with what a person has of it: its files and its name."""

from __future__ import annotations

import json
import os
import secrets
import shlex
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import psutil
from box import Box
from docker_box import DockerBox
from ray_cluster import ADDRESS, RAY

from tui.runs.ray_jobs import LOGS

DEADLINE_S = 400.0
SPEED = 60
CONVERTERS = Path(__file__).parent / "converters"
"""In the place of Miles' own."""
_LAUNCHER = """\
#!/bin/sh
# As Miles' own scripts do: arguments from the environment behind its own.
cd /
python3 -m tui.demo --dir {directory} --speed {speed} --num-rollout 100000 \
    --save-interval 4 --eval-interval 0 ${{MILES_SCRIPT_EXTRA_ARGS}}
"""


def until(condition: Callable[[], bool], deadline_s: float = DEADLINE_S) -> None:
    """Wait for it."""
    end = time.monotonic() + deadline_s
    while True:
        with suppress(OSError, ValueError, psutil.Error):
            if condition():
                return
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.05)


class Place(ABC):
    """One run in one box."""

    name: str
    """What a person calls it."""

    def __init__(self, box: Box, folder: Path) -> None:
        self.box = box
        self.folder = folder
        self.mark = f"box-{secrets.token_hex(4)}"
        """In the command of its driver, and of no other."""
        for name in ("runs", "ckpt"):
            (folder / name).mkdir(parents=True)

    @abstractmethod
    def start(self) -> None:
        """Begin it, as a person would."""

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    @property
    def command(self) -> tuple[str, ...]:
        """Of a driver on this host."""
        return (
            *(sys.executable, "-m", "tui.demo", "--dir", str(self.folder / self.mark)),
            *("--speed", str(SPEED), "--num-rollout", "100000", "--save-interval", "4"),
            *("--eval-interval", "0", "--save", str(self.saves), "--load", str(self.saves)),
            *("--save-trigger-sentinel", str(self.trigger)),
        )

    @property
    def saves(self) -> Path:
        return self.folder / "ckpt" / "run-a"

    @property
    def trigger(self) -> Path:
        return self.folder / "ckpt" / "save-now"

    def first_log(self) -> str:
        """What it printed at first."""
        return (self.folder / "runs" / "plain.log").read_text()

    @property
    def tracker(self) -> str:
        return (self.saves / "latest_checkpointed_iteration.txt").read_text()

    @property
    def logs(self) -> list[str]:
        """Their names, the oldest first."""
        found = sorted((self.folder / "runs").iterdir(), key=lambda log: log.stat().st_mtime_ns)
        return [log.name for log in found]

    @property
    def state(self) -> Path:
        """What milepost keeps."""
        return Path(os.environ["HOME"]) / ".local" / "state" / "milepost"

    def drivers(self) -> list[psutil.Process]:
        """Every driver of it that lives."""
        found = []
        for process in psutil.process_iter():
            with suppress(psutil.Error):
                words = process.cmdline()
                is_driver = words[1:3] == ["-m", "tui.demo"] or words[2:4] == ["-m", "tui.demo"]
                if is_driver and any(word.endswith(self.mark) for word in words):
                    found.append(process)
        return found

    def kill(self) -> None:
        """End it as the kernel does, and all that ends with it."""
        drivers = self.drivers()
        for driver in drivers:
            driver.kill()
        psutil.wait_procs(drivers, timeout=DEADLINE_S)
        until(lambda: self.is_gone)

    @property
    def is_gone(self) -> bool:
        return not self.drivers()

    def wait_for_checkpoint(self, iteration: int) -> None:
        until(lambda: int(self.tracker or "0") >= iteration)

    def wait_for_recipe(self) -> None:
        """Look at it, as whoever has a screen open does all the time."""
        self.box.status(*self.named)
        until(lambda: any(self.state.rglob("recipe.json")))

    @property
    def named(self) -> tuple[str, ...]:
        return (self.name,)

    def outcome(self, command: str, *argv: str, code: int = 0) -> dict[str, Any]:
        """The record of an action that was carried out by a command."""
        told = self.box.milepost(command, "--yes", "--json", *argv)
        assert told.returncode == code, f"{told.stdout}\n{told.stderr}"
        document: dict[str, Any] = json.loads(told.stdout.splitlines()[-1])
        record: dict[str, Any] = document["action"]
        return record

    def refusal(self, command: str, *argv: str, code: int = 8) -> str:
        """What a command says that is not carried out."""
        told = self.box.milepost(command, "--yes", *argv)
        assert told.returncode == code, f"{told.stdout}\n{told.stderr}"
        return told.stderr


class InContainer(Place):
    """A container whose start script takes its arguments from the environment."""

    name = "run-a"
    options: tuple[str, ...] = ()
    arguments = "--save /ckpt/run-a --load /ckpt/run-a --save-trigger-sentinel /ckpt/save-now"
    """Not in the command, but in an environment variable that is given to it."""

    def __init__(self, engine: DockerBox, folder: Path) -> None:
        super().__init__(engine.box, folder)
        self.engine = engine
        script = folder / "start.sh"
        script.write_text(_LAUNCHER.format(directory=f"/tmp/{self.mark}", speed=SPEED))
        script.chmod(0o755)

    @property
    def words(self) -> tuple[str, ...]:
        """Of the docker client."""
        own = (
            *("--name=run-a", f"--volume={self.folder}/ckpt:/ckpt", *self.options),
            *("-e", f"MILES_SCRIPT_EXTRA_ARGS={self.arguments}", "-e", "WANDB_API_KEY=" + "5" * 40),
            *("-e", f"PATH={Path(sys.executable).parent}:/usr/bin:/bin"),
            f"--volume={self.folder}/start.sh:/start.sh:ro",
            f"--volume={CONVERTERS}:/root/miles/tools:ro",
        )
        return (*self.engine.run_words(*own), "/bin/sh", "/start.sh")

    @property
    def containers(self) -> dict[str, str]:
        """Names of all there are, and what each is at."""
        told = self.engine.docker("ps", "--all", "--format={{.Names}} {{.State}}").splitlines()
        return dict(line.split() for line in told)


class RemovedContainer(InContainer):
    """`docker run --rm … > runs/plain.log 2>&1`."""

    options = ("--rm",)

    def start(self) -> None:
        with (self.folder / "runs" / "plain.log").open("wb") as log:
            self.box.start("docker", *self.words, stdout=log, stderr=log)

    @property
    def is_gone(self) -> bool:
        return not self.containers


class DetachedContainer(InContainer):
    """`docker run -d …`."""

    options = ("-d",)
    arguments = "--save /ckpt/run-a --save-trigger-sentinel /ckpt/save-now"

    def start(self) -> None:
        self.engine.docker(*self.words)

    @property
    def is_gone(self) -> bool:
        return "running" not in self.containers.values()

    def first_log(self) -> str:
        """Docker's own, of whatever the first container is called by now."""
        names = self.engine.docker("ps", "--all", "--no-trunc", "--format={{.ID}}").splitlines()
        return self.engine.docker("logs", names[-1])


class RayJob(Place):
    """`ray job submit --no-wait …`: whoever submitted it is gone."""

    name = "one"

    def start(self) -> None:
        words = ("job", "submit", *ADDRESS, "--no-wait", f"--submission-id={self.name}")
        sent = self.box.run(RAY, *words, "--", *self.command)
        assert sent.returncode == 0, sent.stdout + sent.stderr

    def first_log(self) -> str:
        return self.box.run("cat", f"{LOGS}/job-driver-{self.name}.log").stdout

    @property
    def jobs(self) -> dict[str, str]:
        """What Ray says of each."""
        told = self.box.run("curl", "-s", f"{ADDRESS[1]}/api/jobs/").stdout
        return {job["submission_id"]: job["status"] for job in json.loads(told)}

    @property
    def is_gone(self) -> bool:
        return not {"RUNNING", "PENDING"} & set(self.jobs.values())


class RayClient(RayJob):
    """`ray job submit … > runs/plain.log`, with an id that was typed."""

    name = "plain"

    def start(self) -> None:
        words = f"{RAY} job submit {' '.join(ADDRESS)} --submission-id two -- {shlex.join(self.command)}"
        self.box.start("sh", "-c", f"cd {self.folder} && exec {words} > runs/plain.log 2>&1")

    first_log = Place.first_log

    @property
    def is_gone(self) -> bool:
        """The client too, which tells the job's end first."""
        return super().is_gone and not self.box.runs()


class BareProcess(Place):
    """`nohup … > runs/plain.log 2>&1 &`, by a shell that is gone."""

    name = "plain"

    def start(self) -> None:
        command = f"cd {self.folder} && nohup {shlex.join(self.command)} > runs/plain.log 2>&1 &"
        self.box.start("sh", "-c", command).wait()
