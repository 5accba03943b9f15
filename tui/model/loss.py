"""What was lost while nobody watched: the box went down, the run died, time stood still."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """One such time, as the record of the run tells it."""

    line: str
    from_at: float
    """Epoch seconds: last time that it was seen well."""
    until_at: float | None = None
    """First time that somebody looked again; None: not before us."""
    evidence: tuple[str, ...] = ()
