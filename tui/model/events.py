"""What happened, as frozen values. Every event carries when, in epoch seconds of our clock.

Two families: readings of a probe, and facts that a log line states. `tui.model.reduce` folds both.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tui.model.checkpoint import CheckpointTree
from tui.model.engine import EngineProbe, RouterProbe
from tui.model.gpu import GpuReport
from tui.model.launch import Attachment, Container, LaunchArgs, ProcessTree
from tui.model.memory import Disk, Memory
from tui.model.progress import LogLine, Story
from tui.model.reading import Reading, Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events."""

    at: float
    """Epoch seconds."""


# Readings of probes


class TimePassed(Event):
    """The clock moved; verdicts are judged anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached(Event):
    """What is watched was found, or found anew."""

    attachment: Attachment


@dataclass(frozen=True, slots=True, kw_only=True)
class GpusRead(Event):
    """The GPU reader answered, or did not."""

    report: Reading[GpuReport]


@dataclass(frozen=True, slots=True, kw_only=True)
class MemoryRead(Event):
    """The memory pool was read."""

    memory: Reading[Memory]


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskRead(Event):
    """The disk of the save path was looked at."""

    disk: Reading[Disk]


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginesProbed(Event):
    """All engines known were looked at."""

    engines: tuple[EngineProbe, ...]
    router: RouterProbe | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckpointsScanned(Event):
    """The save folder was scanned."""

    tree: Reading[CheckpointTree]


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRead(Event):
    """The Docker engine was asked about the container."""

    container: Reading[Container]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesRead(Event):
    """The process table was read."""

    tree: Reading[ProcessTree]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeMissed(Event):
    """A probe did not answer in time, or failed in a way it did not expect."""

    probe: str
    fault: Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRecovered(Event):
    """A probe that was missed answers again."""

    probe: str


# The log as a file


@dataclass(frozen=True, slots=True, kw_only=True)
class LogRead(Event):
    """The log was looked at, whether it grew or not."""

    path: str
    size_bytes: int
    written_at: float
    """Modification time of the file."""
    history_ratio: float = 1.0
    """Share of the history before our first read that is folded in."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogUnreadable(Event):
    """The log is not there, not permitted, or its filesystem does not answer."""

    path: str
    fault: Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class LogBroken(Event):
    """The byte stream was not continuous: truncated, replaced, rotated."""

    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRead(Event):
    """All that the log said before our first read, folded; replaces the story told so far."""

    story: Story


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesRead(Event):
    """Lines for the log pane, oldest first."""

    lines: tuple[LogLine, ...]


# Facts a log line states


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
