"""Sightings of runs for tests: processes, containers and jobs, each with one call."""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Sequence
from typing import Any

from tui.miles.flags import launch_from_argv
from tui.model.launch import Container
from tui.model.reading import Absence, Reading, Unknown, known
from tui.runs.docker_answers import FoundContainer
from tui.runs.docker_client import docker_command
from tui.runs.merge import Sightings
from tui.runs.output import OutputFile
from tui.runs.process import RunProcess, RunProcesses
from tui.runs.ray_jobs import RayJob

NOW = 1_795_956_000.0
NO_FILE = Unknown(why=Absence.MISSING, reason="it prints to /dev/pts/3, no file", at=NOW)
FORBIDDEN = Unknown(why=Absence.NO_PERMISSION, reason="only root may see", at=NOW)


def process(
    pid: int, line: str, *, after_s: float = 0.0, log: str = "", **changes: Any
) -> RunProcess:
    """One with this command line, begun so long after everything."""
    argv = tuple(shlex.split(line))
    output: Reading[OutputFile] = NO_FILE
    if log:
        output = known(OutputFile(path=log, device=1, inode=pid), NOW)
    values: dict[str, Any] = {
        "pid": pid,
        "started_at": NOW + after_s,
        "argv": argv,
        "launch": launch_from_argv(argv),
        "inner_pid": pid,
        "output": output,
        "docker": docker_command(argv, "/home/me"),
    }
    return RunProcess(**{**values, **changes})


def container(
    name: str, line: str = "bash", *, after_s: float = 1.0, pid: int = 0, **changes: Any
) -> FoundContainer:
    """A running one of an image of Miles."""
    values: dict[str, Any] = {
        "container": Container(
            id=id_of(name),
            name=name,
            image=changes.pop("image", "radixark/miles"),
            status=changes.pop("status", "running"),
            started_at=NOW + after_s,
            mounts=changes.pop("mounts", (("/data/ckpt", "/ckpt"),)),
        ),
        "argv": tuple(shlex.split(line)),
        "environment": (),
        "pid": pid,
    }
    return FoundContainer(**{**values, **changes})


def id_of(name: str) -> str:
    """Sixty-four digits, the same for the same name."""
    return hashlib.sha256(name.encode()).hexdigest()


def job(submission_id: str, line: str = "", *, status: str = "RUNNING", pid: int = 0) -> RayJob:
    return RayJob(
        submission_id=submission_id,
        status=status,
        entrypoint=line,
        driver_pid=pid,
        started_at=NOW,
    )


def seen(
    *,
    drivers: Sequence[RunProcess] = (),
    launchers: Sequence[RunProcess] = (),
    clients: Sequence[RunProcess] = (),
    containers: Sequence[FoundContainer] | Unknown = (),
    jobs: Sequence[RayJob] = (),
    own_container: str = "",
) -> Sightings:
    known_containers = () if isinstance(containers, Unknown) else tuple(containers)
    firsts = {each.pid for each in known_containers if each.pid}
    pids = frozenset({1, *firsts, *(each.pid for each in (*drivers, *launchers, *clients))})
    return Sightings(
        processes=RunProcesses(
            drivers=tuple(drivers),
            launchers=tuple(launchers),
            clients=tuple(clients),
            pids=pids,
            own_container=own_container,
        ),
        containers=containers if isinstance(containers, Unknown) else known(known_containers, NOW),
        jobs=known(tuple(jobs), NOW),
    )
