"""Where a record has a hole, or a run in it dies: what was before, and what came after. Pure.

A hole is told by the clock that cannot be set; whether the box or only its recorder was gone, by
the boot id, and without one by an uptime that begins again.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from enum import StrEnum

from tui.guard.records import Dropped, Ended, Record, Session, Words
from tui.guard.sample import Sample
from tui.model.series import quantile
from tui.model.snapshot import RunState

KEPT_S = 60.0
"""This much before a hole is looked at."""
HOLE_S = 15.0
_USUAL_FACTOR = 4.0
_SPACINGS = 16
_WORDS, _ROSTER = 12, 512
_SETTLED_S = 30.0
"""How a container ended is told a little after it is gone."""
_ALIVE = frozenset({RunState.STARTING, RunState.RUNNING, RunState.STALLED, RunState.STOPPING})
_BAD = frozenset({RunState.FAILED, RunState.CRASHED})


class IncidentKind(StrEnum):
    """What kind of hole, or of death."""

    BOX_DOWN = "box down"
    STOOD_STILL = "stood still"
    """The recorder lived and nothing was published: the box stood still, or we were stopped."""
    SLEPT = "slept"
    UNWATCHED = "unwatched"
    """The recorder was gone without a word; the box was not."""
    RUN_DIED = "run died"
    PROCESS_KILLED = "process killed"
    """Something in the container was killed for memory, and the container lives."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Incident:
    """One of these, with what was recorded around it."""

    kind: IncidentKind
    before: tuple[Sample, ...]
    """The last minute, oldest first; never empty."""
    session: Session | None
    """Who recorded that; None when the line that says so is damaged."""
    roster: tuple[tuple[int, str], ...] = ()
    """Pid and role of everything the run was seen to have since the box was started."""
    words: tuple[Words, ...] = ()
    after: Sample | None = None
    resumed: Session | None = None
    """Who records afterwards."""
    in_order: bool = False
    """The recorder before was ended in order."""


def incidents(records: Iterable[Record]) -> Iterator[Incident]:
    """All that happened, in the order in which it is certain."""
    scan = _Scan()
    for record in records:
        yield from scan.feed(record)
    yield from scan.settled()


class _Scan:
    """A record read from its beginning."""

    def __init__(self) -> None:
        self._session: Session | None = None
        self._before: deque[Sample] = deque()
        self._roster: dict[int, str] = {}
        self._words: deque[Words] = deque(maxlen=_WORDS)
        self._spacings: deque[float] = deque(maxlen=_SPACINGS)
        self._in_order = False
        self._follows = False
        """The next sample is of the same session as the last one, with none dropped between."""
        self._lives = False
        self._open: Incident | None = None
        """What may yet turn out to be more: how a container ended comes a little later."""

    def feed(self, record: Record) -> Iterator[Incident]:
        match record:
            case Sample():
                yield from self._sample(record)
            case Session():
                yield from self._begun(record)
            case Words():
                self._words.append(record)
            case Dropped():
                self._follows = False
            case Ended():
                self._in_order, self._follows = True, False

    def settled(self) -> Iterator[Incident]:
        """What was waited for comes no more."""
        if self._open is not None:
            yield self._open
            self._open = None

    def _begun(self, session: Session) -> Iterator[Incident]:
        before, last = self._session, self._before[-1] if self._before else None
        if before is None or session.name != before.name:
            self._follows = False
            self._spacings.clear()
            if last is not None and _is_other_boot(before, last, session):
                yield from self._down(resumed=session)
            elif last is not None and before is not None and not self._in_order:
                yield from self._unwatched(last, session)
            self._in_order = False
        self._session = session
        self._roster.update(session.roster)
        while len(self._roster) > _ROSTER:
            del self._roster[next(iter(self._roster))]

    def _unwatched(self, last: Sample, session: Session) -> Iterator[Incident]:
        if session.uptime_s - last.uptime_s > HOLE_S:
            yield self._incident(IncidentKind.UNWATCHED, resumed=session)

    def _sample(self, sample: Sample) -> Iterator[Incident]:
        if self._before and sample.uptime_s < self._before[-1].uptime_s - 1.0:
            yield from self._down(after=sample)
        if self._before:
            last = self._before[-1]
            yield from self._hole(last, sample)
            yield from self._deaths(last, sample)
        self._lives = self._lives or sample.doing.state in _ALIVE
        self._before.append(sample)
        while sample.uptime_s - self._before[0].uptime_s > KEPT_S:
            self._before.popleft()
        self._in_order, self._follows = False, True

    def _down(
        self, *, after: Sample | None = None, resumed: Session | None = None
    ) -> Iterator[Incident]:
        """The box was started again: of what was before, nothing goes on."""
        yield from self.settled()
        yield self._incident(IncidentKind.BOX_DOWN, after=after, resumed=resumed)
        self._session = None
        self._lives = self._in_order = self._follows = False
        for gone in (self._before, self._words, self._spacings, self._roster):
            gone.clear()

    def _hole(self, last: Sample, sample: Sample) -> Iterator[Incident]:
        spacing = sample.uptime_s - last.uptime_s
        if not self._follows:
            return
        usual = quantile(tuple(self._spacings), 0.5)
        self._spacings.append(spacing)
        if usual is None or spacing <= max(HOLE_S, _USUAL_FACTOR * usual):
            return
        asleep_s = sample.asleep_s - last.asleep_s
        slept = asleep_s > spacing / 2
        kind = IncidentKind.SLEPT if slept else IncidentKind.STOOD_STILL
        yield self._incident(kind, after=sample)

    def _deaths(self, last: Sample, sample: Sample) -> Iterator[Incident]:
        doing = sample.doing
        yield from self._waited(sample)
        if self._lives and doing.state in _BAD:
            self._lives = False
            begun = self._open or self._incident(IncidentKind.RUN_DIED)
            self._open = replace(begun, kind=IncidentKind.RUN_DIED, after=sample)
        elif doing.oom_killed and not last.doing.oom_killed and doing.exit_code is None:
            yield from self.settled()
            self._open = self._incident(IncidentKind.PROCESS_KILLED, after=sample)

    def _waited(self, sample: Sample) -> Iterator[Incident]:
        begun, doing = self._open, sample.doing
        if begun is None or begun.after is None:
            return
        if sample.uptime_s - begun.after.uptime_s > _SETTLED_S:
            yield from self.settled()
        elif begun.kind is not IncidentKind.RUN_DIED:
            return
        elif doing.state in _BAD and _tells_more(sample, begun.after):
            self._open = replace(begun, after=sample)
        elif doing.state in _ALIVE and begun.after.doing.exit_code is None:
            self._open = None  # it had not died, it could not be seen

    def _incident(
        self,
        kind: IncidentKind,
        *,
        after: Sample | None = None,
        resumed: Session | None = None,
    ) -> Incident:
        return Incident(
            kind=kind,
            before=tuple(self._before),
            session=self._session,
            roster=tuple(self._roster.items()),
            words=tuple(self._words),
            after=after,
            resumed=resumed,
            in_order=self._in_order,
        )


def _tells_more(sample: Sample, before: Sample) -> bool:
    doing, known = sample.doing, before.doing
    is_code_new = known.exit_code is None and doing.exit_code is not None
    return is_code_new or (not known.cause and bool(doing.cause))


def _is_other_boot(before: Session | None, last: Sample, session: Session) -> bool:
    if before is not None and before.box.boot_id and session.box.boot_id:
        return before.box.boot_id != session.box.boot_id
    return session.uptime_s < last.uptime_s - 1.0
