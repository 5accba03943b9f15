"""Log lines and logs as Miles prints them, for tests."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock
from tui.model.events import Event
from tui.model.progress import LogLine, Story
from tui.model.story import told

DAY = "2026-11-29"
TRAINER = "\x1b[36m(FSDPTrainRayActor pid=200)\x1b[0m "
ROLLOUT = "\x1b[36m(RolloutManager pid=100)\x1b[0m "
ENGINE = "\x1b[36m(SGLangEngine pid=300)\x1b[0m "


def trainer(clock: str, message: str, file: str = "timer.py:31") -> str:
    """A line of the trainer's rank 0."""
    return f"{TRAINER}[{DAY} {clock}.000 actor_cell0_rank0] {file} - {message}"


def rollout(clock: str, message: str, file: str = "metrics.py:89") -> str:
    """A line of the rollout manager."""
    return f"{ROLLOUT}[{DAY} {clock}.000 rollout_manager] {file} - {message}"


def engine(clock: str, message: str, pid: int = 300) -> str:
    """A line of an SGLang engine."""
    return f"\x1b[36m(SGLangEngine pid={pid})\x1b[0m [{DAY} {clock}] {message}"


def step(clock: str, number: int, **values: str) -> str:
    """A step line; values by the key's last part, as they are printed."""
    given = {"loss": "0.01", "grad_norm": "0.9", **values}
    shown = ", ".join(f"'train/{key}': {value}" for key, value in given.items())
    return trainer(clock, f"step {number}: {{{shown}, 'train/step': {number}}}", "log_utils.py:542")


def parsed(lines: Iterable[str]) -> tuple[list[Event], list[LogLine]]:
    """Events and shown lines of a log that is judged by its own clock."""
    parser = LogParser(LogClock(live=False))
    events: list[Event] = []
    shown: list[LogLine] = []
    for line in lines:
        result = parser.feed(line)
        events += result.events
        if result.line is not None:
            shown.append(result.line)
    return events, shown


def story_of(lines: Iterable[str]) -> Story:
    """The story of a log."""
    story = Story()
    for event in parsed(lines)[0]:
        story = told(story, event)
    return story


def lines_of(path: Path) -> list[str]:
    """The physical lines of a captured log."""
    return path.read_bytes().decode("utf-8", "replace").split("\n")
