"""The plan that undoes the last roll back.

It rests on what lies on disk, not on what was meant: a roll back that was interrupted, or undone in
part, is undone too. All is moved back before the tracker is written.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path

from tui.actions.errors import Refused
from tui.actions.executor import read_plan
from tui.actions.launch import new_id
from tui.actions.moving import moved_fact, tracker_fact, tracker_text, words_of
from tui.actions.situation import Situation
from tui.errors import UsageError
from tui.model.action import ActionKind, ActionState
from tui.model.judge.words import span
from tui.model.plan import (
    ActionPlan,
    MoveAside,
    MoveBack,
    Refusal,
    Row,
    Step,
    WriteTracker,
    with_steps,
)

_ROLLS_BACK = (ActionKind.ROLLBACK, ActionKind.RESUME)
_SHOWN = 4


def plan_undo(situation: Situation) -> ActionPlan | Refusal:
    """Put back what the last roll back moved aside, and what the tracker said before it."""
    try:
        return _planned(situation)
    except Refused as refused:
        return refused.refusal
    except UsageError as fault:
        return Refusal(reason=fault.message)
    except OSError as error:
        return Refusal(reason=f"{error.filename}: {error.strerror}")


def _planned(situation: Situation) -> ActionPlan:
    if situation.lives:
        raise Refused(
            f"{situation.name} runs: it would save over what is put back", "stop it first"
        )
    rollback = _last_rollback(situation)
    steps = (*_moves(rollback), *_trackers(rollback))
    if not steps:
        raise Refused(f"nothing is left to undo of: {rollback.title}")
    ago = span(max(0.0, situation.at - rollback.made_at))
    what = Row(label="Undoes", text=f"{rollback.title}, {ago} ago")
    return ActionPlan(
        id=new_id(ActionKind.UNDO, situation.at),
        kind=ActionKind.UNDO,
        title=f"Undo the last roll back of {situation.name}",
        run_id=situation.run_id,
        run_name=situation.name,
        made_at=situation.at,
        rows=(what, *_rows(steps)),
        steps=steps,
        go="undo",
    )


def _last_rollback(situation: Situation) -> ActionPlan:
    """The newest plan that was begun, rolls back, and was not undone."""
    undone = {
        record.facts.get("undid")
        for record in situation.records
        if record.kind is ActionKind.UNDO and record.state is ActionState.DONE
    }
    for record in reversed(situation.records):
        if record.kind not in _ROLLS_BACK or record.id in undone:
            continue
        plan = read_plan(situation.folder, record.id)
        writes = any(isinstance(step, WriteTracker) for step in plan.steps)
        if not writes and record.kind is not ActionKind.ROLLBACK:
            continue
        if record.is_open:
            raise Refused(f"{record.title} was interrupted", "finish it, or give it up, first")
        steps = (_as_done(step, at, record.facts) for at, step in enumerate(plan.steps))
        return with_steps(plan, tuple(steps))
    raise Refused(f"no roll back of {situation.name} is left to undo")


def _as_done(step: Step, at: int, facts: Mapping[str, str]) -> Step:
    """The step with what it found when it was done, which the plan could not know."""
    match step:
        case MoveAside() if told := facts.get(moved_fact(at)):
            return replace(step, paths=tuple(json.loads(told)))
        case WriteTracker() if told := facts.get(tracker_fact(at)):
            return replace(step, old_text=json.loads(told)[1])
        case _:
            return step


def _moves(rollback: ActionPlan) -> Iterator[Step]:
    for step in rollback.steps:
        if not isinstance(step, MoveAside):
            continue
        root, quarantine = Path(step.root), Path(step.root, step.quarantine)
        aside = tuple(path for path in step.paths if os.path.lexists(quarantine / path))
        back = [path for path in step.paths if os.path.lexists(root / path)]
        if taken := [path for path in aside if path in back]:
            raise Refused(
                f"{_names(taken)} is there again, saved since: it would have to be overwritten",
                f"what was moved aside stays in {quarantine}",
            )
        if gone := [path for path in step.paths if path not in aside and path not in back]:
            raise Refused(f"{_names(gone)} is neither in {quarantine} nor where it was")
        if aside:
            yield MoveBack(
                root=step.root, paths=aside, quarantine=step.quarantine, undoes=rollback.id
            )


def _trackers(rollback: ActionPlan) -> Iterator[Step]:
    for step in rollback.steps:
        if not isinstance(step, WriteTracker):
            continue
        found = tracker_text(Path(step.path))
        if found == step.old_text:
            continue
        if found != step.text:
            raise Refused(
                f"{step.path} says {words_of(found)} now, where the roll back wrote "
                f"{words_of(step.text)}: the run has saved since",
                "roll back or forward to a checkpoint instead",
            )
        yield WriteTracker(
            path=step.path, text=step.old_text, old_text=step.text, undoes=rollback.id
        )


def _rows(steps: tuple[Step, ...]) -> Iterator[Row]:
    for step in steps:
        match step:
            case MoveBack():
                text = f"{_names(step.paths)}, from {step.root}/{step.quarantine}"
                yield Row(label="Moves back", text=text)
            case WriteTracker():
                change = f"{words_of(step.old_text)} → {words_of(step.text)}"
                yield Row(label="Tracker", text=f"{change}, in {step.path}")
            case _:
                continue


def _names(paths: tuple[str, ...] | list[str]) -> str:
    more = f" and {len(paths) - _SHOWN} more" if len(paths) > _SHOWN else ""
    return ", ".join(paths[:_SHOWN]) + more
