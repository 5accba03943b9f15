"""Processes of runs on this machine: drivers, what launched them, and `docker` clients."""

from __future__ import annotations

import re
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path

import psutil

from tui.miles.flags import launch_from_argv
from tui.miles.titles import DEMO_MODULE, Role, role_of
from tui.model.launch import LaunchArgs
from tui.model.reading import Reading, Unknown
from tui.runs.docker_client import DockerCommand, docker_command
from tui.runs.output import OutputFile, output_of
from tui.runs.ray_jobs import submission_of

_CONTAINER = re.compile(r"[/-]([0-9a-f]{64})(?![0-9a-f])")
"""In a cgroup's path: `/docker/ID`, `/system.slice/docker-ID.scope`."""
_OWN_CONTAINER = re.compile(r"/containers/([0-9a-f]{64})/hostname ")
"""In our mounts: Docker keeps a container's `/etc/hostname` there."""
_MOST_ANCESTORS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProcess:
    """A driver, a launcher or a `docker` client."""

    pid: int
    started_at: float
    """Epoch seconds; with the pid an identity."""
    argv: tuple[str, ...] = field(repr=False)
    """Unmasked; `launch` has it masked."""
    launch: LaunchArgs
    ancestors: tuple[int, ...] = ()
    """Pids, the parent first."""
    inner_pid: int = 0
    """Its pid in its own pid namespace, by which programs beside it know it."""
    container_id: str = ""
    """Of the container it runs in, by its cgroup; empty: in none, or in ours."""
    is_elsewhere: bool = False
    """It lives in another mount namespace, a container's: its paths are as seen there."""
    cwd: str = ""
    """Empty when it is not readable."""
    output: Reading[OutputFile]
    submission_id: str = ""
    """The Ray job it drives, where its output or its environment says so."""
    docker: DockerCommand | None = None

    @property
    def demo(self) -> bool:
        """It is a simulated run."""
        return DEMO_MODULE in self.argv


@dataclass(frozen=True, slots=True, kw_only=True)
class RunProcesses:
    """What one look at the process table found, each kind with the newest first."""

    drivers: tuple[RunProcess, ...] = ()
    """Forked copies of one are left out."""
    launchers: tuple[RunProcess, ...] = ()
    """`ray job submit` and Miles' `scripts/run_*.py`."""
    clients: tuple[RunProcess, ...] = ()
    pids: frozenset[int] = frozenset()
    """All that can be seen."""
    own_container: str = ""
    """The Docker container we run in ourselves."""

    @property
    def others_are_hidden(self) -> bool:
        """The system shows each user only their own (`hidepid`)."""
        return 1 not in self.pids


def find_processes(at: float) -> RunProcesses:
    """Every process of a run that can be seen."""
    pids = psutil.pids()
    drivers: dict[int, RunProcess] = {}
    launchers: list[RunProcess] = []
    clients: list[RunProcess] = []
    for pid in pids:
        with suppress(psutil.Error):
            process = psutil.Process(pid)
            argv = tuple(process.cmdline())
            role = role_of(argv)
            if role is Role.DRIVER:
                drivers[pid] = _looked_at(process, argv, at)
            elif role is Role.LAUNCHER:
                launchers.append(_looked_at(process, argv, at))
            elif docker_command(argv) is not None:
                clients.append(_looked_at(process, argv, at))
    return RunProcesses(
        drivers=_newest_first(
            driver for driver in drivers.values() if not drivers.keys() & {*driver.ancestors[:1]}
        ),
        launchers=_newest_first(launchers),
        clients=_newest_first(clients),
        pids=frozenset(pids),
        own_container=_own_container(),
    )


def _newest_first(processes: Iterable[RunProcess]) -> tuple[RunProcess, ...]:
    return tuple(sorted(processes, key=lambda process: process.started_at, reverse=True))


def _looked_at(process: psutil.Process, argv: tuple[str, ...], at: float) -> RunProcess:
    pid = process.pid
    cwd = ""
    with suppress(psutil.AccessDenied):
        cwd = process.cwd()
    output = output_of(pid, at)
    container_id = _container_of(pid)
    printed = output.value.path if not isinstance(output, Unknown) else ""
    return RunProcess(
        pid=pid,
        started_at=process.create_time(),
        argv=argv,
        launch=launch_from_argv(argv),
        ancestors=_ancestors(process),
        inner_pid=_inner_pid(pid),
        container_id=container_id,
        is_elsewhere=bool(container_id) or _has_foreign_mounts(pid),
        cwd=cwd,
        output=output,
        submission_id=submission_of(printed, _text(f"/proc/{pid}/environ")),
        docker=_docker(argv, cwd),
    )


def _docker(argv: tuple[str, ...], cwd: str) -> DockerCommand | None:
    """With the id from the file that it was told to write it to."""
    command = docker_command(argv, cwd)
    if command is None or not command.cidfile or command.container:
        return command
    return replace(command, container=_text(command.cidfile).strip())


def _ancestors(process: psutil.Process) -> tuple[int, ...]:
    pids: list[int] = []
    with suppress(psutil.Error):
        while (parent := process.ppid()) and parent not in pids and len(pids) < _MOST_ANCESTORS:
            pids.append(parent)
            process = psutil.Process(parent)
    return tuple(pids)


def _inner_pid(pid: int) -> int:
    """The last of `NSpid: 4242 17`, which anybody may read."""
    found = re.search(r"^NSpid:.*?(\d+)$", _text(f"/proc/{pid}/status"), re.MULTILINE)
    return int(found[1]) if found else pid


def container_in(cgroup: str) -> str:
    """The container that a process' cgroups name, empty where they name none."""
    found = _CONTAINER.search(cgroup)
    return found[1] if found else ""


def _container_of(pid: int) -> str:
    """The container of a process, unless it is the one we run in."""
    container = container_in(_text(f"/proc/{pid}/cgroup"))
    return "" if container == container_in(_text("/proc/self/cgroup")) else container


def _own_container() -> str:
    found = _OWN_CONTAINER.search(_text("/proc/self/mountinfo"))
    return found[1] if found else ""


def _has_foreign_mounts(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/ns/mnt").readlink() != Path("/proc/self/ns/mnt").readlink()
    except OSError:
        return False


def _text(path: str) -> str:
    try:
        return Path(path).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
