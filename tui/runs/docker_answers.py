"""Docker's answers, read into the model. Absent or odd parts give the model's defaults."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from tui.model.launch import Container

GONE = "gone"

_MILES = re.compile(
    r"(?<![a-z0-9])(?:miles|slime)(?![a-z0-9])|(?<![\w.])train(?:_async)?\.py\b|\btui\.demo\b",
    re.IGNORECASE,
)
_ENDING_SIGNALS = frozenset({"2", "3", "9", "15"})
_COMPOSE = ("com.docker.compose.project", "com.docker.compose.service")


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundContainer:
    """A container with what its launch says; its words may hold secrets."""

    container: Container
    argv: tuple[str, ...] = field(repr=False)
    """Entry point and arguments, unmasked."""
    environment: tuple[str, ...] = field(repr=False)
    """`NAME=value`, unmasked."""
    pid: int = 0
    """Its first process, as the engine's machine counts; 0: none runs."""
    folder: str = ""
    """Where its command begins, as seen inside."""
    compose: str = ""
    """`project/service` where docker compose made it."""
    shares_network: bool = False
    """It is on the host's network."""
    spec: str = field(default="", repr=False, compare=False)
    """All that `inspect` says of how it was made, as JSON."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LastExit:
    """How a container ended, from the engine's memory of its newest events."""

    exit_code: int
    oom_killed: bool
    at: float


def found_container(answer: Mapping[str, Any]) -> FoundContainer:
    """What `inspect` says."""
    config = _part(answer, "Config")
    state = _part(answer, "State")
    labels = _part(config, "Labels")
    ended = not state.get("Running") and _epoch_s(state.get("FinishedAt")) > 0.0
    return FoundContainer(
        container=Container(
            id=str(answer.get("Id", "")),
            name=str(answer.get("Name", "")).lstrip("/"),
            image=str(config.get("Image", "")),
            status=str(state.get("Status", "")),
            exit_code=int(state.get("ExitCode", 0)) if ended else None,
            oom_killed=bool(state.get("OOMKilled")),
            restart_count=int(answer.get("RestartCount", 0)),
            auto_remove=bool(_part(answer, "HostConfig").get("AutoRemove")),
            started_at=_epoch_s(state.get("StartedAt")),
            finished_at=_epoch_s(state.get("FinishedAt")) if ended else 0.0,
            log_opts_tty=bool(config.get("Tty")),
            mounts=tuple(
                (str(mount["Source"]), str(mount["Destination"]))
                for mount in answer.get("Mounts") or ()
                if mount.get("Source") and mount.get("Destination")
            ),
        ),
        argv=(str(answer.get("Path", "")), *map(str, answer.get("Args") or ())),
        environment=tuple(map(str, config.get("Env") or ())),
        pid=int(state.get("Pid") or 0),
        folder=str(config.get("WorkingDir") or ""),
        compose="/".join(str(labels[name]) for name in _COMPOSE if labels.get(name)),
        shares_network=_part(answer, "HostConfig").get("NetworkMode") == "host",
        spec=json.dumps({name: part for name, part in answer.items() if name != "State"}),
    )


def _part(answer: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    part = answer.get(name)
    return part if isinstance(part, dict) else {}


def _epoch_s(stamp: object) -> float:
    """Docker's time of day with nanoseconds; its zero is the year 1, ours 0.0."""
    try:
        moment = datetime.fromisoformat(str(stamp))
    except ValueError:
        return 0.0
    return moment.timestamp() if moment.year >= 1970 else 0.0


def is_called(container: Container, name: str) -> bool:
    """Whether that is its name or its id, long or short; a prefix is not enough."""
    return name in (container.name, container.id, container.id[:12])


def is_miles(found: FoundContainer) -> bool:
    """Whether its image, command or environment speaks of Miles, slime or the demo."""
    return speaks_of_miles((found.container.image, *found.argv, *found.environment))


def speaks_of_miles(words: Iterable[str]) -> bool:
    """Whether any of the words does."""
    return any(_MILES.search(word) for word in words)


def was_told_to_end(events: str) -> bool:
    """Whether one of its events is a signal that ends it, sent through the engine."""
    for line in events.splitlines():
        try:
            event = json.loads(line)
            signal = event["Actor"]["Attributes"]["signal"]
            if event["Action"] == "kill" and signal in _ENDING_SIGNALS:
                return True
        except (ValueError, KeyError, TypeError):
            continue
    return False


def last_exit(events: str) -> LastExit | None:
    """The end of a container in a list of its events, one JSON object a line."""
    oom_killed, died = False, None
    for line in events.splitlines():
        try:
            event = json.loads(line)
            oom_killed = oom_killed or event["Action"] == "oom"
            if event["Action"] == "die":
                died = (int(event["Actor"]["Attributes"]["exitCode"]), event["timeNano"] / 1e9)
        except (ValueError, KeyError, TypeError):
            continue
    return died and LastExit(exit_code=died[0], oom_killed=oom_killed, at=died[1])
