"""The alarms over recorded history: which would have come, how late, and which were false.

A log is replayed by its own clock as if the run lived to its last line. An alarm that ends while
the same attempt goes on was false, or at least nothing that anybody had to do something about.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from tui.errors import NothingFoundError
from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock
from tui.model.events import LogRead, ProcessesRead, TimePassed
from tui.model.judge.words import counted, span
from tui.model.launch import Attachment, Found, Process, ProcessTree
from tui.model.reading import known
from tui.model.reduce import reduce
from tui.model.snapshot import Alert, Level, Limits, Snapshot
from tui.probes.log_bytes import FileFollower, decode
from tui.probes.log_tail import first_stamp

_TICK_S = 10.0
_COARSER = 0.05
"""Of a silence so far: the longer it is, the less a look more can tell."""
_FLICKER_S = 10.0
_ALL_BYTES = 1 << 62
_ENDS = "run-"
"""How the codes of a run that has ended begin: no alarm about one that lives."""

Report = Callable[[float], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Alarm:
    """One spell of one alert."""

    code: str
    level: Level
    line: str
    at: float
    """When it would have been told, by the log's clock."""
    lasted_s: float
    after_s: float | None
    """Time since the last progress when it was told; None before any."""
    went_away: bool
    """It ended while the same attempt went on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Backtest:
    """What was replayed, and what would have been told."""

    seconds: float
    """Of the logs' own time."""
    attempts: int
    alarms: tuple[Alarm, ...]


def backtest(
    logs: Sequence[Path],
    limits: Limits,
    report: Report = lambda _: None,
    *,
    most_bytes: int = _ALL_BYTES,
) -> Backtest:
    """Replay these logs, each on its own.

    Args:
        logs: the files.
        limits: the judge's.
        report: told the share that is done, from 0.0 to 1.0.
        most_bytes: of a longer log only so much of its end counts.

    Raises:
        NothingFoundError: one cannot be read.
    """
    replays = []
    for number, log in enumerate(logs):
        replay = _Replay(log, limits, most_bytes)
        for share in replay.run():
            report((number + share) / len(logs))
        replays.append(replay)
    return Backtest(
        seconds=sum(replay.seconds for replay in replays),
        attempts=sum(max(1, replay.snapshot.story.attempt) for replay in replays),
        alarms=tuple(alarm for replay in replays for alarm in replay.alarms),
    )


@dataclass(slots=True)
class _Spell:
    alert: Alert
    began_at: float
    last_at: float
    after_s: float | None
    attempt: int


@dataclass(slots=True)
class _Replay:
    """One log on its way through the judge."""

    log: Path
    limits: Limits
    most_bytes: int
    alarms: list[Alarm] = field(default_factory=list)
    snapshot: Snapshot = field(init=False)
    _open: dict[tuple[str, str], _Spell] = field(default_factory=dict)
    _first_at: float | None = None
    _ticked_at: float = 0.0

    def __post_init__(self) -> None:
        log = Found(value=str(self.log), source="recorded")
        driver = Found(value="1", source="recorded")
        attachment = Attachment(name=self.log.stem, log=log, driver_pid=driver)
        self.snapshot = Snapshot(limits=self.limits, attachment=attachment)

    @property
    def seconds(self) -> float:
        return self.snapshot.now - (self._first_at or self.snapshot.now)

    def run(self) -> Iterator[float]:
        """Replay it; the shares that are done."""
        follower = FileFollower(self.log)
        _, size = follower.open_at_end(self.most_bytes)
        parser = LogParser(LogClock(live=False))
        parser.clock.begin(first_stamp(follower, size))
        while True:
            read = follower.read()
            if read.fault is not None:
                raise NothingFoundError(read.fault.reason, "give the run's log file")
            for line in read.lines:
                self._line(parser, decode(line.content))
            if not read.is_behind:
                break
            yield min(1.0, read.lines[-1].offset / read.size_bytes) if read.lines else 1.0
        self._close_all()

    def _line(self, parser: LogParser, text: str) -> None:
        parsed = parser.feed(text)
        at = parser.clock.last_at
        if at is not None:
            self._until(at)
        for event in parsed.events:
            self.snapshot = reduce(self.snapshot, event)

    def _until(self, at: float) -> None:
        """Let the time pass up to there, and look now and then."""
        if self._first_at is None:
            self._first_at = self._ticked_at = at
        silent_since = self._ticked_at
        while True:
            step_s = max(_TICK_S, (self._ticked_at - silent_since) * _COARSER)
            if at - self._ticked_at < step_s:
                return
            self._ticked_at += step_s
            self._tick(self._ticked_at)

    def _tick(self, at: float) -> None:
        driver = Process(pid=1, started_at=0.0, role="driver")
        for event in (
            LogRead(at=at, path=str(self.log), size_bytes=1, written_at=at),
            ProcessesRead(at=at, tree=known(ProcessTree(processes=(driver,)), at)),
            TimePassed(at=at),
        ):
            self.snapshot = reduce(self.snapshot, event)
        self._note(at)

    def _note(self, at: float) -> None:
        story = self.snapshot.story
        for alert in self.snapshot.verdict.alerts:
            if alert.level is Level.INFO or alert.code.startswith(_ENDS):
                continue
            spell = self._open.get((alert.code, alert.subject))
            if spell is None:
                progress = story.progress
                after_s = at - progress.at if progress is not None else None
                spell = _Spell(alert, at, at, after_s, story.attempt)
                self._open[alert.code, alert.subject] = spell
            spell.alert, spell.last_at = alert, at
        for key, spell in list(self._open.items()):
            if at - spell.last_at > _FLICKER_S:
                self._close(key, went_away=story.attempt == spell.attempt)

    def _close_all(self) -> None:
        for key in list(self._open):
            self._close(key, went_away=False)

    def _close(self, key: tuple[str, str], *, went_away: bool) -> None:
        spell = self._open.pop(key)
        self.alarms.append(
            Alarm(
                code=spell.alert.code,
                level=spell.alert.level,
                line=spell.alert.line,
                at=spell.began_at,
                lasted_s=spell.last_at - spell.began_at,
                after_s=spell.after_s,
                went_away=went_away,
            )
        )


def by_code(alarms: Sequence[Alarm]) -> dict[str, tuple[Alarm, ...]]:
    """The alarms of each kind, those that stayed first."""
    kinds: dict[str, tuple[Alarm, ...]] = {}
    for alarm in sorted(alarms, key=lambda each: (each.went_away, each.at)):
        kinds[alarm.code] = (*kinds.get(alarm.code, ()), alarm)
    return kinds


def headline(result: Backtest) -> str:
    """All of it in one line."""
    false = sum(alarm.went_away for alarm in result.alarms)
    return (
        f"{span(result.seconds)} of its log, {counted(result.attempts, 'attempt')}: "
        f"{counted(len(result.alarms), 'alarm')}, {false} of them went away by themselves"
    )
