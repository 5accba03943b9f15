"""The plan of a resume: end what still lives, start the same command again, and prove it."""

from __future__ import annotations

import hashlib
import os
from dataclasses import replace
from pathlib import Path

from tui.actions import preflight
from tui.actions.launch import new_id
from tui.actions.moving import quarantine_name
from tui.actions.rollback_plan import plan_rollback
from tui.actions.situation import Situation
from tui.actions.stop_plan import stopping
from tui.checkpoints.rollback import aside_for_resume
from tui.miles.edit import Edited, entrypoint_with_options, with_options
from tui.miles.outline import Command
from tui.model.action import ActionKind, ActionState
from tui.model.checkpoint import Checkpoint, CheckpointTree
from tui.model.judge.words import counted
from tui.model.judge.would_load import best_of
from tui.model.launch import host_path
from tui.model.plan import (
    ActionPlan,
    Ask,
    AskToSave,
    MoveAside,
    ProveStart,
    Refusal,
    Row,
    StartRun,
    Step,
)
from tui.model.reading import Known
from tui.model.recipe import Recipe, RecipeKind
from tui.model.snapshot import Level
from tui.runs.docker_client import docker_command
from tui.runs.next_log import next_log

_REFUSED_AFTER = 2
"""As often the same failure came before, with nothing changed: the next time it comes again."""
_NO_TRIGGER = "train_multi_lora_async.py"
"""It does not look for the save trigger."""


def plan_resume(situation: Situation, ask: Ask) -> ActionPlan | Refusal:
    """Start it again from the newest checkpoint that is good, killing first what still lives."""
    recipe, tree = situation.recipe or _bare(ask), _tree(situation)
    if recipe is None:
        return _no_recipe(situation)
    best = _chosen(tree, ask) if tree is not None else None
    if tree is None or best is None:
        return _nothing_to_load(tree, ask)
    edited = (_given(recipe, ask), ()) if ask.command else _edited(situation, recipe)
    if isinstance(edited, Refusal):
        return edited
    recipe, changes = edited
    signature = _signature(recipe, best)
    refusal = _reached(situation, best) or _same_again(situation, signature, ask)
    if refusal is not None:
        return refusal
    log = next_log(recipe.log, situation.folder) if recipe.kind is RecipeKind.PROCESS else ""
    rows, steps = _ending(situation, ask)
    saves = any(isinstance(step, AskToSave) for step in steps)
    loadable = ([_newest_row()], []) if saves else _made_loadable(situation, tree, best)
    if isinstance(loadable, Refusal):
        return loadable
    rows += [*loadable[0], *preflight.command_rows(recipe)]
    rows += [Row(label="", text=f"changes: {change}") for change in changes]
    if log:
        rows.append(Row(label="", text=f"log: {log} (new; {Path(recipe.log).name} stays)"))
    rows += [
        *preflight.disk(situation),
        *preflight.leftovers(situation),
        *preflight.hit_by_start(situation, recipe),
        *_again_row(situation, signature),
        _then(best, ask, saves=saves),
    ]
    prove = ProveStart(
        log=log,
        save_folder=tree.root,
        iteration=best.iteration,
        first_rollout=best.resumes_at,
        stop_if_wrong=ask.stop_if_wrong,
        signature=signature,
    )
    start = StartRun(recipe=recipe, log=log, container_name=recipe.container_name)
    title = "Kill and resume" if situation.lives else "Resume"
    return ActionPlan(
        id=new_id(ActionKind.RESUME, situation.at),
        kind=ActionKind.RESUME,
        title=f"{title} {situation.name}",
        run_id=situation.run_id,
        run_name=situation.name,
        made_at=situation.at,
        rows=tuple(rows),
        steps=(*steps, *loadable[1], start, prove),
        go=_go(steps, lives=situation.lives),
    )


def _tree(situation: Situation) -> CheckpointTree | None:
    tree = situation.snapshot.checkpoints
    return tree.value if isinstance(tree, Known) else None


def _chosen(tree: CheckpointTree, ask: Ask) -> Checkpoint | None:
    """The one that was asked for, else the newest that nothing speaks against."""
    if ask.iteration is None:
        return best_of(tree)
    return next((each for each in tree.checkpoints if each.iteration == ask.iteration), None)


def _no_recipe(situation: Situation) -> Refusal:
    return Refusal(
        reason=f"how {situation.name} was started was never seen",
        remedy="milepost keeps that while a run lives; give the command: `milepost run -- COMMAND`",
    )


def _nothing_to_load(tree: CheckpointTree | None, ask: Ask) -> Refusal:
    if tree is None:
        reason = "its checkpoints cannot be read, so nothing tells what a resume would load"
        return Refusal(reason=reason, remedy="name the folder with --checkpoints DIR")
    if ask.iteration is not None:
        return Refusal(reason=f"there is no checkpoint {ask.iteration} in {tree.root}")
    return Refusal(
        reason=f"{tree.root} holds no whole checkpoint: a resume would start at rollout 0",
        remedy="a fresh start is `milepost run -- COMMAND`",
    )


# The command


def _bare(ask: Ask) -> Recipe | None:
    """Where nothing is known, a command that was typed is enough."""
    if not ask.command:
        return None
    return Recipe(
        kind=RecipeKind.PROCESS,
        source="given by hand",
        captured_at=0.0,
        cwd=os.getcwd(),  # noqa: PTH109 - as text
        log=os.path.join(os.getcwd(), "milepost.log"),  # noqa: PTH109, PTH118
    )


def _given(recipe: Recipe, ask: Ask) -> Recipe:
    """The command that was typed, in the place of the one that is known."""
    return replace(
        recipe,
        kind=RecipeKind.PROCESS,
        argv=ask.command,
        is_client=docker_command(ask.command) is not None,
        missing=(),
    )


def _edited(situation: Situation, recipe: Recipe) -> tuple[Recipe, tuple[str, ...]] | Refusal:
    """The recipe with `--load` and the save trigger, and what that changes."""
    options = _options(situation, recipe)
    if isinstance(options, Refusal):
        return options
    if recipe.kind is RecipeKind.JOB:
        job = entrypoint_with_options(recipe.entrypoint, options)
        if isinstance(job, Refusal):
            return job
        return replace(recipe, entrypoint=job.command), _told(job)
    command = Command(argv=recipe.argv, environment=recipe.environment or ())
    edited = with_options(command, options)
    if isinstance(edited, Refusal):
        return edited
    environment = None if recipe.environment is None else edited.command.environment
    changed = replace(recipe, argv=edited.command.argv, environment=environment)
    return changed, _told(edited)


def _told(edited: Edited[Command] | Edited[str]) -> tuple[str, ...]:
    return tuple(f"{change} ({change.where})" for change in edited.changes)


def _options(situation: Situation, recipe: Recipe) -> dict[str, str] | Refusal:
    launch = situation.snapshot.story.launch
    save = launch.save
    if save is None:
        return Refusal(
            reason="the run was started without --save: there is nothing it could go on from",
            remedy="a fresh start is `milepost run -- COMMAND`",
        )
    options = {"load": save.rstrip("/") or save}
    if launch.load is not None and launch.load.rstrip("/") == options["load"]:
        options["load"] = launch.load
    can_trigger = _NO_TRIGGER not in launch.script and not situation.snapshot.story.is_slime
    if launch.save_trigger is None and can_trigger and save.startswith("/"):
        options["save-trigger-sentinel"] = _trigger_beside(save.rstrip("/"), recipe)
    return options


def _trigger_beside(save: str, recipe: Recipe) -> str:
    """Beside the save folder where the host sees that place, else in it."""
    beside = f"{save}.save-now"
    if recipe.mounts and host_path(beside, recipe.mounts) is None:
        return f"{save}/save-now"
    return beside


# What speaks against it


def _reached(situation: Situation, best: Checkpoint) -> Refusal | None:
    total = situation.snapshot.story.launch.num_rollout
    if total is None or best.resumes_at < total:
        return None
    return Refusal(
        reason=f"all {total} rollouts are done: a resume would end at once, and call it a success",
        remedy="raise --num-rollout in the command, and start it with `milepost run -- COMMAND`",
    )


def _same_again(situation: Situation, signature: str, ask: Ask) -> Refusal | None:
    count, failure = _failures(situation, signature)
    if count < _REFUSED_AFTER or ask.force:
        return None
    return Refusal(
        reason=f"the last {count} resumes failed in the same way with nothing changed: {failure}",
        remedy="find the cause first, or insist with --force",
    )


def _again_row(situation: Situation, signature: str) -> list[Row]:
    count, failure = _failures(situation, signature)
    if not count:
        return []
    text = f"failed {counted(count, 'time')} already with nothing changed since: {failure}"
    return [Row(label="Checks", text=text, level=Level.WARNING)]


def _failures(situation: Situation, signature: str) -> tuple[int, str]:
    """How many of the last resumes failed alike, with this very command and checkpoint."""
    count, failure = 0, ""
    for record in reversed(situation.records):
        if record.kind is not ActionKind.RESUME:
            continue
        told = record.facts.get("failure", "")
        alike = record.state is ActionState.FAILED and record.facts.get("signature") == signature
        if not alike or not told or (failure and told != failure):
            break
        count, failure = count + 1, told
    return count, failure


def _signature(recipe: Recipe, best: Checkpoint) -> str:
    """Of what is tried: the same command from the same checkpoint fails the same way."""
    tried = repr((recipe.argv, recipe.environment, recipe.entrypoint, best.path, best.taken_at))
    return hashlib.sha256(tried.encode("utf-8", "surrogateescape")).hexdigest()[:16]


# Steps and rows


def _ending(situation: Situation, ask: Ask) -> tuple[list[Row], list[Step]]:
    if situation.target is None:
        return [preflight.why(situation)], []
    if ask.iteration is not None and ask.save_first is None:
        ask = replace(ask, save_first=False)  # an older one was chosen: nothing newer is wanted
    return stopping(situation, situation.target, ask)


def _newest_row() -> Row:
    return Row(label="Loads", text="what the save before the stop brings, once it is whole")


def _made_loadable(
    situation: Situation, tree: CheckpointTree, best: Checkpoint
) -> tuple[list[Row], list[Step]] | Refusal:
    """What has to be put right in the save folder, so that this one is what loads."""
    row = Row(label="Loads", text=_line(best))
    if not best.tracked:
        rolled = plan_rollback(situation, best.iteration, after_stop=True)
        if isinstance(rolled, Refusal):
            return rolled
        return [replace(row, level=Level.WARNING), *rolled.rows], list(rolled.steps)
    paths = aside_for_resume(tree)
    if not paths:
        return [row], []
    name = quarantine_name(Path(tree.root), situation.at)
    text = f"{', '.join(paths)}, left by a save that did not finish, to {name}"
    aside = MoveAside(root=tree.root, paths=paths, quarantine=name)
    return [row, Row(label="Moves", text=text)], [aside]


def _line(best: Checkpoint) -> str:
    seen = best.verification
    checked = "never verified" if seen is None else f"verified: {seen.soundness.value}"
    parts = f"checkpoint {best.iteration} ({checked}), first rollout {best.resumes_at}"
    return parts if best.has_data_state else f"{parts}; the data order starts again"


def _then(best: Checkpoint, ask: Ask, *, saves: bool) -> Row:
    first = f"first rollout {best.resumes_at}" if not saves else "the rollout the save implies"
    text = f"watch for the loaded model and optimizer, the data position, {first}"
    return Row(
        label="Then", text=f"{text}; {'stop it' if ask.stop_if_wrong else 'say so'} otherwise"
    )


def _go(steps: list[Step], *, lives: bool) -> str:
    if not lives:
        return "resume"
    names = [step.name for step in steps]
    before = [word for word in ("save", "autopsy") if word in names]
    return f"{', '.join(before)}, then kill and resume" if before else "kill and resume"
