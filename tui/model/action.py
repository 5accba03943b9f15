"""An action that was begun: what it is, how far it has come, what it came to."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum


class ActionKind(StrEnum):
    """What a person asks for."""

    SAVE = "save"
    STOP = "stop"
    RESUME = "resume"
    """Start again from the newest checkpoint, killing what still lives first."""
    ROLLBACK = "rollback"
    UNDO = "undo rollback"
    CONVERT = "convert"
    AUTOPSY = "autopsy"


class ActionState(StrEnum):
    """Where an action is."""

    OPEN = "open"
    """Begun and not ended: under way while its process lives, interrupted when not."""
    DONE = "done"
    FAILED = "failed"
    GIVEN_UP = "given up"


@dataclass(frozen=True, slots=True, kw_only=True)
class ActionRecord:
    """One action, added up."""

    id: str
    kind: ActionKind
    title: str
    state: ActionState
    began_at: float
    changed_at: float
    steps: tuple[str, ...] = ()
    done: tuple[str, ...] = ()
    """What each finished step came to, in order."""
    step: int | None = None
    """The one under way, or that failed."""
    step_began_at: float = 0.0
    line: str = ""
    """The newest word: progress while open, the outcome after."""
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def is_open(self) -> bool:
        return self.state is ActionState.OPEN
