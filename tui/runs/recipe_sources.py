"""A recipe from each source that can give one, with what of the start it does not tell."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
from collections.abc import Iterator

from tui.model.reading import Unknown
from tui.model.recipe import Recipe, RecipeKind
from tui.runs.attachment import client_words, container_words, launcher_words
from tui.runs.bounds import bounds_of
from tui.runs.docker_answers import FoundContainer
from tui.runs.docker_client import docker_command
from tui.runs.merge import FoundRun
from tui.runs.origin import environment_of, may_be_read, unrepeated
from tui.runs.process import RunProcess
from tui.runs.ray_jobs import URL, RayJob

_OF_THE_CLIENT = re.compile(r"PATH|HOME|XDG_RUNTIME_DIR|DOCKER_.*")
"""Variables that `docker` itself goes by."""
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def of_client(client: RunProcess, run: FoundRun, at: float) -> Recipe:
    """Of the `docker run` or `docker exec` that prints what the run prints."""
    docker = docker_command(client.argv, client.cwd)
    assert docker is not None  # as which it was found
    is_run = docker.verb == "run"
    found = run.container
    environment = environment_of(client)
    return Recipe(
        kind=RecipeKind.PROCESS,
        source=f"{client_words(client)} client, process {client.pid}",
        captured_at=at,
        run_started_at=client.started_at,
        pid=client.pid,
        container_id=found.container.id if is_run and found is not None else "",
        submission_id=run.submission_id,
        argv=client.argv,
        environment=environment,
        cwd=client.cwd,
        bounds=bounds_of(client.pid) if environment is not None else None,
        log=_log_of(client),
        container_spec=found.spec if found is not None else "",
        is_client=True,
        container_name=docker.container if is_run else "",
        removes_container=docker.removes,
        mounts=found.container.mounts if found is not None else docker.mounts,
        missing=(
            *_unknown_of(client, environment),
            *_of_exec(docker.container if not is_run else ""),
        ),
    )


def _of_exec(container: str) -> Iterator[str]:
    if container:
        yield f"it was started in container {container}: that has to run when it starts again"


def of_container(found: FoundContainer, run: FoundRun, at: float) -> Recipe:
    """Of a container whose own command is the run."""
    container = found.container
    pairs = (entry.partition("=") for entry in found.environment)
    return Recipe(
        kind=RecipeKind.CONTAINER,
        source=container_words(found),
        captured_at=at,
        run_started_at=container.started_at,
        container_id=container.id,
        submission_id=run.submission_id,
        argv=found.argv,
        environment=tuple((name, value) for name, equals, value in pairs if equals),
        cwd=found.folder,
        container_spec=found.spec,
        container_name=container.name,
        removes_container=container.auto_remove,
        mounts=container.mounts,
        missing=tuple(_unknown_of_container(found, run)),
    )


def _unknown_of_container(found: FoundContainer, run: FoundRun) -> Iterator[str]:
    client = run.client
    if client is not None and client.docker is not None and not may_be_read(client):
        yield (
            f"its docker client, process {client.pid}, is another user's: a container like this "
            "one is created instead; run milepost as that user to start that client again"
        )
    elif client is not None:
        yield (
            f"`{client_words(client)}`, process {client.pid}, only shows its output: what a new "
            "container prints is in `docker logs`"
        )
    if found.compose:
        files = _labels(found).get("com.docker.compose.project.config_files", "its files")
        yield (
            f"docker compose made it as {found.compose} from {files}: a container like it is "
            "created without compose, and `docker compose up` may end one of the two"
        )


def _labels(found: FoundContainer) -> dict[str, str]:
    labels = json.loads(found.spec or "{}").get("Config", {}).get("Labels")
    return labels if isinstance(labels, dict) else {}


def of_process(process: RunProcess, run: FoundRun, at: float) -> Recipe:
    """Of a launcher or driver beside us."""
    environment = environment_of(process)
    is_submit = process in run.launchers and launcher_words(process) == "ray job submit"
    needs_ray = ("it submits to a Ray cluster, which has to be up when it starts again",)
    return Recipe(
        kind=RecipeKind.PROCESS,
        source=_process_words(process, run),
        captured_at=at,
        run_started_at=process.started_at,
        pid=process.pid,
        submission_id=run.submission_id,
        argv=process.argv,
        environment=environment,
        cwd=process.cwd,
        bounds=bounds_of(process.pid) if environment is not None else None,
        log=_log_of(process),
        missing=(*_unknown_of(process, environment), *(needs_ray if is_submit else ())),
    )


def _process_words(process: RunProcess, run: FoundRun) -> str:
    words = launcher_words(process) if process in run.launchers else "driver"
    return f"{words}, process {process.pid}"


def by_exec(process: RunProcess, found: FoundContainer, at: float) -> Recipe:
    """A `docker exec` that does what a person did by hand in the container.

    Secrets are not in its words: it passes the values on from its own environment.
    """
    environment = environment_of(process)
    inner = tuple(pair for pair in environment or () if _VARIABLE.fullmatch(pair[0]))
    passed = tuple(pair for pair in inner if not _OF_THE_CLIENT.fullmatch(pair[0]))
    named = (f"--env={name}" for name, _ in passed)
    given = (f"--env={name}={value}" for name, value in inner if (name, value) not in passed)
    container = found.container
    words = (shutil.which("docker") or "docker", "exec", *named, *given)
    cwd = (f"--workdir={process.cwd}",) if process.cwd else ()
    own = tuple(_own_client_environment())
    return Recipe(
        kind=RecipeKind.PROCESS,
        source=f"process {process.pid}, started by hand in container {container.name}",
        captured_at=at,
        run_started_at=process.started_at,
        pid=process.pid,
        argv=(*words, *cwd, container.name, *process.argv),
        environment=(*own, *passed),
        cwd="/",
        container_spec=found.spec,
        is_client=True,
        mounts=container.mounts,
        missing=(
            *_unknown_of(process, environment),
            *_of_exec(container.name),
            "it is started again by `docker exec`, with a log on this host",
        ),
    )


def _own_client_environment() -> Iterator[tuple[str, str]]:
    return ((name, value) for name, value in os.environ.items() if _OF_THE_CLIENT.fullmatch(name))


def of_job(run: FoundRun, at: float) -> Recipe:
    """Of a Ray job whose submitter is gone."""
    job, driver = run.job, run.driver
    entrypoint = job.entrypoint if job is not None else ""
    if not entrypoint and driver is not None:
        entrypoint = shlex.join(driver.argv)
    return Recipe(
        kind=RecipeKind.JOB,
        source=f"Ray job {run.submission_id}",
        captured_at=at,
        run_started_at=run.started_at,
        submission_id=run.submission_id,
        entrypoint=entrypoint,
        runtime_env=job.runtime_env if job is not None else "",
        metadata=job.metadata if job is not None else (),
        address=URL,
        mounts=run.container.container.mounts if run.container is not None else (),
        missing=tuple(_unknown_of_job(job)),
    )


def _unknown_of_job(job: RayJob | None) -> Iterator[str]:
    if job is None:
        yield "Ray does not tell of the job: its runtime environment is not known"
        return
    yield "Ray does not tell which CPUs, GPUs or memory were reserved for its entrypoint"
    if "gcs://" in job.runtime_env:
        yield "files that were uploaded with it are gone when the Ray cluster starts anew"


def _unknown_of(
    process: RunProcess, environment: tuple[tuple[str, str], ...] | None
) -> Iterator[str]:
    if environment is None:
        yield (
            f"environment of process {process.pid} is not readable: run milepost as that user; a "
            "start gives it milepost's own"
        )
    if not process.cwd:
        yield f"the folder that process {process.pid} was started in is not readable"
    if isinstance(process.output, Unknown):
        yield f"log: {process.output.reason}: a start makes a new file for it"
    yield from unrepeated(process)


def _log_of(process: RunProcess) -> str:
    return "" if isinstance(process.output, Unknown) else process.output.value.path
