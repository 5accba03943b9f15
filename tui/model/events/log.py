"""Facts that a line of the run's log states."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tui.model.events.base import Event
from tui.model.launch import LaunchArgs


class MetricKind(StrEnum):
    """Which of Miles' metric lines a record is."""

    STEP = "step"
    ROLLOUT = "rollout"
    PERF_ROLLOUT = "perf (rollout side)"
    PERF_TRAIN = "perf (trainer side)"
    EVAL = "eval"
    MULTI_TURN = "multi_turn"
    PASSRATE = "passrate"


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricsLogged(Event):
    """One metric line."""

    kind: MetricKind
    number: int
    """Step number for STEP, rollout number otherwise."""
    values: tuple[tuple[str, float], ...]
    """May hold nan and inf."""
    role: str = "actor"
    """`actor` or `critic`."""
    cell: int = 0
    """Trainer cell; only cell 0 makes the series."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseStarted(Event):
    """`Timer NAME start`."""

    phase: str
    role: str = "actor"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseEnded(Event):
    """`Timer NAME end`. Also printed when the phase failed."""

    phase: str
    elapsed_s: float
    role: str = "actor"


@dataclass(frozen=True, slots=True, kw_only=True)
class BarMoved(Event):
    """A progress bar was drawn."""

    name: str
    done: int
    total: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSubmitted(Event):
    """`ray job submit` was accepted: a new attempt begins."""

    job_id: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLaunched(Event):
    """The entrypoint's command line was printed."""

    job_id: str
    launch: LaunchArgs


class End(StrEnum):
    """How a run's own output says it ended."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    STOPPED = "stopped"
    DRIVER_ERROR = "driver error"
    """The driver's own traceback; it is ending."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(Event):
    """The log says that the run is over."""

    end: End
    detail: str = ""
    job_id: str = ""


class LoadPart(StrEnum):
    """What of a checkpoint was loaded."""

    MODEL = "model"
    OPTIMIZER = "optimizer"
    LR_SCHEDULER = "LR scheduler"
    DATA = "data source"
    ALL = "checkpoint"
    """Megatron loads all in one."""


class LoadResult(StrEnum):
    """How it went."""

    LOADED = "loaded"
    FAILED = "failed"
    SKIPPED = "skipped"
    """Not there; Miles went on without it."""
    STARTED = "started"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointLoad(Event):
    """A line about loading a checkpoint."""

    part: LoadPart
    result: LoadResult
    path: str
    iteration: int | None = None
    detail: str = ""


class SaveStage(StrEnum):
    """How far a save has come, by the log."""

    STARTED = "started"
    SCHEDULED = "scheduled"
    """Handed to an async writer: not durable."""
    SAVED = "saved"


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointSave(Event):
    """A line about saving a checkpoint."""

    stage: SaveStage
    iteration: int
    path: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineAddressed(Event):
    """`Ports for engine i`: where engine i listens."""

    index: int
    host: str
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterAddressed(Event):
    """`Router launched at`."""

    url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReady(Event):
    """`The server is fired up and ready to roll!` was printed."""

    pid: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineListening(Event):
    """`Uvicorn running on`: which process serves which port."""

    pid: int
    port: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineWorked(Event):
    """A Prefill or Decode batch line: tokens move in the engine of this pid."""

    pid: int
    running: int
    queued: int
    token_usage_ratio: float
    throughput_tokens_per_s: float
    probe_only: bool = False
    """A one-token prefill of a health check: no work."""
    repeated: int = 0
    """How many like lines of other engines Ray folded into this one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineUnwell(Event):
    """Miles' health monitor or SGLang itself says that an engine failed a check."""

    index: int | None
    pid: int | None
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKilled(Event):
    """The health monitor killed the engine in this slot."""

    index: int


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginesRecovered(Event):
    """Dead slots were filled with new engines; printed with 0 at every update."""

    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthChecking(Event):
    """The health monitor was resumed or paused, or waits first."""

    active: bool
    first_wait_s: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRetried(Event):
    """A generate request failed and will be tried again."""

    attempt: int
    limit: int
    url: str
    response: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RetriesExhausted(Event):
    """A generate request was given up."""

    url: str


class ClueKind(StrEnum):
    """What a line suggests about the cause of an end. Ordered from most to least telling."""

    QUOTA = "quota exceeded"
    DISK_FULL = "disk full"
    SEGFAULT = "segfault"
    GPU_MEMORY = "GPU out of memory"
    HOST_MEMORY = "killed for memory"
    THREAD_LIMIT = "thread limit"
    GPU_LOST = "GPU lost"
    BAD_ARGUMENTS = "bad arguments"
    STALE_RAY = "stale Ray address"
    PORT_TAKEN = "port taken"
    CHECKPOINT = "checkpoint cannot be read"
    CONVERTER = "wrong converter"
    RETRIES = "engines cannot be reached"
    PYTHON = "Python error"
    WORKER_DIED = "worker died"
    """A fact without a reason: what Ray adds are guesses."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClueFound(Event):
    """A line that may tell why the run ends."""

    kind: ClueKind
    line: str
    source: str = ""
    """The process that printed it, empty for the driver."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskWarned(Event):
    """Ray's raylet says that a disk is over 95 % full."""

    path: str
    free_bytes: float
    capacity_bytes: float


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryWarned(Event):
    """Ray killed workers because the node's memory ran out."""

    line: str
