"""End a tree of processes: ask the one on top, wait, force the rest, then say what does not die.

What is to be done next is decided by `decided`, which touches nothing. Whatever was once seen of
the tree is still of it when its parent is gone, so nothing escapes by becoming an orphan meanwhile.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from enum import StrEnum

from tui.actions.process_table import read_row, stuck_in
from tui.actions.signals import Delivered, Delivery, send, tree_of
from tui.model.judge.words import counted
from tui.model.target import ProcessTarget

_LOOK_S = 0.1
_MOST_NAMED = 4

Identity = tuple[str, int, int]


@dataclass(frozen=True, slots=True, kw_only=True)
class Patience:
    """How long each stage is given."""

    grace_s: float = 30.0
    """For the one on top to end well, after it was asked."""
    linger_s: float = 3.0
    """For all else, once the one on top has ended."""
    kill_s: float = 15.0
    """For the kernel to end what was forced."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ask:
    """Ask these to end."""

    targets: tuple[ProcessTarget, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Force:
    """End these."""

    targets: tuple[ProcessTarget, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Look again soon."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Leave:
    """There is nothing more to do."""


Move = Ask | Force | Wait | Leave


@dataclass(frozen=True, slots=True, kw_only=True)
class Escalation:
    """How far it has come."""

    patience: Patience
    asked_at: float | None = None
    top_gone_at: float | None = None
    forced_at: float | None = None
    forced: frozenset[Identity] = frozenset()
    refusals: tuple[str, ...] = ()
    """Why a signal was not delivered."""


def decided(
    so_far: Escalation, top: ProcessTarget, alive: Sequence[ProcessTarget], now: float
) -> Move:
    """What to do next.

    Args:
        so_far: what was done.
        top: the one that is asked.
        alive: what lives of the tree.
        now: by the same clock as the times in `so_far`.
    """
    if not alive or so_far.refusals:
        return Leave()
    if so_far.asked_at is None:
        asked = tuple(each for each in alive if _identity(each) == _identity(top))
        return Ask(targets=asked or tuple(alive))
    if so_far.forced_at is None and now < _patient_until(so_far):
        return Wait()
    unforced = tuple(each for each in alive if _identity(each) not in so_far.forced)
    if unforced:
        return Force(targets=unforced)
    assert so_far.forced_at is not None  # what is alive was forced
    return Wait() if now < so_far.forced_at + so_far.patience.kill_s else Leave()


def _patient_until(so_far: Escalation) -> float:
    assert so_far.asked_at is not None
    until = so_far.asked_at + so_far.patience.grace_s
    if so_far.top_gone_at is None:
        return until
    return min(until, so_far.top_gone_at + so_far.patience.linger_s)


class Ended(StrEnum):
    """What became of the tree."""

    ALREADY_GONE = "already gone"
    ENDED = "ended when asked"
    FORCED = "was forced to end"
    SURVIVED = "does not die"
    REFUSED = "may not be ended"


@dataclass(frozen=True, slots=True, kw_only=True)
class Survivor:
    """A process that SIGKILL did not end."""

    target: ProcessTarget
    state: str
    waits_in: str
    """The kernel function that it is stuck in, empty where that is not told."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stopped:
    """The end of it."""

    ended: Ended
    line: str
    seconds: float
    members: tuple[ProcessTarget, ...]
    """All that was ever seen of the tree."""
    survivors: tuple[Survivor, ...] = ()

    @property
    def is_gone(self) -> bool:
        """Nothing of it lives."""
        return self.ended not in (Ended.SURVIVED, Ended.REFUSED)


Look = Callable[[Iterable[ProcessTarget]], tuple[ProcessTarget, ...]]
Send = Callable[[ProcessTarget, signal.Signals], Delivery]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What a stop needs of it."""

    look: Look = tree_of
    send: Send = send
    clock: Callable[[], float] = time.monotonic
    pause: Callable[[float], None] = time.sleep


@dataclass(slots=True, kw_only=True)
class _Stop:
    """One stop under way."""

    top: ProcessTarget
    world: World
    note: Callable[[str], None]
    so_far: Escalation
    members: dict[Identity, ProcessTarget] = field(default_factory=dict)

    def run(self) -> tuple[ProcessTarget, ...]:
        """Until there is nothing more to do; what lives then."""
        while True:
            alive = self._look()
            move = decided(self.so_far, self.top, alive, self.world.clock())
            match move:
                case Ask():
                    self._ask(move.targets)
                case Force():
                    self._force(move.targets)
                case Wait():
                    self.world.pause(_LOOK_S)
                case Leave():
                    return alive

    def _look(self) -> tuple[ProcessTarget, ...]:
        alive = self.world.look(self.members.values())
        self.members |= {_identity(each): each for each in alive}
        if self.so_far.top_gone_at is None and _identity(self.top) not in map(_identity, alive):
            self.so_far = replace(self.so_far, top_gone_at=self.world.clock())
        return alive

    def _ask(self, targets: tuple[ProcessTarget, ...]) -> None:
        self.note(f"asking {_named(targets)} to end (SIGTERM)")
        self._deliver(targets, signal.SIGTERM)
        self.so_far = replace(self.so_far, asked_at=self.world.clock())

    def _force(self, targets: tuple[ProcessTarget, ...]) -> None:
        self.note(f"forcing {_named(targets)} to end (SIGKILL)")
        self._deliver(targets, signal.SIGKILL)
        self.so_far = replace(
            self.so_far,
            forced_at=self.world.clock(),
            forced=self.so_far.forced | {*map(_identity, targets)},
        )

    def _deliver(self, targets: tuple[ProcessTarget, ...], number: signal.Signals) -> None:
        deliveries = [self.world.send(each, number) for each in targets]
        refusals = (each.reason for each in deliveries if each.result is Delivered.REFUSED)
        self.so_far = replace(self.so_far, refusals=(*self.so_far.refusals, *refusals))


def stop_tree(
    top: ProcessTarget,
    also: Iterable[ProcessTarget] = (),
    *,
    patience: Patience = Patience(),
    note: Callable[[str], None] = lambda _: None,
    world: World = World(),
) -> Stopped:
    """End a process and all that belongs to it.

    Args:
        top: the one that is asked to end, so that it can do so well.
        also: what is of the same run without being below it, or was seen to be by an attempt
            before this one.
        patience: how long each stage is given.
        note: told each move in one line, before it is made.
        world: what a test replaces.
    """
    stop = _Stop(
        top=top,
        world=world,
        note=note,
        so_far=Escalation(patience=patience),
        members={_identity(each): each for each in (top, *also)},
    )
    begun = world.clock()
    alive = stop.run()
    return _told(stop, alive, world.clock() - begun)


def _told(stop: _Stop, alive: tuple[ProcessTarget, ...], seconds: float) -> Stopped:
    so_far = stop.so_far
    survivors: tuple[Survivor, ...] = ()
    if alive and so_far.refusals:
        ended, line = Ended.REFUSED, so_far.refusals[0]
    elif alive:
        ended, survivors = Ended.SURVIVED, tuple(map(_survivor, alive))
        line = f"does not die: host action needed: {'; '.join(map(_words, survivors))}"
    elif so_far.asked_at is None:
        ended, line = Ended.ALREADY_GONE, "it was gone already"
    elif so_far.forced:
        ended = Ended.FORCED
        line = f"{counted(len(so_far.forced), 'process')} had to be forced to end"
    else:
        ended, line = Ended.ENDED, f"ended {seconds:.1f} s after it was asked"
    return Stopped(
        ended=ended,
        line=line,
        seconds=seconds,
        members=tuple(stop.members.values()),
        survivors=survivors,
    )


def _survivor(target: ProcessTarget) -> Survivor:
    row = read_row(target.pid)
    return Survivor(
        target=target, state=row.state if row is not None else "", waits_in=stuck_in(target.pid)
    )


def _words(survivor: Survivor) -> str:
    target = survivor.target
    where = f" in {survivor.waits_in}" if survivor.waits_in else ""
    return f"process {target.pid} {target.title}, state {survivor.state}{where}"


def _named(targets: Sequence[ProcessTarget]) -> str:
    named = ", ".join(f"{each.pid} {each.title}" for each in targets[:_MOST_NAMED])
    more = len(targets) - _MOST_NAMED
    return f"{named} and {more} more" if more > 0 else named


def _identity(target: ProcessTarget) -> Identity:
    """Without its title, which changes while a process lives."""
    return target.boot_id, target.pid, target.start_ticks
