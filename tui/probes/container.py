"""The run's container, asked of the Docker engine.

With `--rm` a container is gone before anybody can read its exit code. So a container that was seen
and is not there any more is looked up once in the engine's memory of its newest events.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace

from tui.model.events import ContainerRead, Event, ProbeMissed
from tui.model.judge.words import span
from tui.model.launch import Container
from tui.model.reading import Absence, Known, Reading, Unknown, known
from tui.model.snapshot import Snapshot
from tui.runs.docker import DockerEngine
from tui.runs.docker_answers import GONE

_CLOCK_SLACK_S = 2.0
_GRACE_S = 60.0
"""So long before it ended it may have been asked to."""
_ENDED = frozenset({"exited", "dead", GONE})


class ContainerProbe:
    """Follows the container that the attachment names."""

    name = "container"
    cadence_s = 1.5
    deadline_s = 5.0

    def __init__(self, engine: DockerEngine | None = None) -> None:
        self._engine = engine or DockerEngine()
        self._asked_for = ""
        self._last: Known[Container] | None = None
        self._had_oom = False

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Ask once; nothing to tell when no container is watched."""
        found = seen.attachment.container
        if found is None:
            return ()
        if found.value != self._asked_for:
            self._asked_for, self._last, self._had_oom = found.value, None, False
        reading = self._engine.inspect(found.value, now)
        if isinstance(reading, Known) and reading.value.status == GONE:
            reading = self._gone(now)
        if isinstance(reading, Known):
            reading = self._last = self._with_who(self._with_ooms(reading))
            return (ContainerRead(at=now, container=reading),)
        fault = self._with_age(reading, now)
        return (
            ContainerRead(at=now, container=fault),
            ProbeMissed(at=now, probe=self.name, fault=fault),
        )

    def close(self) -> None:
        """Let the engine go."""
        self._engine.close()

    def _with_ooms(self, reading: Known[Container]) -> Known[Container]:
        """With the OOM flag up when a process in it was killed, although it lives on."""
        container = reading.value
        if container.status == "running" and not container.oom_killed and not self._had_oom:
            asked_at = self._last.at if self._last is not None else container.started_at
            since = asked_at - _CLOCK_SLACK_S
            self._had_oom = self._engine.had_oom(container.id, since, reading.at)
        return known(
            replace(container, oom_killed=container.oom_killed or self._had_oom), reading.at
        )

    def _with_who(self, reading: Known[Container]) -> Known[Container]:
        """With whether somebody told it to end, asked once, when it is first seen to have ended."""
        before, container = self._last, reading.value
        if container.status not in _ENDED or before is None:
            return reading
        told = before.value.told_to_end
        if before.value.status not in _ENDED:
            since = before.at - _GRACE_S
            told = self._engine.was_told_to_end(before.value.id, since, time.time())
        return known(replace(container, told_to_end=told), reading.at)

    def _with_age(self, fault: Unknown, now: float) -> Unknown:
        """With what was known last: how old that is."""
        if self._last is None:
            return fault
        seen = f"{self._last.value.status} {span(now - self._last.at)} ago"
        return replace(fault, reason=f"{fault.reason}; it was {seen}")

    def _gone(self, now: float) -> Reading[Container]:
        if self._last is None:
            return Unknown(
                why=Absence.MISSING, reason=f"there is no container {self._asked_for}", at=now
            )
        last = self._last.value
        if last.status == GONE:
            return known(last, now)
        since = self._last.at - _CLOCK_SLACK_S
        end = self._engine.last_exit(last.id, since=since, until=time.time())
        if end is None:
            return known(replace(last, status=GONE), now)
        return known(
            replace(
                last,
                status=GONE,
                exit_code=end.exit_code,
                oom_killed=last.oom_killed or end.oom_killed,
                finished_at=end.at,
            ),
            now,
        )
