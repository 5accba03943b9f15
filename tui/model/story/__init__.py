"""Fold log events into the story of a run. Pure: the same events give the same story."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from tui.model import events
from tui.model.progress import Story
from tui.model.story import checkpoints, ends, engines, launches, metrics, phases

Fold = Callable[[Story, Any], Story]
"""Each takes its own kind of event; the table pairs them."""

FOLDS: Mapping[type[events.Event], Fold] = {
    events.RunSubmitted: launches.run_submitted,
    events.RunLaunched: launches.run_launched,
    events.PhaseStarted: phases.phase_started,
    events.PhaseEnded: phases.phase_ended,
    events.BarMoved: phases.bar_moved,
    events.MetricsLogged: metrics.metrics_logged,
    events.CheckpointLoad: checkpoints.checkpoint_load,
    events.CheckpointSave: checkpoints.checkpoint_save,
    events.EngineAddressed: engines.engine_addressed,
    events.RouterAddressed: engines.router_addressed,
    events.EngineReady: engines.engine_ready,
    events.EngineListening: engines.engine_listening,
    events.EngineWorked: engines.engine_worked,
    events.EngineUnwell: engines.engine_unwell,
    events.EngineKilled: engines.engine_killed,
    events.EnginesRecovered: engines.engines_recovered,
    events.HealthChecking: engines.health_checking,
    events.RequestRetried: engines.request_retried,
    events.RetriesExhausted: engines.retries_exhausted,
    events.RunEnded: ends.run_ended,
    events.ClueFound: ends.clue_found,
    events.DiskWarned: ends.disk_warned,
    events.MemoryWarned: ends.memory_warned,
}


def told(story: Story, event: events.Event) -> Story:
    """The story with one log event more; events that are not of a log leave it as it is."""
    fold = FOLDS.get(type(event))
    if fold is None:
        return story
    story = fold(story, event)
    last = story.last_line_at
    if last is None or event.at > last:
        story = replace(story, last_line_at=event.at)
    return story if story.started_at is not None else replace(story, started_at=event.at)
