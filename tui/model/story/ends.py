"""How a run ends by its own words, and the lines that may tell why."""

from __future__ import annotations

from dataclasses import replace

from tui.model.events import ClueFound, ClueKind, DiskWarned, End, MemoryWarned, RunEnded
from tui.model.progress import Clue, DiskNotice, Ending, Story
from tui.model.story.moments import noted

_CLUES_LIMIT = 48


def run_ended(story: Story, event: RunEnded) -> Story:
    """The log says it is over. The job client's word outranks the driver's traceback."""
    old = story.ending
    if old is not None and event.end is End.DRIVER_ERROR:
        return story
    if old is not None and old.end == event.end.value:
        return replace(story, ending=replace(old, detail=event.detail or old.detail))
    if old is not None and old.end == End.DRIVER_ERROR.value:
        detail = old.detail if event.end is End.FAILED else event.detail
        story = replace(story, ending=Ending(end=event.end.value, detail=detail, at=event.at))
    else:
        story = replace(story, ending=Ending(end=event.end.value, detail=event.detail, at=event.at))
    level = "info" if event.end in (End.SUCCEEDED, End.STOPPED) else "critical"
    return noted(story, event.at, f"ended: {event.end.value}", level)


def clue_found(story: Story, event: ClueFound) -> Story:
    """A line that may tell why. The same line again is one clue."""
    clue = Clue(kind=event.kind.value, line=event.line, source=event.source, at=event.at)
    for old in story.clues:
        if old.kind == clue.kind and old.line == clue.line:
            return story
    if not any(old.kind == clue.kind for old in story.clues):
        level = "warning" if event.kind is ClueKind.PYTHON else "critical"
        story = noted(story, event.at, f"{clue.kind}: {clue.line[:160]}", level)
    return replace(story, clues=(*story.clues[-(_CLUES_LIMIT - 1) :], clue))


def disk_warned(story: Story, event: DiskWarned) -> Story:
    """Ray repeats this every ten seconds: one standing notice with its first and newest value."""
    old = story.disk_notice
    if old is None or old.path != event.path:
        notice = DiskNotice(
            path=event.path,
            since=event.at,
            at=event.at,
            first_free_bytes=event.free_bytes,
            free_bytes=event.free_bytes,
            capacity_bytes=event.capacity_bytes,
            count=1,
        )
        story = noted(story, event.at, f"Ray: {event.path} is over 95 % full", "warning")
        return replace(story, disk_notice=notice)
    newest = replace(old, at=event.at, free_bytes=event.free_bytes, count=old.count + 1)
    return replace(story, disk_notice=newest)


def memory_warned(story: Story, event: MemoryWarned) -> Story:
    """Ray's memory monitor killed workers."""
    story = noted(story, event.at, "Ray killed a worker for memory", "critical")
    return replace(story, memory_kills=story.memory_kills + 1)
