"""The run state with its reason: what the other judgements build on."""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.snapshot import RunState

ENDED = frozenset({RunState.FINISHED, RunState.FAILED, RunState.CRASHED, RunState.STOPPED})


@dataclass(frozen=True, slots=True, kw_only=True)
class Standing:
    """State, since when, and why."""

    state: RunState
    since: float
    reason: str
    stall_limit_s: float | None = None
    """Silence that would be called a stall now; None when that is not the question."""

    @property
    def has_ended(self) -> bool:
        """The run is over, one way or the other."""
        return self.state in ENDED
