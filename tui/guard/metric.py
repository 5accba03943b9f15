"""What a metric is, and the samples that many of them have in common. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import Enum

from tui.model.snapshot import Snapshot

Labels = Mapping[str, str]
Sample = tuple[Labels, float | None]
"""None: it is not known."""
Samples = Callable[[Snapshot], Iterable[Sample]]


@dataclass(frozen=True, slots=True)
class Metric:
    """One family of series."""

    name: str
    """Without the prefix."""
    meaning: str
    samples: Samples

    @property
    def kind(self) -> str:
        return "counter" if self.name.endswith("_total") else "gauge"


def one(value: Callable[[Snapshot], float | None]) -> Samples:
    """A single series."""
    return lambda snapshot: (({}, value(snapshot)),)


def states(current: Enum, labels: Labels | None = None) -> Iterator[Sample]:
    """A series for each state there is; the current one is 1."""
    for state in type(current):
        yield {**(labels or {}), "state": str(state.value)}, float(state is current)
