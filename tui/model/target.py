"""What an action is aimed at, with identities that cannot be reused."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTarget:
    """One process of this boot: its pid may be given to another, never with the same start."""

    pid: int
    start_ticks: int
    """Field 22 of `/proc/PID/stat`: clock ticks since the boot."""
    boot_id: str
    """`/proc/sys/kernel/random/boot_id`."""
    title: str = ""
    """Its command, secrets masked, for people."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerTarget:
    """One run of one container."""

    id: str
    """All 64 hex digits."""
    name: str
    started_at: float
    """Epoch seconds, as Docker tells it: the same container started again is another target."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTarget:
    """One job of a Ray cluster."""

    submission_id: str
    address: str
    """URL of the dashboard, such as `http://127.0.0.1:8265`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunTarget:
    """Everything of one run that can be told to stop; at least one thing is."""

    container: ContainerTarget | None = None
    job: JobTarget | None = None
    client: ProcessTarget | None = None
    """The `docker` client that prints what the container prints."""
    launchers: tuple[ProcessTarget, ...] = ()
    """The outermost first."""
    driver: ProcessTarget | None = None
    members: tuple[ProcessTarget, ...] = ()
    """Trainers, engines and what else is of this run alone. Not of the Ray cluster it runs on."""

    @property
    def processes(self) -> tuple[ProcessTarget, ...]:
        """All of its processes that are known, the driver first."""
        named = (self.driver, *self.launchers, self.client, *self.members)
        return tuple(each for each in named if each is not None)
