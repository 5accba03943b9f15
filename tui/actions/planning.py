"""The plan that answers what was asked, from a look at the run and at the machine."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

from tui.actions.autopsy_plan import plan_autopsy
from tui.actions.convert_plan import plan_convert
from tui.actions.resume_plan import plan_resume
from tui.actions.rollback_plan import plan_rollback
from tui.actions.save_plan import plan_save
from tui.actions.situation import Situation
from tui.actions.stop_plan import plan_stop
from tui.actions.targets import run_target
from tui.actions.twins import living_twin, words_of
from tui.actions.undo_plan import plan_undo
from tui.attach import Target, found
from tui.errors import MilepostError
from tui.model.action import ActionKind
from tui.model.judge.would_load import best_of
from tui.model.launch import Attachment
from tui.model.plan import ActionPlan, Ask, Refusal
from tui.model.reading import Known
from tui.model.snapshot import Snapshot
from tui.runs.journal import Journal
from tui.runs.lock import holder_of
from tui.runs.merge import FoundRun
from tui.runs.recipe_store import kept
from tui.runs.sameness import is_of
from tui.runs.state_dir import run_folder, run_id

_ALONE = frozenset({ActionKind.RESUME, ActionKind.ROLLBACK, ActionKind.UNDO})
"""What must not be done to the save folder of a run that goes on."""


def situation_of(snapshot: Snapshot) -> Situation:
    """Everything about the run of that snapshot that a plan is made from."""
    at = time.time()
    attachment = snapshot.attachment
    folder = run_folder(attachment)
    run = _found(attachment, at)
    processes = snapshot.processes.value.processes if isinstance(snapshot.processes, Known) else ()
    return Situation(
        snapshot=snapshot,
        run=run,
        target=run_target(run, processes) if run is not None else None,
        recipe=kept(folder),
        run_id=run_id(attachment),
        folder=folder,
        records=Journal(folder).actions(),
        at=at,
    )


def planned(situation: Situation, ask: Ask) -> ActionPlan | Refusal:
    """The plan that answers what was asked, unless another action has the run."""
    refusal = _busy(situation) or _second(situation, ask)
    if refusal is not None:
        return refusal
    match ask.kind:
        case ActionKind.SAVE:
            return plan_save(situation)
        case ActionKind.STOP:
            return plan_stop(situation, ask)
        case ActionKind.RESUME:
            return plan_resume(situation, ask)
        case ActionKind.UNDO:
            return plan_undo(situation)
        case ActionKind.AUTOPSY:
            return plan_autopsy(situation)
        case ActionKind.ROLLBACK | ActionKind.CONVERT:
            iteration = _iteration(situation, ask)
            if iteration is None:
                return Refusal(reason="there is no checkpoint to choose")
            if ask.kind is ActionKind.CONVERT:
                return plan_convert(situation, iteration, ask.origin)
            return plan_rollback(situation, iteration, force=ask.force)


def _iteration(situation: Situation, ask: Ask) -> int | None:
    if ask.iteration is not None:
        return ask.iteration
    tree = situation.snapshot.checkpoints
    best = best_of(tree.value) if isinstance(tree, Known) else None
    return best.iteration if best is not None else None


def _busy(situation: Situation) -> Refusal | None:
    """Another action has the run, or was left unfinished."""
    holder = holder_of(situation.folder)
    record = next((each for each in reversed(situation.records) if each.is_open), None)
    if holder is not None:
        title = record.title if record is not None else holder
        return Refusal(reason=f"{title} is under way", remedy="wait for its end, or watch it")
    if record is not None:
        return Refusal(
            reason=f"{record.title} was interrupted and is still open",
            remedy="finish it or give it up first",
        )
    return None


def _second(situation: Situation, ask: Ask) -> Refusal | None:
    """The run goes on under another name than the one that was meant."""
    if situation.lives or ask.kind not in _ALONE:
        return None
    twin = living_twin(situation.run_id, situation.at)
    if twin is None:
        return None
    return Refusal(
        reason=f"{words_of(twin)} runs, and saves to the same folder",
        remedy=f"act on that one: {twin.handle}",
    )


def _found(attachment: Attachment, at: float) -> FoundRun | None:
    """What of it runs now; a run that is gone is no fault."""
    for target, is_sure in _aims(attachment):
        try:
            run = found(target, at=at).run
        except MilepostError:
            continue
        if run is not None and (is_sure or is_of(run, attachment)):
            return run
    return None


def _aims(attachment: Attachment) -> Iterator[tuple[Target, bool]]:
    """Ways to find the run again, and whether they can find no other one."""
    if attachment.container is not None:
        yield Target(container=attachment.container.value), True
    if attachment.log is not None:
        yield Target(log=Path(attachment.log.value)), True
    for number in (attachment.driver_pid, attachment.job):
        if number is not None:
            yield Target(name=number.value), False
