"""Containers told to stop, to go by another name, to run a command: Docker's writing calls.

A container is acted on by id, and only while it is the very start that was meant. The engine's
faults are values, as in `tui.runs.docker`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar

from tui.model.launch import Container
from tui.model.plan import Fresh
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.target import ContainerTarget
from tui.runs.docker import DockerEngine
from tui.runs.docker_answers import found_container

if TYPE_CHECKING:
    from docker import APIClient

T = TypeVar("T")

_ANSWER_S = 30
"""Beyond the grace period: an engine whose container dies slowly answers late."""
_LIVES = frozenset({"running", "paused", "restarting"})
_HEADER_BYTES = 8
_MOST_BYTES = 4 << 20


class Outcome(StrEnum):
    """What became of a call."""

    DONE = "done"
    ALREADY = "already so"
    """Gone before, or of that name before."""
    ANOTHER = "started again since"
    """The container was started again: what runs in it now was not meant, and was left alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ran:
    """A command that was run in a container, to its end."""

    exit_code: int
    output: str
    """What it printed, standard output and error as they came."""


def stop(target: ContainerTarget, grace_s: float) -> Reading[Outcome]:
    """Ask its first process to end, and after the grace period let the engine kill all."""
    return _asked(lambda client: _ended(client, target, round(grace_s)))


def kill(target: ContainerTarget) -> Reading[Outcome]:
    """End all in it at once."""
    return _asked(lambda client: _ended(client, target, 0))


def is_running(target: ContainerTarget) -> bool:
    """Whether that very start of it goes on; so it is called too while nobody can tell."""

    def ask(client: APIClient) -> bool:
        container = _inspected(client, target.id)
        if container is None or container.started_at != target.started_at:
            return False
        return container.status in _LIVES

    answer = _asked(ask)
    return isinstance(answer, Unknown) or answer.value


def rename(target: ContainerTarget, name: str) -> Reading[Outcome]:
    """Give an ended container another name. One that runs keeps its own."""

    def ask(client: APIClient) -> Outcome | Unknown:
        container = _inspected(client, target.id)
        if container is None:
            return Unknown(why=Absence.MISSING, reason=f"container {target.name} is gone")
        if container.name == name:
            return Outcome.ALREADY
        if container.started_at != target.started_at or container.status in _LIVES:
            reason = f"container {container.name} runs: it keeps its name"
            return Unknown(why=Absence.ERROR, reason=reason)
        client.rename(target.id, name)
        return Outcome.DONE

    return _asked(ask)


def exec_in(
    container_id: str, argv: Sequence[str], *, timeout_s: float = 10.0, privileged: bool = False
) -> Reading[Ran]:
    """Run a command in a running container, as root, and wait for its end.

    One that takes too long is left to itself: Docker knows no way to end it.
    """

    def ask(client: APIClient) -> Ran:
        made = client.exec_create(container_id, list(argv), privileged=privileged)
        output = _output(client, made["Id"], timeout_s)
        exit_code = client.exec_inspect(made["Id"])["ExitCode"]
        return Ran(exit_code=exit_code, output=output.decode("utf-8", "replace"))

    answer = _asked(ask)
    if isinstance(answer, Unknown) and answer.why is Absence.TIMED_OUT:
        return replace(answer, reason=f"{argv[0]} did not end within {timeout_s:g} s")
    return answer


def exec_made(container_id: str, argv: Sequence[str]) -> Reading[str]:
    """Prepare a command in a running container, as root; the id to start it by."""
    return _asked(lambda client: str(client.exec_create(container_id, list(argv))["Id"]))


def exec_started(exec_id: str) -> Reading[Outcome]:
    """Start it, once, and do not wait for it."""
    from docker.errors import APIError

    def ask(client: APIClient) -> Outcome:
        try:
            client.exec_start(exec_id, detach=True)
        except APIError:
            told = client.exec_inspect(exec_id)
            if told["Running"] or told["ExitCode"] is not None:
                return Outcome.ALREADY
            raise
        return Outcome.DONE

    return _asked(ask)


def exec_is_running(exec_id: str) -> bool:
    """Whether it goes on; so it is called too while nobody can tell."""
    from docker.errors import NotFound

    def ask(client: APIClient) -> bool:
        try:
            return bool(client.exec_inspect(exec_id)["Running"])
        except NotFound:
            return False

    answer = _asked(ask)
    return isinstance(answer, Unknown) or answer.value


def made_of(fresh: Fresh, argv: Sequence[str], name: str) -> Reading[str]:
    """Create a container for one command, without a network, gone with its end; its id.

    One of that name was created by an attempt before this one.
    """
    from docker.errors import APIError
    from docker.types import Mount

    mounts = [
        Mount(
            target=each.path,
            source=each.source,
            type="volume" if each.is_volume else "bind",
            read_only=each.read_only,
        )
        for each in fresh.mounts
    ]

    def ask(client: APIClient) -> str:
        host = client.create_host_config(mounts=mounts, network_mode="none", auto_remove=True)
        try:
            made = client.create_container(
                fresh.image,
                name=name,
                entrypoint=list(argv[:1]),
                command=list(argv[1:]),
                environment=dict(fresh.environment),
                user=fresh.user or None,
                working_dir=fresh.cwd or None,
                host_config=host,
            )
        except APIError as fault:
            if fault.status_code != HTTPStatus.CONFLICT:
                raise
            made = client.inspect_container(name)
        return str(made["Id"])

    return _asked(ask)


def started(container_id: str) -> Reading[Outcome]:
    """Start a container that was made."""

    def ask(client: APIClient) -> Outcome:
        client.start(container_id)
        return Outcome.DONE

    return _asked(ask)


def is_running_now(container_id: str) -> bool:
    """Whether a container of ours goes on; so it is called too while nobody can tell."""

    def ask(client: APIClient) -> bool:
        container = _inspected(client, container_id)
        return container is not None and container.status in _LIVES

    answer = _asked(ask)
    return isinstance(answer, Unknown) or answer.value


def stop_now(container_id: str, grace_s: float) -> Reading[Outcome]:
    """End a container of ours."""

    def ask(client: APIClient) -> Outcome:
        client.stop(container_id, timeout=round(grace_s))
        return Outcome.DONE

    return _asked(ask)


def _asked(question: Callable[[APIClient], T | Unknown]) -> Reading[T]:
    at = time.time()
    engine = DockerEngine(answer_s=_ANSWER_S)
    try:
        answer = engine.asked(at, question)
    finally:
        engine.close()
    if not isinstance(answer, Unknown):
        return known(answer, at)
    if answer.why is Absence.TIMED_OUT:
        answer = replace(answer, reason="Docker did not answer in time; it may still be at it")
    return replace(answer, at=at)


def _ended(client: APIClient, target: ContainerTarget, grace_s: int) -> Outcome:
    from docker.errors import NotFound

    container = _inspected(client, target.id)
    if container is None or container.status not in _LIVES:
        return Outcome.ALREADY
    if container.started_at != target.started_at:
        return Outcome.ANOTHER
    try:
        client.stop(target.id, timeout=grace_s)
    except NotFound:
        return Outcome.ALREADY
    return Outcome.DONE


def _inspected(client: APIClient, container_id: str) -> Container | None:
    from docker.errors import NotFound

    try:
        return found_container(client.inspect_container(container_id)).container
    except NotFound:
        return None


def _output(client: APIClient, exec_id: str, timeout_s: float) -> bytes:
    """What a command prints until it ends, its beginning where that is much.

    Asked for as a plain answer. The SDK takes over the connection instead, waits without end, and
    misses what came along with the answer's head.
    """
    until = time.monotonic() + timeout_s
    output = bytearray()
    with client.post(
        f"{client.base_url}/v{client.api_version}/exec/{exec_id}/start",
        json={"Detach": False, "Tty": False},
        stream=True,
        timeout=timeout_s,
    ) as answer:
        if answer.status_code != HTTPStatus.OK:
            raise ConnectionError(answer.text[:200].strip())
        for piece in _pieces(answer.raw.read):
            output += piece
            if time.monotonic() > until:
                raise TimeoutError
            if len(output) > _MOST_BYTES:
                break
    return bytes(output)


def _pieces(read: Callable[[int], bytes]) -> Iterator[bytes]:
    """What is printed, as it comes. Each piece has its length before it. Raises OSError."""
    from urllib3.exceptions import HTTPError, ReadTimeoutError

    try:
        while len(header := read(_HEADER_BYTES)) == _HEADER_BYTES:
            yield read(int.from_bytes(header[4:], "big"))
    except ReadTimeoutError as error:
        raise TimeoutError from error
    except HTTPError as error:
        raise ConnectionError(str(error)) from error
