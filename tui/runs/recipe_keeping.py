"""Keeps the recipe of a run that is seen alive, before its container and its client are gone."""

from __future__ import annotations

from dataclasses import replace

from tui.model.launch import Attachment
from tui.model.reading import Unknown
from tui.model.recipe import Recipe
from tui.runs.merge import FoundRun
from tui.runs.recipe import captured, describes
from tui.runs.recipe_store import keep, kept
from tui.runs.state_dir import run_folder


def keep_seen(run: FoundRun, attachment: Attachment, at: float) -> Recipe | Unknown:
    """The recipe that is kept now, or why there is none.

    What was kept of the same start while more could be seen is left as it is.

    Raises:
        OSError: it cannot be written.
    """
    recipe = _better(_kept_of(run, attachment), captured(run, at))
    if not isinstance(recipe, Unknown):
        # Its job goes on without whoever submitted it, and is the same start all the same.
        recipe = replace(recipe, submission_id=recipe.submission_id or run.submission_id)
        keep(run_folder(attachment), recipe)
    return recipe


def _better(before: Recipe | None, seen: Recipe | Unknown) -> Recipe | Unknown:
    if before is None:
        return seen
    if before.ours or isinstance(seen, Unknown):
        return before
    return before if _telling(before) > _telling(seen) else seen


def _telling(recipe: Recipe) -> tuple[bool, bool]:
    return recipe.is_client, recipe.environment is not None


def _kept_of(run: FoundRun, attachment: Attachment) -> Recipe | None:
    """Of this start; `milepost run` knew only its log, and kept it by that."""
    by_log = Attachment(log=attachment.log)
    for each in (attachment, by_log):
        recipe = kept(run_folder(each))
        if recipe is not None and describes(recipe, run):
            return recipe
    return None
