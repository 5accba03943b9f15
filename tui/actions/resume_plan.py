"""The plan of a resume: end what still lives, start the same command again, and prove it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from tui.actions import preflight
from tui.actions.launch import new_id
from tui.actions.moving import quarantine_name
from tui.actions.resume_checks import again, against
from tui.actions.resume_command import command_for, signature_of
from tui.actions.rollback_plan import plan_rollback
from tui.actions.situation import Situation
from tui.actions.stop_plan import stopping
from tui.checkpoints.rollback import aside_for_resume
from tui.model.action import ActionKind
from tui.model.checkpoint import Checkpoint, CheckpointTree
from tui.model.judge.would_load import best_of
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
from tui.runs.next_log import next_log

_Loadable = tuple[list[Row], list[Step]]


def plan_resume(situation: Situation, ask: Ask) -> ActionPlan | Refusal:
    """Start it again from the newest checkpoint that is good, killing first what still lives."""
    command = command_for(situation, ask)
    if isinstance(command, Refusal):
        return command
    recipe, changes = command
    tree = _tree(situation)
    best = _chosen(tree, ask) if tree is not None else None
    rows, steps = _ending(situation, ask)
    save = next((step.save_folder for step in steps if isinstance(step, AskToSave)), None)
    if save is not None:
        loadable: _Loadable | Refusal = [_newest_row()], []
        may_end = best is not None and best.tracked  # then the one before it is loaded
        steps = [replace(e, may_end=may_end) if isinstance(e, AskToSave) else e for e in steps]
    elif tree is None or best is None:
        return _nothing_to_load(tree, ask)
    else:
        save, loadable = tree.root, _made_loadable(situation, tree, best)
    refusal = against(situation, best, signature_of(recipe, best), ask)
    if refusal is not None:
        return refusal
    if isinstance(loadable, Refusal):
        return loadable
    started = _started(situation, recipe, best, save, ask)
    title = "Kill and resume" if situation.lives else "Resume"
    return ActionPlan(
        id=new_id(ActionKind.RESUME, situation.at),
        kind=ActionKind.RESUME,
        title=f"{title} {situation.name}",
        run_id=situation.run_id,
        run_name=situation.name,
        made_at=situation.at,
        rows=(
            *rows,
            *loadable[0],
            *_start_rows(recipe, changes, started.log),
            *preflight.disk(situation),
            *preflight.leftovers(situation),
            *preflight.hit_by_start(situation, recipe),
            *preflight.limits(recipe),
            *again(situation, started.prove.signature),
            _then(best, steps, ask),
        ),
        steps=(*steps, *loadable[1], started.start, started.prove),
        go=_go(steps, lives=situation.lives),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class _Started:
    """The two last steps."""

    start: StartRun
    prove: ProveStart

    @property
    def log(self) -> str:
        return self.start.log


def _started(
    situation: Situation, recipe: Recipe, best: Checkpoint | None, save: str, ask: Ask
) -> _Started:
    log = next_log(recipe.log, situation.folder) if recipe.kind is RecipeKind.PROCESS else ""
    prove = ProveStart(
        log=log,
        save_folder=save,
        iteration=best.iteration if best is not None else None,
        first_rollout=best.resumes_at if best is not None else None,
        stop_if_wrong=ask.stop_if_wrong,
        signature=signature_of(recipe, best),
    )
    start = StartRun(recipe=recipe, log=log, container_name=recipe.container_name)
    return _Started(start=start, prove=prove)


def _start_rows(recipe: Recipe, changes: tuple[str, ...], log: str) -> list[Row]:
    rows = [*preflight.command_rows(recipe)]
    rows += [Row(label="", text=f"changes: {change}") for change in changes]
    if log:
        old = f"; {Path(recipe.log).name} stays" if recipe.log else ""
        rows.append(Row(label="", text=f"log: {log} (new{old})"))
    return rows


def _tree(situation: Situation) -> CheckpointTree | None:
    tree = situation.snapshot.checkpoints
    return tree.value if isinstance(tree, Known) else None


def _chosen(tree: CheckpointTree, ask: Ask) -> Checkpoint | None:
    """The one that was asked for, else the newest that nothing speaks against."""
    if ask.iteration is None:
        return best_of(tree)
    return next((each for each in tree.checkpoints if each.iteration == ask.iteration), None)


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
) -> _Loadable | Refusal:
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


def _then(best: Checkpoint | None, steps: list[Step], ask: Ask) -> Row:
    saves = any(isinstance(step, AskToSave) for step in steps)
    if best is None or saves:
        first = "the rollout that the save implies"
    else:
        first = f"first rollout {best.resumes_at}"
    otherwise = "stop it" if ask.stop_if_wrong else "say so"
    text = f"watch for the loaded model and optimizer, the data position, {first}"
    return Row(label="Then", text=f"{text}; {otherwise} otherwise")


def _go(steps: list[Step], *, lives: bool) -> str:
    if not lives:
        return "resume"
    names = [step.name for step in steps]
    before = [word for word in ("save", "autopsy") if word in names]
    return f"{', '.join(before)}, then kill and resume" if before else "kill and resume"
