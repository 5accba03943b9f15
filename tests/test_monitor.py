"""The loop: probes on threads of their own, one fold, and an exit that waits for nobody."""

from __future__ import annotations

import threading
import time
import types
from collections.abc import Callable, Sequence
from dataclasses import replace

import pytest

import tui.monitor as monitor_module
from tui.model.events import Event, MemoryRead, VerifyTold
from tui.model.memory import Memory
from tui.model.reading import Known, known
from tui.model.snapshot import Snapshot
from tui.monitor import Monitor

DEADLINE_S = 60.0


class Probe:
    """A probe that answers what it is told to."""

    def __init__(
        self,
        read: Callable[[float], Sequence[Event]],
        name: str = "memory",
        deadline_s: float = 5.0,
    ) -> None:
        self.name = name
        self.cadence_s = 0.02
        self.deadline_s = deadline_s
        self._read = read
        self.closed = threading.Event()
        self.reads = 0

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        self.reads += 1
        return self._read(now)

    def close(self) -> None:
        self.closed.set()


def memory_of(now: float) -> Sequence[Event]:
    memory = Memory(total_bytes=100, available_bytes=50, free_bytes=1, cached_bytes=1)
    return (MemoryRead(at=now, memory=known(memory, now)),)


def hang(now: float) -> Sequence[Event]:
    threading.Event().wait()
    return ()


def fail(now: float) -> Sequence[Event]:
    raise RuntimeError("broken on purpose")


def watched(*probes: Probe, until: Callable[[Snapshot], bool]) -> tuple[Monitor, Snapshot]:
    monitor = Monitor(probes, Snapshot(), interval_s=0.02)
    found: list[Snapshot] = []
    seen = threading.Event()

    def publish(snapshot: Snapshot) -> None:
        if not seen.is_set() and until(snapshot):
            found.append(snapshot)
            seen.set()

    monitor.start(publish)
    assert seen.wait(DEADLINE_S), "the condition did not come true"
    return monitor, found[0]


def test_a_probe_that_hangs_holds_up_nobody_and_is_told() -> None:
    hung, well = Probe(hang, "nvml", deadline_s=0.05), Probe(memory_of)
    monitor, snapshot = watched(
        hung, well, until=lambda seen: "nvml" in seen.missed and isinstance(seen.memory, Known)
    )
    before = well.reads
    monitor.stop()

    assert snapshot.missed["nvml"].reason.startswith("no answer for")
    assert before > 0
    assert hung.closed.wait(DEADLINE_S)


def test_a_probe_with_a_bug_is_told_and_asked_again() -> None:
    broken = Probe(fail, "gpu")
    monitor, snapshot = watched(
        broken, Probe(memory_of), until=lambda seen: "gpu" in seen.missed and broken.reads > 2
    )
    monitor.stop()

    assert snapshot.missed["gpu"].reason == "RuntimeError: broken on purpose"


def test_a_probe_that_comes_back_is_missed_no_more() -> None:
    gate = threading.Event()

    def slow(now: float) -> Sequence[Event]:
        gate.wait()
        return memory_of(now)

    monitor, _ = watched(Probe(slow, deadline_s=0.02), until=lambda seen: "memory" in seen.missed)
    gate.set()
    end = time.monotonic() + DEADLINE_S
    while "memory" in monitor.latest.missed and time.monotonic() < end:
        time.sleep(0.01)
    monitor.stop()

    assert "memory" not in monitor.latest.missed


def test_once_asks_every_probe_again_after_the_log_was_read() -> None:
    log, late = Probe(lambda now: (), "log"), Probe(memory_of)
    log.cadence_s = late.cadence_s = 3600.0
    snapshot = Monitor((log, late), Snapshot()).once(deadline_s=DEADLINE_S)

    assert late.reads == 2
    assert isinstance(snapshot.memory, Known)


def test_once_gives_up_on_what_hangs() -> None:
    snapshot = Monitor((Probe(hang, "nvml"), Probe(memory_of)), Snapshot()).once(deadline_s=0.3)

    assert isinstance(snapshot.memory, Known)


def test_after_a_pause_everything_is_read_before_it_is_judged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Stopped by ctrl+z, or with the lid closed: what was known is no news of now."""
    shift = 0.0
    clock = types.SimpleNamespace(time=lambda: time.time() + shift, monotonic=time.monotonic)
    monkeypatch.setattr(monitor_module, "time", clock)
    seldom = Probe(memory_of)
    seldom.cadence_s = 3600.0
    published: list[Snapshot] = []
    monitor = Monitor([seldom], Snapshot(), interval_s=0.02)
    monitor.start(published.append)
    until(lambda: bool(published) and isinstance(published[-1].memory, Known))
    shift = 1000.0
    later = time.time() + 500.0
    until(lambda: published[-1].now > later)
    monitor.stop()
    memory = next(each for each in published if each.now > later).memory
    assert isinstance(memory, Known)
    assert memory.at > later


@pytest.mark.parametrize("by_s", [3600.0, -3600.0])
def test_a_clock_that_is_set_takes_what_was_noted_along(
    monkeypatch: pytest.MonkeyPatch, by_s: float
) -> None:
    shift = 0.0
    clock = types.SimpleNamespace(time=lambda: time.time() + shift, monotonic=time.monotonic)
    monkeypatch.setattr(monitor_module, "time", clock)
    published: list[Snapshot] = []
    at = time.time()
    story = replace(Snapshot().story, last_line_at=at)
    monitor = Monitor([Probe(memory_of)], Snapshot(now=at, story=story), interval_s=0.02)
    monitor.start(published.append)
    until(lambda: bool(published))
    shift = by_s
    until(lambda: abs(published[-1].now - (time.time() + by_s)) < 60.0)
    monitor.stop()
    told = published[-1]

    assert told.story.last_line_at == pytest.approx(at + by_s, abs=1.0)
    assert all(each.now <= time.time() + max(0.0, by_s) for each in published)


def test_a_fault_that_a_probe_tells_of_is_over_with_its_next_answer() -> None:
    answers = iter((fail, fail))
    shaky = Probe(lambda now: next(answers, memory_of)(now))
    monitor, _ = watched(shaky, until=lambda seen: "memory" in seen.missed)
    until(lambda: "memory" not in monitor.latest.missed)
    monitor.stop()
    assert isinstance(monitor.latest.memory, Known)


def until(condition: Callable[[], bool]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "never came true"
        time.sleep(0.005)


class Looker(Probe):
    """Remembers for each read whether a verify was under way."""

    def __init__(self) -> None:
        super().__init__(memory_of)
        self.saw: list[bool] = []
        self.saw_one = threading.Event()

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        self.saw.append(seen.verifying is not None)
        if seen.verifying is not None:
            self.saw_one.set()
        return super().read(now, seen)


class Verifier(Probe):
    """Tells that a verify ended, once somebody else has seen that it is under way."""

    def __init__(self, looker: Looker) -> None:
        super().__init__(memory_of)
        self.looker = looker

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        self.reads += 1
        if seen.verifying is None or not self.looker.saw_one.wait(DEADLINE_S):
            return ()
        return (VerifyTold(at=now, asked_at=seen.verifying.asked_at, verifying=None),)


def test_a_verify_begins_at_once_and_its_end_has_everything_read_again() -> None:
    looker = Looker()
    verifier = Verifier(looker)
    verifier.cadence_s = looker.cadence_s = 3600.0
    monitor = Monitor([verifier, looker], Snapshot(), interval_s=0.02)
    monitor.start(lambda _: None)
    until(lambda: verifier.reads == looker.reads == 1)
    monitor.verify("/ckpt/iter_0000004")
    until(looker.saw_one.is_set)
    until(lambda: not looker.saw[-1])
    monitor.stop()
