"""A found run as what to watch: log, checkpoints, where each came from, and what is missing.

A path inside a container is of use only through a mount; one that lies on none is said.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import takewhile
from pathlib import Path

from tui.config import state_home
from tui.miles.flags import launch_from_argv, launch_from_shell
from tui.miles.secrets import masked_words
from tui.model.launch import Attachment, Found, LaunchArgs, host_path
from tui.model.reading import Absence, Known, Unknown
from tui.runs.docker_answers import FoundContainer
from tui.runs.merge import FoundRun
from tui.runs.next_log import original_stem
from tui.runs.process import RunProcess
from tui.runs.ray_jobs import submission_of
from tui.runs.recipe_changes import original_id

_NAME_IT = "name the log with --log FILE"


def attachment_of(run: FoundRun) -> Attachment:
    """What to watch of it."""
    launch, source = _launch_of(run)
    log, log_notes = _log_of(run)
    checkpoints, save_notes = _checkpoints_of(run, launch, source)
    driver = run.driver
    return Attachment(
        name=_name_of(run, log),
        log=log,
        checkpoints=checkpoints,
        container=Found(value=run.container.container.id, source=container_words(run.container))
        if run.container
        else None,
        driver_pid=Found(value=str(driver.pid), source=f"process {driver.pid}") if driver else None,
        job=_job_of(run),
        launch=launch,
        demo=driver is not None and driver.demo,
        notes=(*log_notes, *save_notes, *_hidden(run)),
    )


def output_copy(container_id: str) -> Path:
    """Where a container's output is copied to when it goes to no file that can be read."""
    return state_home() / "output" / f"{container_id[:12]}.log"


def output_paths(run: FoundRun) -> Iterator[str]:
    """Every file of ours that its processes print into."""
    for printer in _printers(run):
        path = _path_here(printer.process, run)
        if isinstance(path, str):
            yield path


def output_is_known(run: FoundRun) -> bool:
    """Whether it can be told, for each process of it, where that prints."""
    return all(isinstance(printer.process.output, Known) for printer in _printers(run))


def container_words(found: FoundContainer) -> str:
    """The container as a source: its name, its image, and who made it."""
    made_by = f", made by docker compose as {found.compose}" if found.compose else ""
    return f"container {found.container.name} of image {found.container.image}{made_by}"


def client_words(client: RunProcess) -> str:
    """`docker run` and the like."""
    return f"docker {client.docker.verb}" if client.docker is not None else "docker"


def launcher_words(launcher: RunProcess) -> str:
    """The launcher's script, or `ray job submit`."""
    for word in takewhile(lambda word: word != "--", launcher.argv[1:]):
        if word.endswith(".py"):
            return posixpath.basename(word)
    return "ray job submit"


def _name_of(run: FoundRun, log: Found | None) -> str:
    if run.container is not None:
        return run.container.container.name
    if run.client is not None and run.client.docker is not None and run.client.docker.container:
        return run.client.docker.container
    if log is not None and not submission_of(log.value):
        return original_stem(log.value)
    return original_id(run.submission_id) or f"pid {pid_of(run)}"


def _job_of(run: FoundRun) -> Found | None:
    if not run.submission_id:
        return None
    process = run.driver.pid if run.driver is not None else 0
    source = "Ray's list of jobs" if run.job is not None else f"process {process}"
    return Found(value=run.submission_id, source=source)


def pid_of(run: FoundRun) -> str:
    """The pid that stands for the run: the driver's where it is seen."""
    processes = (run.driver, *run.launchers, run.client)
    return next((str(process.pid) for process in processes if process is not None), "")


# How it was started


def _launch_of(run: FoundRun) -> tuple[LaunchArgs, str]:
    """The arguments, by the source nearest to the driver that says anything, and that source."""
    told = list(_launches(run))
    return next(((args, source) for args, source in told if _says_anything(args)), told[0])


def _says_anything(launch: LaunchArgs) -> bool:
    return replace(launch, argv=()) != LaunchArgs()


def _launches(run: FoundRun) -> Iterator[tuple[LaunchArgs, str]]:
    if run.driver is not None:
        yield run.driver.launch, f"process {run.driver.pid}"
    if run.job is not None:
        yield launch_from_shell(run.job.entrypoint), f"Ray job {run.job.submission_id}"
    for launcher in reversed(run.launchers):
        yield launcher.launch, f"process {launcher.pid}"
    if run.container is not None:
        found = run.container
        launch = launch_from_argv((*found.argv, *found.environment))
        name = f"container {found.container.name}"
        yield replace(launch, argv=masked_words(found.argv)), name
    if run.client is not None:
        yield run.client.launch, f"process {run.client.pid}"


# What it prints


@dataclass(frozen=True, slots=True)
class _Printer:
    process: RunProcess
    words: str


def _printers(run: FoundRun) -> Iterator[_Printer]:
    """Those whose output can be the log, the one that a person reads first."""
    if run.client is not None:
        yield _Printer(run.client, f"output of `{client_words(run.client)}`")
    for launcher in run.launchers:
        yield _Printer(launcher, f"output of `{launcher_words(launcher)}`")
    if run.driver is not None:
        yield _Printer(run.driver, "output of the driver")


def _log_of(run: FoundRun) -> tuple[Found | None, tuple[str, ...]]:
    """The log, and why others that would tell more or sooner are none."""
    forbidden: list[str] = []
    missing: list[str] = []
    for printer in _printers(run):
        path = _path_here(printer.process, run)
        if isinstance(path, str):
            source = f"{printer.words}, process {printer.process.pid}"
            return Found(value=path, source=source), tuple(forbidden)
        if path.why is Absence.NO_PERMISSION:
            forbidden.append(
                f"log: {path.reason}: run milepost as that user or with sudo, or {_NAME_IT}"
            )
        else:
            missing.append(f"log: {printer.words}, process {printer.process.pid}: {path.reason}")
    fallback = _driver_log(run) or _docker_log(run)
    if fallback is not None:
        return fallback, tuple(forbidden)
    if not forbidden and not missing:
        missing = ["log: nothing tells where the run prints"]
    return None, (*forbidden, *(f"{reason}; {_NAME_IT}" for reason in missing))


def _path_here(process: RunProcess, run: FoundRun) -> str | Unknown:
    """The file it prints into by a path of ours."""
    if isinstance(process.output, Unknown):
        return process.output
    output, at = process.output.value, process.output.at
    if not process.is_elsewhere:
        return output.path
    mapped = host_path(output.path, mounts_of(run))
    for path in (mapped, output.path):
        if path is not None and output.is_at(path):
            return path
    reason = f"{output.path} is on no mount of {_where(run)} (run milepost inside it)"
    return Unknown(why=Absence.MISSING, reason=reason, at=at)


def _driver_log(run: FoundRun) -> Found | None:
    job = run.job
    if job is None or not run.is_here or not Path(job.driver_log).is_file():
        return None
    path = str(Path(job.driver_log).resolve())
    return Found(value=path, source=f"driver log of Ray job {job.submission_id}")


def _docker_log(run: FoundRun) -> Found | None:
    """Docker's own record of the container, unless the run was started by `docker exec`."""
    if run.container is None:
        return None
    outermost = (*run.launchers, run.driver)[0]
    first = run.container.pid
    beside = outermost is not None and first not in (outermost.pid, *outermost.ancestors)
    if first and beside and not run.is_here:
        return None
    container = run.container.container
    source = f"container {container.name}, its output copied here"
    return Found(value=str(output_copy(container.id)), source=source)


# What it saves


def _checkpoints_of(
    run: FoundRun, launch: LaunchArgs, source: str
) -> tuple[Found | None, tuple[str, ...]]:
    if launch.save is None:
        return None, ()
    told = f"--save {launch.save} of {source}"
    save = absolute(launch.save, run)
    if save is None:
        reason = f"{told} is relative to a folder that cannot be read"
        return None, (f"checkpoints: {reason}; name it with --checkpoints DIR",)
    if run.is_here:
        return Found(value=save, source=told), ()
    mounts = mounts_of(run)
    mapped = host_path(save, mounts)
    if mapped is not None:
        return Found(value=mapped, source=f"{told}, through a mount of {_where(run)}"), ()
    if run.container is None and not mounts:
        reason = f"{told} is a path inside {_where(run)}, whose mounts cannot be read"
        return None, (f"checkpoints: {reason}; name the folder with --checkpoints DIR",)
    return None, (f"checkpoints: {told} is on no mount of {_where(run)}: they vanish with it",)


def _hidden(run: FoundRun) -> Iterator[str]:
    if run.hidden_by:
        yield f"{_where(run)}: {run.hidden_by}"


def absolute(path: str, run: FoundRun) -> str | None:
    """A path that the run was told, as it sees it; None: what it is relative to cannot be read."""
    if path.startswith("/"):
        return path
    process = run.driver or next(iter(run.launchers), None)
    folder = process.cwd if process is not None else ""
    if not folder and run.container is not None:
        folder = run.container.folder
    return posixpath.normpath(posixpath.join(folder, path)) if folder else None


def mounts_of(run: FoundRun) -> tuple[tuple[str, str], ...]:
    """(host path, container path) pairs of its container, as far as they are known."""
    if run.container is not None:
        return run.container.container.mounts
    docker = run.client.docker if run.client is not None else None
    return docker.mounts if docker is not None else ()


def _where(run: FoundRun) -> str:
    if run.container is not None:
        return f"container {run.container.container.name}"
    if run.driver is not None and run.driver.container_id:
        return f"container {run.driver.container_id[:12]}"
    return "its container" if run.client is not None else "another mount namespace"
