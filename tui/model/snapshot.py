"""The state of everything at one instant. Only `tui.model.reduce` makes one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tui.model.action import ActionRecord
from tui.model.checkpoint import CheckpointTree, Verifying
from tui.model.engine import EngineTrack, EngineVerdict, RouterProbe
from tui.model.gpu import GpuReport
from tui.model.guard import GuardStatus
from tui.model.launch import Attachment, Container, ListedRun, ProcessTree
from tui.model.loss import Loss
from tui.model.memory import Disk, Memory
from tui.model.progress import LogLine, Story
from tui.model.reading import NOT_ASKED, Reading, Unknown
from tui.model.series import Series


class RunState(StrEnum):
    """What the run is doing, in one word."""

    UNKNOWN = "unknown"
    STARTING = "starting"
    RUNNING = "running"
    STALLED = "stalled"
    """Alive, no progress past the limit."""
    STOPPING = "stopping"
    FINISHED = "finished"
    """Ended by itself, well."""
    FAILED = "failed"
    """Ended badly."""
    CRASHED = "crashed"
    """Gone, exit unknown."""
    STOPPED = "stopped"
    """Ended by us."""


class Level(StrEnum):
    """How much an alert matters."""

    INFO = "info"
    WARNING = "warning"
    CRITICAL = "critical"
    """Act now."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Alert:
    """One reason for concern."""

    code: str
    """Stable: scripts and channels depend on it."""
    level: Level
    line: str
    """One line a tired person understands."""
    subject: str = ""
    """What it is about when there can be several: an engine, a device, an iteration."""
    evidence: tuple[str, ...] = ()
    advice: str = ""
    degrades: bool = True
    """A run with this alert is not running well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AlertRecord:
    """An alert over time: one that comes and goes is one record with a count."""

    alert: Alert
    first_at: float
    last_at: float
    """Last time it was true."""
    since: float
    """Start of the newest spell."""
    cleared_at: float | None = None
    """None while it is true."""
    count: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """Why the run ended, or that it is not known."""

    line: str
    kind: str
    """A `ClueKind`, or `unknown`."""
    evidence: tuple[str, ...] = ()


class Resume(StrEnum):
    """What the log proves about how this attempt began."""

    NOT_SEEN = "not seen"
    """The start is not in what was read."""
    FRESH = "fresh"
    """Started at rollout 0, and nothing asked for more."""
    PENDING = "pending"
    """Loading was seen, the first rollout not yet."""
    RESUMED = "resumed"
    """Weights, optimizer and number agree with the checkpoint."""
    SILENT_FRESH = "silent fresh start"
    """A resume was asked for and the run began at 0."""
    WRONG_NUMBER = "wrong number"
    """Weights loaded, but the first rollout is not the one the checkpoint implies."""
    INCOMPLETE = "incomplete"
    """Resumed with a part missing: optimizer, LR scheduler or data position."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeProof:
    """The proof, in one line and with its evidence."""

    outcome: Resume
    line: str
    checkpoint: str = ""
    first_rollout: int | None = None
    expected_rollout: int | None = None
    evidence: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkAtRisk:
    """What a crash now would cost."""

    seconds: float | None
    """Since the newest whole, resumable checkpoint; None when that cannot be told."""
    rollouts: int | None
    checkpoint: int | None
    """Its iteration; None: there is none, everything since the start would be lost."""
    limit_s: float
    line: str


class Loads(StrEnum):
    """What a restart would do with the save folder as it stands."""

    UNKNOWN = "cannot tell"
    CHECKPOINT = "a checkpoint"
    NOTHING = "nothing"
    """It would start fresh, or from a converted base model, without an error."""
    FAILS = "fails"
    """It would end with an error, or start fresh after one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WouldLoad:
    """What a restart would load."""

    loads: Loads
    line: str
    iteration: int | None = None
    best: int | None = None
    """The newest whole checkpoint that nothing speaks against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SaveAdvice:
    """How often to save, in rollouts, and the numbers it rests on."""

    rollout_s: float
    save_s: float
    between_failures_s: float
    is_between_given: bool
    """A person said it; otherwise it is a lower bound from the time without a failure."""
    most: int
    """Largest interval that keeps the work at risk within its limit."""
    low: int
    high: int
    """The band around the optimum."""
    waste_ratio: float | None
    """Share of time lost at today's interval; None when that is not known."""
    best_waste_ratio: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Forecast:
    """When the run will be done."""

    remaining_rollouts: int
    seconds: float
    usual_rollout_s: float
    basis: str
    """Which rollouts the estimate rests on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What the evidence adds up to."""

    state: RunState = RunState.UNKNOWN
    since: float = 0.0
    reason: str = ""
    """One line: why this state."""
    degraded: tuple[str, ...] = ()
    """Codes of the alerts that make it degraded; empty when it is not."""
    cause: Cause | None = None
    alerts: tuple[Alert, ...] = ()
    engines: tuple[EngineVerdict, ...] = ()
    resume: ResumeProof = ResumeProof(outcome=Resume.NOT_SEEN, line="the start was not seen")
    risk: WorkAtRisk | None = None
    forecast: Forecast | None = None
    would_load: WouldLoad = WouldLoad(loads=Loads.UNKNOWN, line="nothing was looked at")
    save_advice: SaveAdvice | None = None
    stall_limit_s: float | None = None
    """Silence that would be called a stall in this phase."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogStatus:
    """The log as a file."""

    path: str = ""
    size_bytes: int = 0
    written_at: float = 0.0
    read_at: float = 0.0
    history_ratio: float = 1.0
    fault: Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """Thresholds a user can set. Defaults: facts of GB10, rule 4, and the product's own."""

    work_at_risk_s: float = 3600.0
    memory_warn_bytes: int = 16 * 2**30
    memory_critical_bytes: int = 8 * 2**30
    memory_exhaust_s: float = 10.0
    """Critical when the present slope empties the pool within this time."""
    failure_interval_s: float | None = None
    """Mean time between failures as a person knows it; None: taken from the run itself."""
    stall_factor: float = 3.0
    """Times the phase's own 95th percentile."""
    stall_floor_s: float = 120.0
    engine_silent_s: float = 50.0
    """Open requests without a token seen for this long make an engine suspect. Its counters are
    looked at every ten seconds, so that it may hang since ten seconds more: told in a minute."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """Everything known at `now`."""

    now: float = 0.0
    """Epoch seconds; goes back only where the clock of the box is set back."""
    attachment: Attachment = Attachment()
    choices: tuple[ListedRun, ...] = ()
    """Several runs, one of which a person has to choose before there is one to watch."""
    limits: Limits = Limits()
    story: Story = Story()
    log: LogStatus = LogStatus()
    lines: tuple[LogLine, ...] = ()
    """Newest lines of the log, oldest first."""
    gpus: Reading[GpuReport] = NOT_ASKED
    memory: Reading[Memory] = NOT_ASKED
    disk: Reading[Disk] = NOT_ASKED
    engines: tuple[EngineTrack, ...] = ()
    router: RouterProbe | None = None
    checkpoints: Reading[CheckpointTree] = NOT_ASKED
    verifying: Verifying | None = None
    """The deep verify that a person asked for, until its result is among the checkpoints."""
    container: Reading[Container] = NOT_ASKED
    processes: Reading[ProcessTree] = NOT_ASKED
    loss: Loss | None = None
    """What was lost before we came, while nobody watched."""
    history: Mapping[str, Series] = field(default_factory=dict)
    """Sampled readings over time: `gpu0.utilisation_ratio`, `memory.available_bytes`, …"""
    missed: Mapping[str, Unknown] = field(default_factory=dict)
    """Probes that did not answer at their last try, by name."""
    verdict: Verdict = Verdict()
    alert_log: tuple[AlertRecord, ...] = ()
    """Newest first."""
    actions: tuple[ActionRecord, ...] = ()
    """What was done to this run, in the order it began."""
    action_holder: str = ""
    """Id of the action whose process is at work; empty: none is."""
    guard: GuardStatus | None = None
    """The newest guard of this run, whether it lives or not; None: there never was one."""
    live: bool = True
    """False for a copied or finished log: there is nothing to watch but the text."""
