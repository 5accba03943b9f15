"""The guard that watches a run when nobody looks, as it is seen from outside."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class GuardState(StrEnum):
    """Whether it watches."""

    ON = "on"
    SILENT = "silent"
    """Its process is there and has given no sign of life for too long: as good as dead."""
    DEAD = "dead"
    """Its process ended without a word: killed, or the box went down."""
    OFF = "off"
    """It ended in order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardStatus:
    """The newest guard of a run."""

    state: GuardState
    pid: int
    policy: str
    """What it may do, by the policy's name."""
    since: float
    """Epoch seconds of its start."""
    seen_at: float
    """Of its last sign of life."""
    words: str = ""
    """What it said last."""
    said_at: float = 0.0
    paused: str = ""
    """Who keeps it from acting: it goes on watching and telling. Empty: nobody does."""
    channels: tuple[str, ...] = ()
    """Whom it tells, secrets masked, with what is wrong with each."""

    @property
    def is_on(self) -> bool:
        return self.state is GuardState.ON
