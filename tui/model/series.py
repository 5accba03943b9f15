"""A bounded series of (x, y) points: what a chart draws."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

LIMIT = 720
LONG_STEP_S = 30.0
LONG_SPAN_S = LIMIT * LONG_STEP_S
"""Six hours, for who asks for more than the last minutes."""
LONG = "/long"
"""Behind the key of a series that is sampled at that step."""


@dataclass(frozen=True, slots=True)
class Series:
    """Points in order of arrival, the oldest dropped past `limit`."""

    points: tuple[tuple[float, float], ...] = ()
    """x is a step, a rollout or epoch seconds; y may be nan or inf."""
    limit: int = LIMIT

    def add(self, x: float, y: float) -> Series:
        """A series with one point more; it takes the place of points at or past its x."""
        kept = self.points
        while kept and kept[-1][0] >= x:
            kept = kept[:-1]
        return replace(self, points=(*kept[-(self.limit - 1) :], (x, y)))

    def joined(self, later: Series) -> Series:
        """With the points of another behind it; where both have a time, the other's count."""
        first = later.points[0][0] if later.points else math.inf
        own = tuple(point for point in self.points if point[0] < first)
        return replace(self, points=(*own, *later.points)[-self.limit :])

    def finite(self) -> tuple[tuple[float, float], ...]:
        """The points whose value can be drawn."""
        return tuple(point for point in self.points if math.isfinite(point[1]))

    def last(self) -> float | None:
        """The newest value, finite or not."""
        return self.points[-1][1] if self.points else None

    def since(self, x: float) -> tuple[tuple[float, float], ...]:
        """The points from x on."""
        return tuple(point for point in self.points if point[0] >= x)


@dataclass(frozen=True, slots=True)
class Durations:
    """How long something took, the newest last; the first of a run is kept apart as warm-up."""

    first_s: float | None = None
    rest_s: tuple[float, ...] = ()
    limit: int = 128

    def add(self, seconds: float) -> Durations:
        """With one duration more."""
        if self.first_s is None:
            return replace(self, first_s=seconds)
        return replace(self, rest_s=(*self.rest_s[-(self.limit - 1) :], seconds))

    @property
    def samples_s(self) -> tuple[float, ...]:
        """The durations to judge by: without the warm-up where there is anything else."""
        if self.rest_s:
            return self.rest_s
        return () if self.first_s is None else (self.first_s,)

    def median_s(self) -> float | None:
        """The usual duration, None before the first."""
        return quantile(self.samples_s, 0.5)

    def p95_s(self) -> float | None:
        """A long but normal duration, None before the first."""
        return quantile(self.samples_s, 0.95)


def quantile(samples: tuple[float, ...], share: float) -> float | None:
    """The sample at `share` of the sorted samples by nearest rank, None when there is none."""
    if not samples:
        return None
    ordered = sorted(samples)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(share * len(ordered)) - 1))]
