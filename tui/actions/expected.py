"""What a start has to load: what the save folder says just before it.

Written down then, and not when somebody looks for the proof: by that time the run may have saved.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui.actions.context import Context
from tui.actions.moving import tracker_text, words_of
from tui.miles.layout import TRACKER_NAME
from tui.model.plan import ProveStart

_FACT = "tracker_at_start"


@dataclass(frozen=True, slots=True, kw_only=True)
class Expected:
    """What the save folder implied when the run was started."""

    tracker: str | None
    first_rollout: int | None


def note_tracker(context: Context) -> None:
    """Write down what the tracker says, unless it was before, where a proof is to follow."""
    for step in context.plan.steps:
        if isinstance(step, ProveStart) and _FACT not in context.facts:
            text = None
            with suppress(OSError):
                text = tracker_text(Path(step.save_folder) / TRACKER_NAME)
            context.note(f"the tracker says {words_of(text)}", **{_FACT: text or ""})


def expected(step: ProveStart, context: Context) -> Expected:
    """By the tracker then, which a save before the stop may have moved on since the plan."""
    note_tracker(context)
    noted = context.facts[_FACT]
    tracked, first = noted.strip(), step.first_rollout
    if tracked.isdecimal() and step.iteration is not None and first is not None:
        first += int(tracked) - step.iteration
    return Expected(tracker=noted or None, first_rollout=first)
