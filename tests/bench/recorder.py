"""What the black box costs: bytes of a day, CPU at its real cadence, reading it all back.

Usage: PYTHONPATH=tests python tests/bench/recorder.py [SECONDS]

CPU is measured at one look a second for SECONDS of real time, by default 60.
"""

from __future__ import annotations

import random
import resource
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice
from pathlib import Path

import fakes
from fake_box import NOW, engine_verdict, gpu, memory, report
from recorded import Look, box

from tui.guard.box import this_boot, this_moment
from tui.guard.past import past_of, records_in
from tui.guard.post_mortem import post_mortems_of
from tui.guard.recorder import Recorder
from tui.guard.sample import Moment
from tui.guard.tape import Tape
from tui.model.engine import EngineState
from tui.model.memory import GIB
from tui.model.progress import LineKind, LogLine, PhaseClock
from tui.model.reading import known
from tui.model.snapshot import Snapshot

DAY_S = 86_400
_PHASES = (
    ("generate", 240, 74.0),
    ("train_wait", 10, 74.0),
    ("actor_train", 90, 82.0),
    ("save", 15, 84.0),
    ("update_weights", 20, 79.0),
)
"""Of one rollout: seconds, and GiB of the pool in use."""


def published(seconds: int) -> Iterator[Look]:
    """A look a second at a GB10 at work, with rollouts of six minutes; the numbers jitter."""
    draw, plain = random.Random(7), fakes.running()
    lines: tuple[LogLine, ...] = ()
    second = rollout = 0
    while second < seconds:
        for phase, length_s, used in _PHASES:
            line = LogLine(
                at=NOW + second, source="trainer", text=f"Timer {phase} start", kind=LineKind.PHASE
            )
            metric = replace(line, text=f"step {rollout}: " + "'train/loss': 0.0123, " * 12)
            lines = (*lines[-400:], line, metric)
            for _ in range(length_s):
                second += 1
                left = 121.7 - used - draw.uniform(0.0, 0.8)
                yield _look(second, rollout, phase, left, draw, lines, plain)
        rollout += 1


def _look(
    second: int,
    rollout: int,
    phase: str,
    left: float,
    draw: random.Random,
    lines: tuple[LogLine, ...],
    plain: Snapshot,
) -> Look:
    at = NOW + second
    device = gpu(
        utilisation_ratio=known(draw.uniform(0.9, 1.0), at),
        power_w=known(draw.uniform(85.0, 97.0), at),
        temperature_c=known(draw.uniform(69.0, 75.0), at),
        sm_clock_mhz=known(draw.uniform(2200.0, 2405.0), at),
    )
    state = EngineState.GENERATING if phase == "generate" else EngineState.PAUSED
    engine = engine_verdict(state=state, throughput_tokens_per_s=draw.uniform(2000.0, 4000.0))
    story = replace(
        plain.story,
        phase=PhaseClock(name=phase, since=at),
        rollout=rollout,
        step=rollout,
        last_line_at=at - draw.uniform(0.0, 9.0),
    )
    snapshot = replace(
        plain,
        now=at,
        story=story,
        lines=lines,
        gpus=known(report(device), at),
        memory=known(memory(available_bytes=int(left * GIB)), at),
        log=replace(plain.log, size_bytes=plain.log.size_bytes + second * 1500),
        verdict=replace(plain.verdict, engines=(engine,)),
    )
    return Moment(at=at, uptime_s=90_000.0 + second), snapshot


def main(seconds: int) -> None:
    """Print it all."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        _day(folder / "usual", floor=False)
        _day(folder / "worst", floor=True)
        _reading(folder / "usual")
        _cpu(folder / "real", seconds)


def _day(folder: Path, *, floor: bool) -> None:
    tape = Tape(folder, box())
    spent = time.thread_time()
    for moment, snapshot in published(DAY_S):
        limits = replace(snapshot.limits, memory_critical_bytes=10**15 if floor else 8 * GIB)
        seen = memory(available_bytes=int(4 * GIB)) if floor else None
        given = replace(snapshot, limits=limits)
        tape.take([(moment, replace(given, memory=known(seen, NOW)) if seen else given)])
    spent = time.thread_time() - spent
    tape.end(Moment(at=NOW + DAY_S, uptime_s=90_000.0 + DAY_S))
    files = list((folder / "samples").glob("*.samples"))
    size = sum(file.stat().st_size for file in files)
    count = sum(1 for _ in records_in(folder))
    kind = "below the memory floor all day" if floor else "a day of six-minute rollouts"
    print(f"{kind}: {size / 1e6:.2f} MB, {count} records, {len(files)} files")
    print(f"  CPU to fold and write it, snapshots included: {spent / DAY_S:.2%} of a core")


def _reading(folder: Path) -> None:
    begin = time.process_time()
    kept = len(past_of(folder))
    took = time.process_time() - begin
    begin = time.process_time()
    found = post_mortems_of(folder, this_moment(), this_boot())
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"read a day back, thinned to {kept} samples: {took:.2f} s of CPU")
    print(f"post-mortem over it ({len(found)} found): {time.process_time() - begin:.2f} s")
    print(f"peak memory of this process {peak_mib:.0f} MiB")


def _cpu(folder: Path, seconds: int) -> None:
    recorder = Recorder(folder)
    recorder.start()
    thread = next(each for each in threading.enumerate() if each.name == "recorder")
    clock = time.pthread_getcpuclockid(thread.ident or 0)
    calls, begun = list[float](), time.clock_gettime(clock)
    for _, snapshot in islice(published(DAY_S), seconds):
        before = time.perf_counter()
        recorder.record(snapshot)
        calls.append(time.perf_counter() - before)
        time.sleep(1.0)
    spent = time.clock_gettime(clock) - begun
    recorder.close()
    print(f"at one look a second for {seconds} s: {spent / seconds:.3%} of a core")
    calls.sort()
    usual, longest = calls[len(calls) // 2], calls[-1]
    print(f"a call of `record`: median {usual * 1e6:.0f} µs, longest {longest * 1e6:.0f} µs")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 60)
