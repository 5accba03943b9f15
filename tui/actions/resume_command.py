"""The command of a resume: the one that is known with the least change, or one that was typed."""

from __future__ import annotations

import hashlib
import os
import time
from dataclasses import replace

from tui.actions.situation import Situation
from tui.miles.edit import Edited, entrypoint_with_options, with_options
from tui.miles.flags import launch_from_argv, launch_from_shell
from tui.miles.outline import Command, environment_words
from tui.model.checkpoint import Checkpoint
from tui.model.launch import LaunchArgs, host_path
from tui.model.plan import Ask, Refusal
from tui.model.recipe import Recipe, RecipeKind
from tui.runs.docker_client import docker_command
from tui.runs.recipe_changes import original_id, startable

_NO_TRIGGER = "train_multi_lora_async.py"
"""It does not look for the save trigger."""


def command_for(situation: Situation, ask: Ask) -> tuple[Recipe, tuple[str, ...]] | Refusal:
    """What will be started, and what of it is not as it was."""
    command = _loading(situation, ask)
    if isinstance(command, Refusal):
        return command
    stamp = time.strftime("%Y%m%d-%H%M%S", time.localtime(situation.at))
    recipe, changes = startable(command[0], stamp)
    return recipe, (*command[1], *changes)


def _loading(situation: Situation, ask: Ask) -> tuple[Recipe, tuple[str, ...]] | Refusal:
    if ask.command:
        return _given(situation.recipe or _bare(), ask), ()
    if situation.recipe is None:
        return Refusal(
            reason=f"how {situation.name} was started was never seen",
            remedy="milepost keeps that while a run lives; give it: `milepost resume -- COMMAND`",
        )
    return _edited(situation, situation.recipe)


def _bare() -> Recipe:
    """Where nothing is known, a command that was typed is enough."""
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
    edited = _with(recipe, options)
    if isinstance(edited, Refusal) and (folder := _loads_already(situation)):
        # The script that hides the train command gives it what a resume needs.
        return recipe, (f"none: its last start printed that it loads {folder}",)
    return edited


def _with(recipe: Recipe, options: dict[str, str]) -> tuple[Recipe, tuple[str, ...]] | Refusal:
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


def _loads_already(situation: Situation) -> str:
    """The folder that the run printed as the one it both saves to and loads; empty: none."""
    launch = situation.snapshot.story.launch
    if launch.save is None or launch.load is None:
        return ""
    return launch.save if launch.save.rstrip("/") == launch.load.rstrip("/") else ""


def _told(edited: Edited[Command] | Edited[str]) -> tuple[str, ...]:
    return tuple(f"{change} ({change.where})" for change in edited.changes)


def _options(situation: Situation, recipe: Recipe) -> dict[str, str] | Refusal:
    launch = _launch(situation, recipe)
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


def _launch(situation: Situation, recipe: Recipe) -> LaunchArgs:
    """What the command itself says; where it leaves that to a launcher, what the log says."""
    if recipe.kind is RecipeKind.JOB:
        launch = launch_from_shell(recipe.entrypoint)
    else:
        command = Command(argv=recipe.argv, environment=recipe.environment or ())
        launch = launch_from_argv((*recipe.argv, *filter(None, environment_words(command))))
    return launch if launch.save is not None else situation.snapshot.story.launch


def _trigger_beside(save: str, recipe: Recipe) -> str:
    """Beside the save folder where the host sees that place, else in it."""
    beside = f"{save}.save-now"
    if recipe.mounts and host_path(beside, recipe.mounts) is None:
        return f"{save}/save-now"
    return beside


def signature_of(recipe: Recipe, best: Checkpoint | None) -> str:
    """Of what is tried: the same command from the same checkpoint fails the same way."""
    argv = tuple(map(original_id, recipe.argv))
    loaded = (best.path, best.taken_at) if best is not None else None
    tried = repr((argv, recipe.environment, recipe.entrypoint, loaded))
    return hashlib.sha256(tried.encode("utf-8", "surrogateescape")).hexdigest()[:16]
