"""What was done to a run and said of it: entries as they are written, and what they add up to.

The journal is a file of one JSON object a line that is only ever appended to. A line that is torn
or not ours is skipped: the power may have failed in its middle. What is told by an `Entry` is
skipped by who looks for a `Remark`, and the other way round.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any, TypeVar

from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.codec import decoded, encoded
from tui.model.snapshot import Level

VERSION = 1
T = TypeVar("T")


class Mark(StrEnum):
    """What an entry says happened."""

    STARTED = "started"
    """The action's own process has begun, for the first time or again."""
    STEP_BEGUN = "step begun"
    NOTED = "noted"
    """Progress of the step under way."""
    STEP_DONE = "step done"
    STEP_FAILED = "step failed"
    ENDED = "ended"
    """Nothing more will be done."""
    GIVEN_UP = "given up"
    """A person closed it unfinished."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One line."""

    at: float
    """Epoch seconds."""
    action: str
    """Id of the plan."""
    kind: ActionKind
    mark: Mark
    title: str = ""
    """Of the action, at its start."""
    steps: tuple[str, ...] = ()
    """Names of all steps, at its start."""
    step: int | None = None
    """Which step, from 0."""
    line: str = ""
    """For people, secrets masked."""
    facts: Mapping[str, str] = field(default_factory=dict)
    """What a later step, or an undo, needs: the tracker's old text, the new container's id."""
    ok: bool = True
    """Of an end: it came to what was wanted."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Remark:
    """One line of the guard: an alert that it told of, or what it decided."""

    at: float
    """Epoch seconds."""
    code: str
    """Of the alert; the guard's own begin with `guard-`."""
    news: str
    """`began`, `worse`, `cleared`, or `said` of the guard's own words."""
    level: Level
    line: str
    subject: str = ""
    evidence: tuple[str, ...] = ()
    facts: Mapping[str, str] = field(default_factory=dict)
    """What the next guard has to know."""


def entry_text(entry: Entry) -> str:
    """The entry as a line, without its end."""
    return _text(encoded(entry))


def entry_of(line: str) -> Entry | None:
    """The entry of a line; None for what is none."""
    return _read(line, Entry)


def remark_text(remark: Remark) -> str:
    """The remark as a line, without its end."""
    return _text({"remark": encoded(remark)})


def remark_of(line: str) -> Remark | None:
    """The remark of a line; None for what is none."""
    held = _read(line, _Held)
    return held.remark if held is not None else None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held:
    remark: Remark


def _text(document: Mapping[str, Any]) -> str:
    return json.dumps({"v": VERSION, **document}, ensure_ascii=False)


def _read(line: str, kind: type[T]) -> T | None:
    try:
        document = json.loads(line)
        if document.pop("v", None) != VERSION:
            return None
        value = decoded(document, kind)
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    return value if isinstance(value, kind) else None


def actions_of(entries: Iterable[Entry]) -> tuple[ActionRecord, ...]:
    """The actions, in the order they began."""
    records: dict[str, ActionRecord] = {}
    for entry in entries:
        before = records.get(entry.action)
        if before is None:
            before = ActionRecord(
                id=entry.action,
                kind=entry.kind,
                title=entry.title,
                state=ActionState.OPEN,
                began_at=entry.at,
                changed_at=entry.at,
                steps=entry.steps,
            )
        records[entry.action] = _after(before, entry)
    return tuple(records.values())


def _after(record: ActionRecord, entry: Entry) -> ActionRecord:
    record = replace(
        record,
        changed_at=entry.at,
        line=entry.line or record.line,
        facts={**record.facts, **entry.facts},
    )
    match entry.mark:
        case Mark.STEP_BEGUN:
            return replace(record, step=entry.step, step_began_at=entry.at)
        case Mark.STEP_DONE:
            return replace(record, step=None, done=(*record.done, entry.line))
        case Mark.ENDED:
            state = ActionState.DONE if entry.ok else ActionState.FAILED
            return replace(record, state=state)
        case Mark.GIVEN_UP:
            return replace(record, state=ActionState.GIVEN_UP)
        case Mark.STARTED | Mark.NOTED | Mark.STEP_FAILED:
            return record
