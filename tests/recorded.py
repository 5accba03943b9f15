"""A black box with a past: looks at a run at given moments, written as a recorder writes them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
from fake_box import NOW, container, memory

from tui.guard.records import Box
from tui.guard.sample import Moment, Sample, sample_of
from tui.guard.tape import Tape
from tui.model.memory import GIB
from tui.model.progress import PhaseClock
from tui.model.reading import known
from tui.model.snapshot import Snapshot

UPTIME_S = 90_000.0
Look = tuple[Moment, Snapshot]


def moment(after_s: float, *, asleep_s: float = 0.0) -> Moment:
    """So long after NOW, on a box that had been up for a day then."""
    return Moment(at=NOW + after_s, uptime_s=UPTIME_S + after_s, asleep_s=asleep_s)


def rebooted(after_s: float, *, up_s: float = 30.0) -> Moment:
    """So long after NOW, on a box that was started again a moment before."""
    return Moment(at=NOW + after_s, uptime_s=up_s)


def box(boot: str = "boot-a", **changes: Any) -> Box:
    plain = Box(
        boot_id=boot,
        kernel="6.17.0-1032-nvidia",
        machine="aarch64",
        host="spark",
        product="NVIDIA NVIDIA_DGX_Spark",
        bios="5.36_0ACUM018",
        driver="580.126.09",
    )
    return replace(plain, **changes)


def left(gib: float, snapshot: Snapshot | None = None) -> Snapshot:
    """A run on a box with so much memory left."""
    read = known(memory(available_bytes=int(gib * GIB)), NOW)
    return replace(snapshot or fakes.running(), memory=read)


def doing(phase: str, rollout: int, trained: int) -> Snapshot:
    """A run in that phase."""
    snapshot = fakes.running()
    story = replace(
        snapshot.story,
        phase=PhaseClock(name=phase, since=NOW),
        rollout=rollout,
        training_rollout=trained,
    )
    return replace(snapshot, story=story)


def ended(exit_code: int | None, *, oom_killed: bool = False, status: str = "exited") -> Snapshot:
    """The container is gone with that exit code, and the run with it."""
    gone = container(status=status, exit_code=exit_code, oom_killed=oom_killed)
    failed = fakes.failed()
    verdict = replace(failed.verdict, cause=None)
    return replace(failed, container=known(gone, NOW), verdict=verdict)


def every(
    interval_s: float, until_s: float, snapshot: Snapshot, *, from_s: float = 0.0
) -> Iterator[Look]:
    """The same look again and again."""
    for index in range(int((until_s - from_s) / interval_s) + 1):
        yield moment(from_s + index * interval_s), snapshot


def recorded(folder: Path, looks: Iterable[Look], *, boot: str = "boot-a", **options: int) -> Tape:
    """A tape after these looks, still held: `end` it, or leave it as a crash does."""
    tape = Tape(folder, box(boot), **options)
    for look in looks:
        tape.take((look,))
    return tape


def crashed(folder: Path, looks: Iterable[Look], *, boot: str = "boot-a") -> None:
    """What a recorder leaves behind whose end nobody saw."""
    recorded(folder, looks, boot=boot)._ring.release()


def samples(looks: Iterable[Look]) -> list[Sample]:
    """What would be kept if every look were due."""
    return [sample_of(snapshot, when) for when, snapshot in looks]
