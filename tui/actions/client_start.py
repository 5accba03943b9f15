"""What a `docker run` client needs to start, and the container that it makes."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

from tui.actions.claiming import asked, claim, owner_of
from tui.actions.context import Context
from tui.actions.errors import StepFailed
from tui.actions.signals import is_alive
from tui.miles.secrets import masked_text
from tui.model.launch import Container
from tui.model.reading import Absence, Unknown
from tui.model.target import ProcessTarget
from tui.model.text import harmless
from tui.runs.docker_client import DockerCommand
from tui.runs.look import look_around
from tui.runs.merge import merged

_APPEARS_S = 120.0
"""An image may have to be pulled first; the client goes on with that by itself."""
_LOOK_S = 0.2
_TAIL_BYTES = 4096
_LINE_CHARS = 300
_HINT = "Run 'docker"
"""What the client ends with when it was refused."""


def ready(docker: DockerCommand, context: Context) -> None:
    """Make free what the container before this one has. Raises StepFailed."""
    if docker.verb != "run":
        return
    if docker.container:
        claim(docker.container, context)
    if docker.cidfile:
        _set_aside(Path(docker.cidfile))


def container_of(
    docker: DockerCommand, client: ProcessTarget, log: str, context: Context
) -> Container | None:
    """The container that the client made; None: none is there after long, and the client lives.

    Raises:
        StepFailed: the client has ended, and no container of it is there.
    """
    end = time.monotonic() + _APPEARS_S
    while time.monotonic() < end:
        lives = is_alive(client)
        found = _seen(docker, client, context)
        if found is not None and found.started_at:
            return found
        if not lives:
            raise StepFailed(f"the docker client has ended: {_last_line(log)}", f"see {log}")
        context.pause(_LOOK_S)
    return None


def _seen(docker: DockerCommand, client: ProcessTarget, context: Context) -> Container | None:
    name = docker.container
    if not name and docker.cidfile:
        with suppress(OSError):
            name = Path(docker.cidfile).read_text(encoding="ascii", errors="replace").strip()
    if name:
        return asked(context, lambda engine: owner_of(engine, name))
    at = context.clock()
    no_ray = Unknown(why=Absence.NOT_ASKED, at=at)
    for run in merged(look_around(at, lambda _: no_ray)):
        if run.client is not None and run.client.pid == client.pid and run.container is not None:
            return run.container.container
    return None


def _last_line(log: str) -> str:
    try:
        with Path(log).open("rb") as file:
            file.seek(max(0, file.seek(0, os.SEEK_END) - _TAIL_BYTES))
            lines = file.read().decode("utf-8", "replace").split("\n")
    except OSError as fault:
        return str(fault.strerror)
    said = (line.strip() for line in reversed(lines) if not line.startswith(_HINT))
    told = next(filter(None, said), "it said nothing")
    return masked_text(harmless(told))[:_LINE_CHARS]


def _set_aside(cidfile: Path) -> None:
    """Docker refuses to write into one that is there."""
    with suppress(FileNotFoundError):
        moment = time.strftime("%Y%m%d-%H%M%S", time.localtime(cidfile.stat().st_mtime))
        cidfile.rename(cidfile.with_name(f"{cidfile.name}-until-{moment}"))
