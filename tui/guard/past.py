"""What was recorded, read back: for charts of the hours before, and for a post-mortem.

Whatever lies in the files, reading goes on behind it; and however much, little is held in memory.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from tui.guard.records import LINE_BYTES, Record, read
from tui.guard.ring import ring_files
from tui.guard.sample import Sample
from tui.guard.tape import SAMPLES
from tui.model.series import LIMIT, Series


def past_of(folder: Path, since: float = 0.0, *, most: int = LIMIT) -> tuple[Sample, ...]:
    """The samples of a run from `since` on, at most so many, spread over all that time.

    Args:
        folder: the run's state folder.
        since: epoch seconds.
        most: where there are more, of neighbours the one with less memory left stays.
    """
    thinned = _Thinned(most)
    for record in records_in(folder, since):
        if isinstance(record, Sample) and record.at >= since:
            thinned.add(record)
    return thinned.all()


def series_of(samples: Iterable[Sample]) -> Mapping[str, Series]:
    """The samples as a snapshot keeps its history: `gpu0.power_w`, `progress.rollout` and more."""
    points: dict[str, list[tuple[float, float]]] = {}
    for sample in samples:
        for key, value in _values(sample):
            series = points.setdefault(key, [])
            # The clock was set back: what comes later is what counts.
            while series and series[-1][0] >= sample.at:
                series.pop()
            series.append((sample.at, value))
    return {key: Series(points=tuple(series[-LIMIT:])) for key, series in points.items()}


def records_in(folder: Path, since: float = 0.0) -> Iterator[Record]:
    """Every whole record, oldest first; files last written before `since` are left out."""
    with suppress(OSError):
        for file in ring_files(folder / SAMPLES):
            yield from _records(file, since)


def _records(file: Path, since: float) -> Iterator[Record]:
    with suppress(OSError):
        number = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with open(number, "rb") as lines:  # noqa: PTH123 - a descriptor has no path
            status = os.fstat(number)
            if not stat.S_ISREG(status.st_mode) or status.st_mtime < since:
                return
            # A longer line is no record, and comes in pieces that are none either.
            while line := lines.readline(LINE_BYTES):
                record = read(line)
                if record is not None:
                    yield record


class _Thinned:
    """Samples of which neighbours become one as often as there are too many."""

    def __init__(self, most: int) -> None:
        self._samples: list[Sample] = []
        self._most = most
        self._stride = 1
        self._group: list[Sample] = []

    def add(self, sample: Sample) -> None:
        self._group.append(sample)
        if len(self._group) < self._stride:
            return
        self._samples.append(min(self._group, key=_left))
        self._group = []
        if len(self._samples) >= self._most:
            pairs = range(0, len(self._samples), 2)
            self._samples = [min(self._samples[i : i + 2], key=_left) for i in pairs]
            self._stride *= 2

    def all(self) -> tuple[Sample, ...]:
        return (*self._samples, *([min(self._group, key=_left)] if self._group else ()))


def _left(sample: Sample) -> float:
    return float("inf") if sample.memory_available_bytes is None else sample.memory_available_bytes


def _values(sample: Sample) -> Iterator[tuple[str, float]]:
    for index, gpu in enumerate(sample.gpus):
        yield from _known(f"gpu{index}.utilisation_ratio", gpu.utilisation_ratio)
        yield from _known(f"gpu{index}.power_w", gpu.power_w)
        yield from _known(f"gpu{index}.sm_clock_mhz", gpu.sm_clock_mhz)
        yield from _known(f"gpu{index}.temperature_c", gpu.temperature_c)
    yield from _known("memory.available_bytes", sample.memory_available_bytes)
    yield from _known("memory.swap_used_bytes", sample.swap_used_bytes)
    yield from _known("progress.rollout", sample.doing.rollout)
    yield from _known("progress.step", sample.doing.step)


def _known(key: str, value: float | None) -> Iterator[tuple[str, float]]:
    if value is not None:
        yield key, float(value)
