"""Probes on their cadence, folded into snapshots, published. The one loop of milepost.

Each probe has a daemon thread of its own, so that no read holds up another, a key press or the
exit. One more thread folds what they find. Nothing here knows a screen.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from tui.model.events import (
    Attached,
    ClockStepped,
    Event,
    ProbeMissed,
    ProbeRecovered,
    TimePassed,
    VerifyAsked,
)
from tui.model.judge.words import span
from tui.model.launch import Attachment
from tui.model.reading import Absence, Unknown
from tui.model.reduce import reduce
from tui.model.snapshot import Snapshot
from tui.probes import Probe

_LOG = logging.getLogger("milepost")
_CLOSE_S = 0.3
_STOPPED_S = 5.0
"""No fold is later than that by itself: we were stopped, or the machine slept."""
_CATCH_UP_S = 3.0
_STEP_S = 1.0
"""A clock that is only kept in step moves by less between two folds."""

Publish = Callable[[Snapshot], None]


@dataclass(slots=True)
class _Runner:
    """One probe's thread, and what the folding thread may know of it."""

    probe: Probe
    busy_since: float | None = None
    """Monotonic start of the read that goes on now."""
    began: float = 0.0
    """Monotonic start of the newest finished read, 0.0 before the first."""
    wake: threading.Event = field(default_factory=threading.Event)
    """Set to have it read at once."""
    failed: bool = False
    """The newest finished read told of a fault instead of an answer."""
    was_missed: bool = False
    faults: set[str] = field(default_factory=set)
    """Faults whose traceback was recorded already."""


class Monitor:
    """Watches one run."""

    def __init__(
        self, probes: Sequence[Probe], first: Snapshot, *, interval_s: float = 1.0
    ) -> None:
        self._runners = tuple(_Runner(probe) for probe in probes)
        self._interval_s = interval_s
        self._queue: queue.SimpleQueue[Sequence[Event]] = queue.SimpleQueue()
        self._stopping = threading.Event()
        self._latest = first
        self._ahead_s = time.time() - time.monotonic()

    @property
    def latest(self) -> Snapshot:
        """The newest snapshot."""
        return self._latest

    def start(self, publish: Publish) -> None:
        """Begin. `publish` is called from one thread, once an interval; it must not block."""
        for runner in self._runners:
            self._spawn(f"probe-{runner.probe.name}", self._probe, runner)
        self._spawn("fold", self._fold, publish)

    def attach(self, attachment: Attachment) -> None:
        """Watch this from now on. Any thread; returns at once."""
        self._queue.put((Attached(at=time.time(), attachment=attachment),))

    def verify(self, path: str | None) -> None:
        """Verify this checkpoint in place of any before, or none any more. As `attach`."""
        self._queue.put((VerifyAsked(at=time.time(), path=path),))

    def stop(self) -> None:
        """Stop asking. Threads that hang are left behind; they are daemons."""
        self._stopping.set()
        self._wake()
        closers = [
            self._spawn(f"close-{runner.probe.name}", runner.probe.close)
            for runner in self._runners
        ]
        deadline = time.monotonic() + _CLOSE_S
        for closer in closers:
            closer.join(max(0.0, deadline - time.monotonic()))

    def once(self, *, deadline_s: float) -> Snapshot:
        """One settled reading: every source asked, or the deadline passed."""
        self.start(lambda _: None)
        end = time.monotonic() + deadline_s
        log = next((each for each in self._runners if each.probe.name == "log"), None)
        while log is not None and time.monotonic() < end and not self._has_read(log):
            self._stopping.wait(0.02)
        # What the log names (folder, engines, router) is asked for again, now that it is known.
        since = time.monotonic()
        self._wake()
        while time.monotonic() < end and not self._have_read_since(since):
            self._stopping.wait(0.02)
        self.stop()
        return reduce(self._latest, TimePassed(at=time.time()))

    def _has_read(self, log: _Runner) -> bool:
        return bool(log.began) and self._latest.log.history_ratio >= 1.0 and self._queue.empty()

    def _have_read_since(self, since: float) -> bool:
        return all(each.began >= since for each in self._runners) and self._queue.empty()

    def _wake(self) -> None:
        for runner in self._runners:
            runner.wake.set()

    def _spawn(
        self, name: str, target: Callable[..., None], *arguments: object
    ) -> threading.Thread:
        thread = threading.Thread(target=target, args=arguments, name=name, daemon=True)
        thread.start()
        return thread

    def _probe(self, runner: _Runner) -> None:
        while not self._stopping.is_set():
            begin = time.monotonic()
            runner.wake.clear()
            runner.busy_since = begin
            events = self._read(runner)
            runner.failed = any(isinstance(event, ProbeMissed) for event in events)
            self._queue.put(events)
            runner.busy_since = None
            runner.began = begin
            spent = time.monotonic() - begin
            runner.wake.wait(max(0.02, runner.probe.cadence_s - spent))

    def _read(self, runner: _Runner) -> Sequence[Event]:
        now = time.time()
        try:
            return runner.probe.read(now, self._latest)
        except Exception as fault:  # noqa: BLE001 - a probe with a bug must not stop the others
            told = f"{type(fault).__name__}: {fault}"
            if told not in runner.faults:
                runner.faults.add(told)
                _LOG.exception("probe %s failed", runner.probe.name)
            reason = Unknown(why=Absence.ERROR, reason=told, at=now)
            return (ProbeMissed(at=now, probe=runner.probe.name, fault=reason),)

    def _fold(self, publish: Publish) -> None:
        tick = time.monotonic()
        now = time.time()
        while not self._stopping.is_set():
            self._drain(tick)
            if time.time() - now > self._interval_s + _STOPPED_S:
                self._catch_up()
            now = time.time()
            self._keep_step()
            for event in (*self._missed(now), TimePassed(at=now)):
                self._latest = reduce(self._latest, event)
            publish(self._latest)
            tick = max(tick + self._interval_s, time.monotonic())

    def _catch_up(self) -> None:
        """Have everything read before it is judged: what is known is as old as our pause."""
        since = time.monotonic()
        self._wake()
        while not self._stopping.is_set() and not self._have_read_since(since):
            if time.monotonic() - since > _CATCH_UP_S:
                return
            self._drain(time.monotonic() + 0.02)

    def _drain(self, until: float) -> None:
        while True:
            left = until - time.monotonic()
            try:
                events = (
                    self._queue.get(timeout=max(0.0, left))
                    if left > 0
                    else self._queue.get_nowait()
                )
            except queue.Empty:
                return
            self._keep_step()
            before = self._latest
            for event in events:
                self._latest = reduce(self._latest, event)
            if _is_worth_a_look(before, self._latest):
                self._wake()
            if self._stopping.is_set():
                return

    def _keep_step(self) -> None:
        """Before anything is folded: whether the clock was set, by one that cannot be."""
        now = time.time()
        ahead_s = now - time.monotonic()
        by_s, self._ahead_s = ahead_s - self._ahead_s, ahead_s
        if abs(by_s) > _STEP_S:
            self._latest = reduce(self._latest, ClockStepped(at=now, by_s=by_s))

    def _missed(self, now: float) -> list[Event]:
        events: list[Event] = []
        for runner in self._runners:
            since = runner.busy_since
            late = since is not None and time.monotonic() - since > runner.probe.deadline_s
            if late and since is not None:
                reason = f"no answer for {span(time.monotonic() - since)}"
                fault = Unknown(why=Absence.TIMED_OUT, reason=reason, at=now)
                events.append(ProbeMissed(at=now, probe=runner.probe.name, fault=fault))
            elif runner.was_missed and not runner.failed:
                events.append(ProbeRecovered(at=now, probe=runner.probe.name))
            runner.was_missed = late or runner.failed
        return events


def _is_worth_a_look(before: Snapshot, after: Snapshot) -> bool:
    """Whether probes have something else to read: another log, a verify that begins or ended."""
    is_other_verify = _asked_at(before) != _asked_at(after)
    return before.attachment.log != after.attachment.log or is_other_verify


def _asked_at(snapshot: Snapshot) -> float | None:
    return None if snapshot.verifying is None else snapshot.verifying.asked_at
