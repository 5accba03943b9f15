"""What was sighted, put together: a container, its client, its driver and a Ray job are one run.

Pure. Two sightings are of one run when an identity says so: a container's id, a pid, a submission
id, a name that was typed. Only where there is none, the same command at a fitting time counts.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tui.model.reading import Reading, Unknown, value_or
from tui.runs.docker_answers import FoundContainer, is_called, speaks_of_miles
from tui.runs.kinship import clients_of, drives, launched, launcher_groups, names, same, submitted
from tui.runs.process import RunProcess, RunProcesses
from tui.runs.ray_jobs import RayJob
from tui.runs.recipe_changes import original_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Sightings:
    """What one look at each source gave."""

    processes: RunProcesses
    containers: Reading[tuple[FoundContainer, ...]]
    """Of Miles, and those that a driver was seen in."""
    jobs: Reading[tuple[RayJob, ...]]


@dataclass(frozen=True, slots=True, kw_only=True)
class FoundRun:
    """One run, and all that was seen of it. At least one thing was."""

    driver: RunProcess | None = None
    launchers: tuple[RunProcess, ...] = ()
    """The outermost first."""
    container: FoundContainer | None = None
    client: RunProcess | None = None
    """The `docker` client that prints what its container prints."""
    job: RayJob | None = None
    is_here: bool = True
    """Its paths are as we see them: it is in no container, or in the one that we are in too."""
    hidden_by: str = ""
    """Why Docker could not tell of the container it is in."""
    is_idle: bool = False
    """A container of Miles in which nothing of a run can be seen, though one could see it."""

    @property
    def submission_id(self) -> str:
        """Of its Ray job, empty for a run that is none."""
        if self.job is not None:
            return self.job.submission_id
        return self.driver.submission_id if self.driver is not None else ""

    @property
    def started_at(self) -> float:
        """Epoch seconds, 0.0 when nothing says it."""
        for process in (self.driver, *self.launchers):
            if process is not None:
                return process.started_at
        if self.job is not None:
            return self.job.started_at
        if self.container is not None:
            return self.container.container.started_at
        return self.client.started_at if self.client is not None else 0.0

    def answers_to(self, name: str) -> bool:
        """Whether a person can mean this run by that name, pid, or id."""
        processes = (self.driver, self.client, *self.launchers)
        names = {str(process.pid) for process in processes if process is not None}
        names |= {self.submission_id, original_id(self.submission_id)}
        if self.client is not None and self.client.docker is not None:
            names.add(self.client.docker.container)
        if self.container is not None:
            compose = self.container.compose
            names |= {compose, compose.rpartition("/")[2]}
            if is_called(self.container.container, name):
                return True
        return name != "" and name in names


def merged(seen: Sightings, *, ended_job: str = "") -> tuple[FoundRun, ...]:
    """The runs that go on, the newest first; and the job of that submission id, ended or not."""
    merge = _Merge(seen, ended_job)
    runs = [
        *map(merge.of_driver, seen.processes.drivers),
        *map(merge.of_launchers, merge.launchers_left()),
        *map(merge.of_container, merge.containers_left()),
        *(FoundRun(job=job) for job in merge.jobs_left()),
        *map(merge.of_client, merge.clients_left()),
    ]
    return tuple(sorted(runs, key=lambda run: run.started_at, reverse=True))


class _Merge:
    """What is there, and what of it belongs to a run already."""

    def __init__(self, seen: Sightings, ended_job: str) -> None:
        self._seen = seen
        self._containers = value_or(seen.containers, ())
        self._jobs = [
            job
            for job in value_or(seen.jobs, ())
            if job.is_active or job.submission_id == ended_job
        ]
        self._clients = clients_of(self._containers, seen.processes.clients)
        self._groups = launcher_groups(seen.processes.launchers)
        self._used: set[int] = set()
        """`id()` of sightings that are part of a run."""

    def of_driver(self, driver: RunProcess) -> FoundRun:
        job = next((job for job in self._jobs if drives(driver, job)), None)
        launchers = next((group for group in self._groups if launched(group, driver, job)), ())
        container = self._container_of(driver)
        client = self._client_of(container)
        if client is None and container is None and driver.is_elsewhere:
            client = self._client_of_hidden(driver)
        return self._run(
            FoundRun(
                driver=driver, launchers=launchers, container=container, client=client, job=job
            )
        )

    def launchers_left(self) -> list[tuple[RunProcess, ...]]:
        return [group for group in self._groups if not self._is_used(*group)]

    def of_launchers(self, group: tuple[RunProcess, ...]) -> FoundRun:
        container = self._container_of(group[0])
        job = next(
            (job for job in self._jobs if not self._is_used(job) and submitted(group, job)), None
        )
        client = self._client_of(container)
        return self._run(FoundRun(launchers=group, container=container, client=client, job=job))

    def containers_left(self) -> list[FoundContainer]:
        return [each for each in self._containers if not self._is_used(each)]

    def of_container(self, container: FoundContainer) -> FoundRun:
        """With the one job that is left, where it can only run in there."""
        alone = len(self.containers_left()) == len(self.jobs_left()) == 1
        job = self.jobs_left()[0] if alone and container.shares_network else None
        seen_inside = self._counts_pids_alike and container.pid in self._seen.processes.pids
        return self._run(
            FoundRun(
                container=container,
                client=self._client_of(container),
                job=job,
                is_idle=seen_inside and job is None,
            )
        )

    def jobs_left(self) -> list[RayJob]:
        return [job for job in self._jobs if not self._is_used(job)]

    def clients_left(self) -> list[RunProcess]:
        """Clients whose container cannot be seen, or is still to come."""
        return [
            client
            for client in self._seen.processes.clients
            if client.docker is not None
            and client.docker.verb == "run"
            and client not in self._clients.values()
            and not self._is_used(client)
            and not any(names(client, each) for each in self._containers)
            and speaks_of_miles(client.argv)
        ]

    def of_client(self, client: RunProcess) -> FoundRun:
        return self._run(FoundRun(client=client))

    def _run(self, run: FoundRun) -> FoundRun:
        parts = (run.driver, run.container, run.client, run.job, *run.launchers)
        self._used |= {id(part) for part in parts if part is not None}
        is_here = self._is_here(run)
        fault = self._seen.containers
        hidden_by = fault.reason if isinstance(fault, Unknown) and not is_here else ""
        return replace(run, is_here=is_here, hidden_by=hidden_by)

    def _is_here(self, run: FoundRun) -> bool:
        if run.container is not None:
            return run.container.container.id == self._seen.processes.own_container
        if run.client is not None:
            return False
        inside = (run.driver, *run.launchers)
        return not any(process.is_elsewhere for process in inside if process is not None)

    def _is_used(self, *parts: object) -> bool:
        return any(id(part) in self._used for part in parts)

    @property
    def _counts_pids_alike(self) -> bool:
        """Docker and we know processes by the same pids, unless we are in a container ourselves."""
        return not self._seen.processes.own_container

    def _container_of(self, process: RunProcess) -> FoundContainer | None:
        beside_us = "" if process.is_elsewhere else self._seen.processes.own_container
        container_id = process.container_id or beside_us
        line = {process.pid, *process.ancestors} if self._counts_pids_alike else frozenset()
        for each in self._containers:
            if each.container.id == container_id or each.pid in line:
                return each
        return None

    def _client_of(self, container: FoundContainer | None) -> RunProcess | None:
        return self._clients.get(container.container.id) if container is not None else None

    def _client_of_hidden(self, driver: RunProcess) -> RunProcess | None:
        """Docker may not be asked: the client of the same command, or the only one there is."""
        left = self.clients_left()
        alike = [each for each in left if each.docker and same(each.docker.command, driver.argv)]
        hidden = [each for each in self._seen.processes.drivers if each.is_elsewhere]
        if alike:
            return alike[0]
        return left[0] if len(left) == len(hidden) == 1 else None
