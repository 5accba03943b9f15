"""Saves and loads as the log tells them. The disk is looked at elsewhere."""

from __future__ import annotations

from dataclasses import replace

from tui.model.events import CheckpointLoad, CheckpointSave, LoadPart, LoadResult, SaveStage
from tui.model.progress import LoadRecord, SaveRecord, Story
from tui.model.story.moments import moved, noted
from tui.model.story.phases import SAVE, WAIT, entered, with_duration

_LIMIT = 64


def checkpoint_load(story: Story, event: CheckpointLoad) -> Story:
    """A part of a checkpoint was loaded, or was not."""
    record = LoadRecord(
        part=event.part.value,
        result=event.result.value,
        path=event.path,
        iteration=event.iteration,
        detail=event.detail,
        at=event.at,
    )
    others = tuple(load for load in story.loads if load.part != record.part)
    backend = "megatron" if event.part is LoadPart.ALL else story.backend or _backend(event)
    story = replace(story, loads=(*others, record)[-_LIMIT:], backend=backend)
    level = "critical" if event.result is LoadResult.FAILED else "info"
    text = f"{event.part.value} {event.result.value}: {event.path}"
    return noted(moved(story, event.at, text), event.at, text, level)


def _backend(event: CheckpointLoad) -> str:
    return "fsdp" if "[FSDP]" in event.detail else ""


def checkpoint_save(story: Story, event: CheckpointSave) -> Story:
    """A save began, was handed to an async writer, or is done."""
    match event.stage:
        case SaveStage.STARTED | SaveStage.SCHEDULED:
            record = SaveRecord(
                iteration=event.iteration, path=event.path, started_at=event.at, saved_at=None
            )
            story = replace(story, saves=_with(story, record), backend="megatron")
            story = moved(story, event.at, f"save of {event.iteration} {event.stage.value}")
            return entered(story, SAVE, event.at)
        case SaveStage.SAVED:
            return _saved(story, event)


def _saved(story: Story, event: CheckpointSave) -> Story:
    started = next(
        (
            save.started_at
            for save in story.saves
            if save.iteration == event.iteration and save.saved_at is None
        ),
        None,
    )
    if started is None and story.phase is not None and story.phase.name == SAVE:
        started = story.phase.since
    record = SaveRecord(
        iteration=event.iteration, path=event.path, started_at=started, saved_at=event.at
    )
    story = replace(story, saves=_with(story, record), saved_since_train=True)
    if started is not None:
        story = with_duration(story, SAVE, max(0.0, event.at - started))
    if story.phase is not None and story.phase.name == SAVE:
        story = entered(story, WAIT, event.at)
    text = f"checkpoint {event.iteration} saved"
    return noted(moved(story, event.at, text), event.at, text)


def _with(story: Story, record: SaveRecord) -> tuple[SaveRecord, ...]:
    others = tuple(save for save in story.saves if save.iteration != record.iteration)
    return (*others, record)[-_LIMIT:]
