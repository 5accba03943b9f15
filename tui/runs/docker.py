"""The Docker engine, asked through its SDK: the only place that knows it. Reads only.

The SDK costs 100 ms to import, so that is done at the first question. Its errors end here: a fault
is an `Unknown` with its remedy, and for a log stream an `OSError`, as a file would raise.
"""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import quote

from tui.model.launch import Container
from tui.model.reading import Absence, Reading, Unknown, known
from tui.runs.docker_answers import (
    GONE,
    FoundContainer,
    LastExit,
    found_container,
    is_called,
    is_miles,
    last_exit,
    was_told_to_end,
)
from tui.runs.docker_frames import FrameDemultiplexer

if TYPE_CHECKING:
    from docker import APIClient

T = TypeVar("T")

ANSWER_S = 3
_NAMES = ("DOCKER_HOST", "DOCKER_TLS_VERIFY", "DOCKER_CERT_PATH")
_USUAL_SOCKET = "unix:///var/run/docker.sock"
MOST_CONTAINERS = 64
_PRINTING = frozenset({"running", "paused", "restarting"})


class DockerEngine:
    """One engine, by default the one that `DOCKER_HOST` or the usual socket names."""

    def __init__(self, answer_s: int | None = None) -> None:
        self._answer_s = answer_s
        self._environment = {name: os.environ[name] for name in _NAMES if name in os.environ}
        """Read here: a thread that asks may come to it when it is another."""
        self._connected: APIClient | None = None

    def containers(self, at: float, *, stopped: bool = False) -> Reading[tuple[Container, ...]]:
        """The running containers; with `stopped` all of them, an old owner of a name too."""
        answer = self.asked(at, lambda client: self._all(client, stopped=stopped))
        if isinstance(answer, Unknown):
            return answer
        return known(tuple(found.container for found in answer), at)

    def inspect(self, name: str, at: float) -> Reading[Container]:
        """The container of this name or id. One that is not there has the status `gone`."""
        answer = self.asked(at, lambda client: self._one(client, name))
        if isinstance(answer, Unknown):
            return answer
        if answer is None:
            return known(Container(id="", name=name, image="", status=GONE), at)
        return known(answer.container, at)

    def find_miles_containers(
        self, at: float, name: str = "", drivers_in: Collection[str] = ()
    ) -> Reading[tuple[FoundContainer, ...]]:
        """Running containers whose image, command or environment speaks of Miles.

        Args:
            at: now.
            name: given, the container of exactly that name or id comes alone, whatever it runs,
                running or not; where there is none, it is no matter.
            drivers_in: ids of containers that a driver was seen in; they come too.
        """

        def look(client: APIClient) -> tuple[FoundContainer, ...]:
            named = self._one(client, name) if name else None
            if named is not None and is_called(named.container, name):
                return (named,)
            return tuple(
                one
                for one in self._all(client, stopped=False)
                if is_miles(one) or one.container.id in drivers_in
            )

        answer = self.asked(at, look)
        return answer if isinstance(answer, Unknown) else known(answer, at)

    def last_exit(self, container_id: str, since: float, until: float) -> LastExit | None:
        """How a removed container ended; None when the engine no longer remembers."""
        return last_exit(self._events(container_id, ("die", "oom"), since, until))

    def had_oom(self, container_id: str, since: float, until: float) -> bool:
        """Whether something in it was killed for memory. While it lives, no flag of it says so."""
        return bool(self._events(container_id, ("oom",), since, until).strip())

    def was_told_to_end(self, container_id: str, since: float, until: float) -> bool:
        """Whether somebody stopped or killed it; False too where the engine cannot say."""
        return was_told_to_end(self._events(container_id, ("kill",), since, until))

    def follow_logs(
        self, container_id: str, since: float, *, follow: bool = True
    ) -> Iterator[bytes]:
        """What the container prints from `since` on, as whole lines unless it has a TTY.

        Blocks until there is more, ends when the container or the engine does; without `follow`
        at the end of what there is. A line that a running container has not ended is left out
        then. Raises OSError.
        """
        inspected = self.inspect(container_id, since)
        if isinstance(inspected, Unknown):
            raise _as_os_error(inspected)
        if inspected.value.status == GONE:
            raise FileNotFoundError(f"no container {container_id}")
        is_stamped = not inspected.value.log_opts_tty
        frames = FrameDemultiplexer(stamped=True) if is_stamped else None
        options = {"follow": follow, "timestamps": is_stamped}
        for chunk in self._log_chunks(container_id, since, options):
            if lines := frames.feed(chunk) if frames else chunk:
                yield lines
        if frames and not self.is_running(container_id, since) and (rest := frames.flush()):
            yield rest

    def is_running(self, container_id: str, at: float) -> bool:
        """Whether it may print more: so it is called too while nobody can tell."""
        reading = self.inspect(container_id, at)
        return isinstance(reading, Unknown) or reading.value.status in _PRINTING

    def close(self) -> None:
        """Let the connection go."""
        if self._connected is not None:
            self._connected.close()
            self._connected = None

    def _log_chunks(
        self, container_id: str, since: float, options: Mapping[str, bool]
    ) -> Iterator[bytes]:
        from docker.errors import DockerException

        wanted = {"stdout": True, "stderr": True, **options}
        params = {"since": f"{since:.6f}", **{name: str(int(on)) for name, on in wanted.items()}}
        path = f"containers/{quote(container_id, safe='')}/logs"
        refusal = ""
        try:
            client = self._client()
            with client.get(
                _url(client, path), params=params, stream=True, timeout=(ANSWER_S, None)
            ) as answer:
                if answer.status_code == HTTPStatus.OK:
                    yield from answer.iter_content(chunk_size=None)
                else:
                    refusal = f"Docker says: {answer.text[:200].strip()}"
        except (DockerException, OSError) as error:
            raise _as_os_error(_fault(error, since)) from error
        if refusal:
            raise ConnectionError(refusal)

    def asked(self, at: float, question: Callable[[APIClient], T]) -> T | Unknown:
        """The answer, or the engine's fault as `Unknown`; a broken connection is made anew."""
        if self._connected is None:
            try:
                _knock(self._environment)
            except OSError as error:
                return _fault(error, at)
        from docker.errors import APIError, DockerException

        try:
            return question(self._client())
        except APIError as error:
            return Unknown(why=Absence.ERROR, reason=_said(error), at=at)
        except (DockerException, OSError) as error:
            self.close()
            return _fault(error, at)

    def _events(self, container_id: str, kinds: Sequence[str], since: float, until: float) -> str:
        """What the engine remembers of a container, an event a line; nothing if it cannot say."""
        params = {
            "since": f"{since:.6f}",
            "until": f"{until:.6f}",
            "filters": json.dumps({"container": [container_id], "event": list(kinds)}),
        }

        def look(client: APIClient) -> str:
            return client.get(_url(client, "events"), params=params, timeout=ANSWER_S).text

        answer = self.asked(until, look)
        return "" if isinstance(answer, Unknown) else answer

    def _client(self) -> APIClient:
        if self._connected is None:
            self._connected = _connect(self._environment, self._answer_s or ANSWER_S)
        return self._connected

    def _all(self, client: APIClient, *, stopped: bool) -> tuple[FoundContainer, ...]:
        listed = client.containers(all=stopped, limit=MOST_CONTAINERS if stopped else -1)
        looked = (self._one(client, item["Id"]) for item in listed[:MOST_CONTAINERS])
        return tuple(found for found in looked if found is not None)

    def _one(self, client: APIClient, name: str) -> FoundContainer | None:
        from docker.errors import NotFound

        try:
            return found_container(client.inspect_container(name))
        except NotFound:
            return None


def _knock(environment: Mapping[str, str]) -> None:
    """Fail as the socket does, before the SDK is imported for nothing, again and again."""
    host = environment.get("DOCKER_HOST") or _USUAL_SOCKET
    if host.startswith("unix://"):
        with socket.socket(socket.AF_UNIX) as door:
            door.settimeout(ANSWER_S)
            door.connect(host.removeprefix("unix://"))


def _connect(environment: Mapping[str, str], answer_s: int) -> APIClient:
    from docker import APIClient
    from docker.utils import kwargs_from_env

    return APIClient(timeout=answer_s, **kwargs_from_env(environment=environment))


def _url(client: APIClient, path: str) -> str:
    return f"{client.base_url}/v{client.api_version}/{path}"


def _said(error: BaseException) -> str:
    explanation = getattr(error, "explanation", None)
    return f"Docker says: {explanation or error}"


def _fault(error: BaseException, at: float) -> Unknown:
    """The fault behind the SDK's chain of exceptions, with what to do about it."""
    for cause in _chain(error):
        match cause:
            case FileNotFoundError() | ConnectionRefusedError():
                reason = "Docker is not running or not installed"
                return Unknown(why=Absence.MISSING, reason=reason, at=at)
            case PermissionError():
                reason = "no permission for Docker: join the docker group or run with sudo"
                return Unknown(why=Absence.NO_PERMISSION, reason=reason, at=at)
            case TimeoutError():
                reason = f"Docker did not answer within {ANSWER_S} s"
                return Unknown(why=Absence.TIMED_OUT, reason=reason, at=at)
            case _:
                continue
    return Unknown(why=Absence.ERROR, reason=_said(error), at=at)


def _chain(error: BaseException) -> Sequence[BaseException]:
    chain: list[BaseException] = []
    cause: BaseException | None = error
    while cause is not None and cause not in chain:
        chain.append(cause)
        cause = cause.__cause__ or cause.__context__
    return chain


def _as_os_error(fault: Unknown) -> OSError:
    match fault.why:
        case Absence.NO_PERMISSION:
            return PermissionError(fault.reason)
        case Absence.TIMED_OUT:
            return TimeoutError(fault.reason)
        case _:
            return ConnectionError(fault.reason)
