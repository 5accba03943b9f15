"""What probes read: the box, the engines, the disk, and the log as a file."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tui.model.action import ActionRecord
from tui.model.checkpoint import CheckpointTree, Verifying
from tui.model.engine import EngineProbe, RouterProbe
from tui.model.events.base import Event
from tui.model.events.log import End
from tui.model.gpu import GpuReport
from tui.model.guard import GuardStatus
from tui.model.launch import Attachment, Container, ListedRun, ProcessTree
from tui.model.loss import Loss
from tui.model.memory import Disk, Memory
from tui.model.progress import LogLine, Story
from tui.model.reading import Reading, Unknown
from tui.model.series import Series


class TimePassed(Event):
    """The clock moved; verdicts are judged anew."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClockStepped(Event):
    """The clock of the box was set, or stood still with the box: `at` is what it says now."""

    by_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attached(Event):
    """What is watched was found, or found anew."""

    attachment: Attachment
    succeeds: bool = False
    """It is another start of the same run: what was read of the one before is over."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunsFound(Event):
    """Several runs were found, or none any more, while none is watched."""

    runs: tuple[ListedRun, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class JournalRead(Event):
    """What was done to the run, as its journal tells."""

    actions: tuple[ActionRecord, ...]
    holder: str = ""
    """The action whose process is at work."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardRead(Event):
    """It was looked whether a guard watches the run."""

    guard: GuardStatus | None


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
class VerifyAsked(Event):
    """A person wants a checkpoint verified, in place of any before."""

    path: str | None
    """None: what was asked for is not wanted any more."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifyTold(Event):
    """How far a verify is, or that it ended."""

    asked_at: float
    """Which one."""
    verifying: Verifying | None
    """None: it ended, and its result is in the ledger."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ContainerRead(Event):
    """The Docker engine was asked about the container."""

    container: Reading[Container]


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessesRead(Event):
    """The process table was read."""

    tree: Reading[ProcessTree]


@dataclass(frozen=True, slots=True, kw_only=True)
class JobEnded(Event):
    """Ray says that the run's job is over: its log need not, where nobody followed it."""

    submission_id: str
    end: End
    detail: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeMissed(Event):
    """A probe did not answer in time, or failed in a way it did not expect."""

    probe: str
    fault: Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class ProbeRecovered(Event):
    """A probe that was missed answers again."""

    probe: str


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
class HistoryRecalled(Event):
    """Readings that were recorded before we came."""

    short: Mapping[str, Series]
    """Of the last minutes, by the keys of the history."""
    long: Mapping[str, Series]
    """Of the last hours."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossFound(Event):
    """The record of the run tells that something was lost while nobody watched."""

    loss: Loss


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryRead(Event):
    """All that the log said before our first read, folded; replaces the story told so far."""

    story: Story


@dataclass(frozen=True, slots=True, kw_only=True)
class LinesRead(Event):
    """Lines for the log pane, oldest first."""

    lines: tuple[LogLine, ...]
