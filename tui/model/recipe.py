"""How a run was started, complete enough to start it again."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import StrEnum


class RecipeKind(StrEnum):
    """What has to be done to start it again."""

    PROCESS = "process"
    """Run its command: a driver, a launcher, or the host's `docker run` client."""
    CONTAINER = "container"
    """Create a container like the one it was in: no client that started it is known."""
    JOB = "Ray job"
    """Submit its entrypoint: no client that submitted it is known."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounds:
    """What a process was given by its shell, and gets again: its children inherit it."""

    limits: tuple[tuple[str, int, int], ...]
    """As in `getrlimit`: name without `RLIMIT_`, soft and hard; -1: no limit."""
    umask: int
    nice: int
    oom_score_adj: int

    def soft(self, name: str) -> int | None:
        """The limit that counts; -1: none."""
        return next((soft for each, soft, _ in self.limits if each == name), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recipe:
    """The start of one run. Holds secrets: kept in files of mode 0600, and never shown whole."""

    kind: RecipeKind
    source: str
    """Where it comes from, such as `docker run client, process 4242`."""
    captured_at: float
    """Epoch seconds."""
    run_started_at: float = 0.0
    """Epoch seconds of the start it describes."""
    ours: bool = False
    """Milepost made that start itself: nothing that is seen of it can tell more."""
    pid: int = 0
    """Of the process that the command became; with `run_started_at` its identity."""
    container_id: str = ""
    """Of the container that lives as long as the run."""
    submission_id: str = ""
    """Of the run's Ray job."""
    argv: tuple[str, ...] = field(default=(), repr=False)
    """The command; of a container the one inside it."""
    environment: tuple[tuple[str, str], ...] | None = field(default=None, repr=False)
    """Of the command; None: it could not be read."""
    cwd: str = ""
    bounds: Bounds | None = None
    """Of the command on this host; None: it could not be read, and a start gives it milepost's."""
    log: str = ""
    """The host's file that it prints into; empty: none of its own."""
    container_spec: str = field(default="", repr=False)
    """What `docker inspect` told, as JSON; for `CONTAINER`."""
    is_client: bool = False
    """The command is a `docker` client: what it starts lives in a container."""
    container_name: str = ""
    """The name that its container is given, empty when Docker makes one up."""
    removes_container: bool = False
    """`--rm`: Docker removes the container when it ends."""
    entrypoint: str = field(default="", repr=False)
    """A job's command for the shell."""
    runtime_env: str = field(default="", repr=False)
    """A job's runtime environment, as JSON."""
    metadata: tuple[tuple[str, str], ...] = ()
    """A job's."""
    address: str = ""
    """URL of the dashboard that a job is submitted to."""
    mounts: tuple[tuple[str, str], ...] = ()
    """(host path, container path) pairs of its container."""
    missing: tuple[str, ...] = ()
    """What of it is not known, and what that means for a start."""
