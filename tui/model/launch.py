"""How the run was started, as far as its arguments say, and what we attached to."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.reading import NOT_ASKED, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class LaunchArgs:
    """The arguments of `train.py` that a monitor needs. None: not given on the command line."""

    argv: tuple[str, ...] = ()
    """Whole command with secrets masked."""
    script: str = ""
    """`train.py` or `train_async.py`, as given."""
    save: str | None = None
    load: str | None = None
    ref_load: str | None = None
    hf_checkpoint: str | None = None
    save_interval: int | None = None
    eval_interval: int | None = None
    num_rollout: int | None = None
    start_rollout_id: int | None = None
    save_trigger: str | None = None
    """Path of `--save-trigger-sentinel`."""
    rollout_batch_size: int | None = None
    samples_per_prompt: int | None = None
    global_batch_size: int | None = None
    steps_per_rollout: int | None = None
    """`--num-steps-per-rollout`."""
    backend: str = ""
    """`fsdp` or `megatron` where an argument says so."""
    colocate: bool = False
    fault_tolerance: bool = False
    async_save: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Found:
    """A value and where it came from, so that a person can judge it."""

    value: str
    source: str
    """Such as `--log`, `container run-a`, `log line "Router launched"`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """What this monitor watches. An empty tuple or None: nothing of that kind is known."""

    name: str = "run"
    log: Found | None = None
    checkpoints: Found | None = None
    engines: tuple[Found, ...] = ()
    container: Found | None = None
    driver_pid: Found | None = None
    job: Found | None = None
    """Submission id of the Ray job."""
    launch: LaunchArgs = LaunchArgs()
    read_only: bool = False
    demo: bool = False
    notes: tuple[str, ...] = ()
    """What was looked for and not found, or not readable, each with its remedy."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedRun:
    """One of the runs on this machine, to choose from."""

    handle: str
    """What `milepost RUN` takes for it."""
    attachment: Attachment
    state: str
    """What can be told without its log, such as `running` or `paused`."""
    started_at: float = 0.0
    """Epoch seconds, 0.0 when nothing says it."""
    log_written_at: float = 0.0
    found_by: tuple[str, ...] = ()
    """Each thing that was seen of it, such as `container run-a` and `driver, process 4242`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The run's container as the Docker engine tells it."""

    id: str
    name: str
    image: str
    status: str
    """Docker's word: created, running, paused, restarting, removing, exited, dead; or `gone`."""
    exit_code: int | None = None
    oom_killed: bool = False
    told_to_end: bool = False
    """Somebody stopped or killed it through the engine."""
    restart_count: int = 0
    auto_remove: bool = False
    started_at: float = 0.0
    finished_at: float = 0.0
    log_opts_tty: bool = False
    mounts: tuple[tuple[str, str], ...] = ()
    """(host path, container path) pairs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Process:
    """One process of the run."""

    pid: int
    started_at: float
    """Epoch seconds; with the pid an identity that cannot be reused."""
    role: str
    """driver, launcher, trainer, rollout manager, engine, scheduler, detokenizer, router, ray."""
    title: str = ""
    cpu_ratio: float = 0.0
    """Cores in use since the look before: 1.0 is one whole core."""
    rss_bytes: int = 0
    """Resident memory; GPU memory is not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessTree:
    """The run's processes at one moment."""

    processes: tuple[Process, ...] = ()
    driver_exited_at: float = 0.0
    """When a driver seen before was found gone, 0.0 while it lives."""
    driver_exit_code: Reading[int] = NOT_ASKED
    """Only a parent can know it."""


def host_path(path: str, mounts: tuple[tuple[str, str], ...]) -> str | None:
    """Where a container's path lies on the host; None: on no mount, it vanishes with the container.

    The longest mount point that holds the path wins, as it does in the container.
    """
    best: tuple[str, str] | None = None
    for source, target in mounts:
        point = target.rstrip("/") or "/"
        inside = path == point or path.startswith(point if point == "/" else point + "/")
        if inside and (best is None or len(point) > len(best[1])):
            best = (source, point)
    if best is None:
        return None
    source, point = best
    rest = path[len(point) :].lstrip("/")
    return f"{source.rstrip('/')}/{rest}" if rest else source


def container_path(path: str, mounts: tuple[tuple[str, str], ...]) -> str | None:
    """Where a path of the host lies in the container; None: on no mount of it."""
    for source, target in sorted(mounts, key=lambda mount: -len(mount[0])):
        inside = host_path(path, ((target, source),))
        if inside is not None and host_path(inside, mounts) == path:
            return inside
    return None
