"""The recipe of a start that was made by milepost: nothing that is seen of it can tell more."""

from __future__ import annotations

import os
from dataclasses import replace

import psutil

from tui.actions.context import Context
from tui.model.recipe import Recipe
from tui.model.target import ProcessTarget
from tui.runs.kinship import typed_submissions
from tui.runs.recipe_store import keep


def begun(recipe: Recipe, log: str, process: ProcessTarget) -> Recipe:
    """The same command, as it became that process."""
    return replace(
        recipe,
        run_started_at=psutil.boot_time() + process.start_ticks / os.sysconf("SC_CLK_TCK"),
        pid=process.pid,
        log=log,
        container_id="",
        submission_id=next(iter(typed_submissions(recipe.argv)), ""),
    )


def keep_own(recipe: Recipe, context: Context) -> Recipe:
    """Keep it as that of the newest start. Where that fails, the run goes on all the same."""
    own = replace(recipe, ours=True, source="milepost started it", captured_at=context.clock())
    try:
        keep(context.folder, own)
    except OSError as fault:
        context.note(f"how it was started cannot be kept: {fault.strerror}")
    return own
