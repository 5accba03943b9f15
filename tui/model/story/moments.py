"""Marks in a story that many folds set: progress made, a moment for the timeline."""

from __future__ import annotations

from dataclasses import replace

from tui.model.progress import Moment, Progress, Story

TIMELINE_LIMIT = 200


def moved(story: Story, at: float, what: str) -> Story:
    """With progress made at `at`; late lines never move it back."""
    if story.progress is not None and story.progress.at > at:
        return story
    return replace(story, progress=Progress(at=at, what=what))


def noted(story: Story, at: float, text: str, level: str = "info") -> Story:
    """With one moment more in the timeline."""
    moment = Moment(at=at, text=text, level=level)
    return replace(story, timeline=(*story.timeline[-(TIMELINE_LIMIT - 1) :], moment))
