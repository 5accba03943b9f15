"""Each state's glyph and role: a word always stands beside them, so that colour is never needed."""

from __future__ import annotations

from tui.model.checkpoint import CheckpointState
from tui.model.engine import EngineState
from tui.model.snapshot import Level, RunState
from tui.view import glyphs
from tui.view.rows import Role, Span

Sign = tuple[str, Role]

RUN: dict[RunState, Sign] = {
    RunState.UNKNOWN: (glyphs.UNKNOWN, Role.MUTED),
    RunState.STARTING: (glyphs.BUSY, Role.BUSY),
    RunState.RUNNING: (glyphs.OK, Role.GOOD),
    RunState.STALLED: (glyphs.BAD, Role.BAD),
    RunState.STOPPING: (glyphs.BUSY, Role.BUSY),
    RunState.FINISHED: (glyphs.OK, Role.GOOD),
    RunState.FAILED: (glyphs.BAD, Role.BAD),
    RunState.CRASHED: (glyphs.BAD, Role.BAD),
    RunState.STOPPED: (glyphs.PAUSED, Role.PAUSED),
}
ENGINE: dict[EngineState, Sign] = {
    EngineState.UNKNOWN: (glyphs.UNKNOWN, Role.MUTED),
    EngineState.STARTING: (glyphs.BUSY, Role.BUSY),
    EngineState.GENERATING: (glyphs.OK, Role.GOOD),
    EngineState.IDLE: (glyphs.OK, Role.GOOD),
    EngineState.BUSY: (glyphs.BUSY, Role.BUSY),
    EngineState.PAUSED: (glyphs.PAUSED, Role.PAUSED),
    EngineState.SUSPECT: (glyphs.WARNING, Role.WARNING),
    EngineState.DEAD: (glyphs.BAD, Role.BAD),
    EngineState.RECOVERED: (glyphs.BUSY, Role.BUSY),
    EngineState.NO_TRAFFIC: (glyphs.WARNING, Role.WARNING),
}
CHECKPOINT: dict[CheckpointState, Sign] = {
    CheckpointState.WHOLE: (glyphs.OK, Role.GOOD),
    CheckpointState.PARTIAL: (glyphs.WARNING, Role.WARNING),
    CheckpointState.SAVING: (glyphs.BUSY, Role.BUSY),
    CheckpointState.DAMAGED: (glyphs.BAD, Role.WARNING),
}
LEVEL: dict[Level, Sign] = {
    Level.INFO: (glyphs.DOT, Role.TEXT),
    Level.WARNING: (glyphs.WARNING, Role.WARNING),
    Level.CRITICAL: (glyphs.BAD, Role.BAD),
}
URGENCY = (Level.CRITICAL, Level.WARNING, Level.INFO)
"""Most urgent first."""
ENDED = frozenset({RunState.FINISHED, RunState.FAILED, RunState.CRASHED, RunState.STOPPED})
UNDER_WAY = frozenset({RunState.STARTING, RunState.RUNNING})
"""States in which nothing needs to be explained."""


def sign(of: Sign, word: str) -> Span:
    """Glyph and word."""
    return Span(f"{of[0]} {word}", of[1])
