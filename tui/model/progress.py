"""The story of a run as its log tells it: rollouts, phases, metrics, saves, loads, ends."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tui.model.launch import LaunchArgs
from tui.model.series import Durations, Series


class LineKind(StrEnum):
    """What a log line is, for filters and colour."""

    PLAIN = "plain"
    METRIC = "metric"
    PHASE = "phase"
    BAR = "bar"
    CHECKPOINT = "checkpoint"
    ENGINE = "engine"
    HTTP = "http"
    WARNING = "warning"
    ERROR = "error"
    MARK = "mark"
    """Ours, not the run's: the log was truncated here, rotated here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogLine:
    """One line for the log pane. Text is already harmless: no escape, no control character."""

    at: float
    source: str
    """Short name of the process: trainer, rollout, engine 4100, driver."""
    text: str
    kind: LineKind = LineKind.PLAIN
    repeated: int = 0
    """How often the same line came again, by Ray's count or ours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseClock:
    """The phase the rollout is in now."""

    name: str
    since: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Bar:
    """A progress bar as last drawn."""

    name: str
    done: int
    total: int
    moved_at: float
    """When `done` last changed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Progress:
    """The last thing that was progress, and when."""

    at: float
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSpan:
    """How long one rollout took, from the end of training before it to the end of its own."""

    number: int
    seconds: float
    saved: bool
    evaluated: bool
    first: bool
    """First after a start: holds the warm-up, and is left out of medians."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveRecord:
    """One save as the log tells it."""

    iteration: int
    path: str
    started_at: float | None
    """None when the log has no line for the start (FSDP)."""
    saved_at: float | None
    """None while it is not said to be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadRecord:
    """What was said about one part of a checkpoint at start-up."""

    part: str
    result: str
    path: str
    iteration: int | None
    detail: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LogEngine:
    """One engine slot as the log tells it."""

    index: int
    is_numbered: bool = False
    """The index is Miles' own; otherwise it is the order in which processes were seen."""
    host: str = ""
    port: int = 0
    pid: int | None = None
    ready_at: float = 0.0
    killed_at: float = 0.0
    kill_detail: str = ""
    recovered_at: float = 0.0
    """A new engine took the slot; its weights are old until the next weight update."""
    worked_at: float = 0.0
    """Last batch line with real work."""
    unwell_at: float = 0.0
    throughputs: Durations = Durations()
    """Tokens per second of its decode lines; the first, a warm-up, is kept apart."""
    request_rates: Durations = Durations()
    """The same for one request of those that ran: few requests decode fast, and little in all."""
    slow_since: float = 0.0
    """First decode line of those that were all far below both; 0.0: the newest is not."""
    running: int = 0
    queued: int = 0
    token_usage_ratio: float = 0.0
    throughput_tokens_per_s: float = 0.0

    @property
    def url(self) -> str:
        """Where it listens, empty when the log did not say."""
        return f"http://{self.host}:{self.port}" if self.port else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class RetryStorm:
    """Generate requests that fail and are tried again, folded into one."""

    since: float
    at: float
    attempt: int
    """Highest attempt seen of the newest request."""
    limit: int
    url: str
    response: str
    count: int
    exhausted_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Clue:
    """A line that may tell why the run ended."""

    kind: str
    line: str
    source: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Ending:
    """What the log says about the end."""

    end: str
    detail: str
    at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class NonFinite:
    """The first metric that was nan or inf, and has not come back since."""

    key: str
    number: int
    at: float
    value: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DiskNotice:
    """Ray's standing warning about a disk, first and newest value."""

    path: str
    since: float
    at: float
    first_free_bytes: float
    free_bytes: float
    capacity_bytes: float
    count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Moment:
    """One entry of the short timeline."""

    at: float
    text: str
    level: str = "info"


@dataclass(frozen=True, slots=True, kw_only=True)
class Story:
    """All that the log has told. Folded from log events alone, so it can be folded again."""

    attempt: int = 0
    """Counts launches seen in this log; 0: none seen, we came late."""
    started_at: float | None = None
    """First stamp of this attempt."""
    job_id: str = ""
    launch: LaunchArgs = LaunchArgs()
    backend: str = ""
    """`fsdp` or `megatron` as the lines show it; empty when they do not."""
    is_slime: bool = False

    rollout: int | None = None
    """The rollout being worked on."""
    rollouts_done: int = 0
    """Rollouts whose training ended in this attempt."""
    first_rollout: int | None = None
    """First rollout of this attempt that was worked on."""
    first_step: int | None = None
    step: int | None = None
    """Newest optimiser step."""
    steps_seen: int = 0
    steps_per_rollout: int | None = None
    phase: PhaseClock | None = None
    open_timers: tuple[PhaseClock, ...] = ()
    bar: Bar | None = None
    progress: Progress | None = None
    last_line_at: float | None = None
    trained_at: float | None = None
    """End of training of the newest finished rollout."""
    training_rollout: int | None = None
    evaluated_since_train: bool = False
    saved_since_train: bool = False

    durations: Mapping[str, Durations] = field(default_factory=dict)
    """By phase."""
    spans: tuple[RolloutSpan, ...] = ()
    latest: Mapping[str, float] = field(default_factory=dict)
    """Newest value of every metric key."""
    series: Mapping[str, Series] = field(default_factory=dict)
    """By metric key, those worth a chart."""
    evals: tuple[tuple[str, float, int], ...] = ()
    """(data set, score, rollout) of the newest evaluation of each."""
    non_finite: NonFinite | None = None

    saves: tuple[SaveRecord, ...] = ()
    loads: tuple[LoadRecord, ...] = ()
    engines: tuple[LogEngine, ...] = ()
    router_url: str = ""
    checking: bool | None = None
    """Miles' health monitor is active; None: there is none, or it was not seen."""
    checking_since: float = 0.0
    first_wait_s: float | None = None
    retries: RetryStorm | None = None
    weights_updated_at: float = 0.0
    clues: tuple[Clue, ...] = ()
    ending: Ending | None = None
    disk_notice: DiskNotice | None = None
    memory_kills: int = 0
    batches_folded_at: float = 0.0
    """When Ray last folded batch lines: since then a missing line proves nothing."""
    timeline: tuple[Moment, ...] = ()
