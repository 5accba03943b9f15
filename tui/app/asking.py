"""What a key asks for, given what is known of the run and where the cursor is."""

from __future__ import annotations

from tui.model.action import ActionKind
from tui.model.plan import Ask
from tui.model.snapshot import RunState, Snapshot

_ALIVE = (RunState.STARTING, RunState.RUNNING, RunState.STALLED)


def ask_of(kind: ActionKind, iteration: int | None) -> Ask | str:
    """What to ask the desk for; a text says what is missing."""
    match kind:
        case ActionKind.ROLLBACK if iteration is None:
            return "Select the checkpoint to go back to first."
        case ActionKind.ROLLBACK | ActionKind.CONVERT:
            return Ask(kind=kind, iteration=iteration)
        case ActionKind.STOP:
            return Ask(kind=kind, save_first=False)
        case _:
            return Ask(kind=kind)


def speaks_against_resume(snapshot: Snapshot) -> str:
    """Why a run cannot just be started again; empty when it can."""
    if snapshot.verdict.state not in _ALIVE:
        return ""
    return f"{snapshot.attachment.name} is alive: this needs kill and resume."
