"""Launches: a log can hold several attempts, one after the other."""

from __future__ import annotations

from dataclasses import replace

from tui.model.events import RunLaunched, RunSubmitted
from tui.model.progress import Story
from tui.model.story.moments import moved, noted


def run_submitted(story: Story, event: RunSubmitted) -> Story:
    """A job was accepted: all that belongs to the attempt before is over."""
    story = _next_attempt(story, event.job_id, event.at)
    return noted(moved(story, event.at, "submitted"), event.at, f"job {event.job_id} submitted")


def run_launched(story: Story, event: RunLaunched) -> Story:
    """The command line was printed."""
    if event.job_id != story.job_id or story.attempt == 0:
        story = _next_attempt(story, event.job_id, event.at)
    launch = event.launch
    story = replace(story, launch=launch, backend=launch.backend or story.backend)
    return moved(story, event.at, "launched")


def told_before(story: Story) -> Story:
    """What stays of a story when its next start is told by another log."""
    return replace(_next_attempt(story, "", 0.0), attempt=0, started_at=None)


def _next_attempt(story: Story, job_id: str, at: float) -> Story:
    return Story(
        attempt=story.attempt + 1,
        started_at=at,
        job_id=job_id,
        backend=story.backend,
        is_slime=story.is_slime,
        series=story.series,
        evals=story.evals,
        saves=story.saves,
        durations=story.durations,
        last_line_at=story.last_line_at,
        timeline=story.timeline,
    )
