"""How short of memory the box was at the end of a row of samples. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tui.guard.sample import Sample
from tui.model.judge.words import gib, span

_APART_S = 0.9
"""Two samples that lie closer together tell no slope."""
_EXHAUSTED_SHARE = 0.03
_GONE_WITHIN_S = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Shortage:
    """What was left, and how fast it went."""

    left_bytes: int
    total_bytes: int
    fall_bytes_per_s: float
    """0.0 where it did not fall, or one sample is all there is."""

    @property
    def is_exhausted(self) -> bool:
        """There was nothing left to speak of."""
        return self.left_bytes <= _EXHAUSTED_SHARE * self.total_bytes

    @property
    def is_ending(self) -> bool:
        """There was nothing left, or would not have been in a moment."""
        return self.is_exhausted or self.left_bytes <= self.fall_bytes_per_s * _GONE_WITHIN_S

    @property
    def words(self) -> str:
        """`memory exhausted (0.4 GiB of 121.7 GiB left)`."""
        left = f"{gib(self.left_bytes)} of {gib(self.total_bytes)} left"
        if self.is_exhausted:
            return f"memory exhausted ({left})"
        if self.is_ending:
            gone_s = self.left_bytes / self.fall_bytes_per_s
            return f"memory running out ({left}, gone in {span(gone_s)} at that rate)"
        return f"memory not short ({left})"


def shortage(samples: Sequence[Sample]) -> Shortage | None:
    """Of the newest sample that knows its memory, None where none does."""
    known = [sample for sample in samples if sample.memory_available_bytes is not None]
    last = known[-1] if known else None
    if last is None or not last.memory_total_bytes:
        return None
    left = last.memory_available_bytes or 0
    fall = 0.0
    for sample in reversed(known):
        passed_s = last.uptime_s - sample.uptime_s
        if passed_s >= _APART_S:
            fall = ((sample.memory_available_bytes or 0) - left) / passed_s
            break
    return Shortage(
        left_bytes=left,
        total_bytes=last.memory_total_bytes,
        fall_bytes_per_s=max(0.0, fall),
    )
