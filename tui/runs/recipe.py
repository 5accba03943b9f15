"""How a run was started, from what is seen of it while it lives.

The best source counts: the `docker run` client with its words and environment, the container as
Docker tells it, what launched the driver, the driver itself; Ray's list of jobs where whoever
submitted the job is gone.
"""

from __future__ import annotations

import re
import shlex

from tui.model.reading import Absence, Unknown
from tui.model.recipe import Recipe
from tui.runs.attachment import output_paths
from tui.runs.docker_answers import FoundContainer, speaks_of_miles
from tui.runs.merge import FoundRun
from tui.runs.origin import is_below_first, is_same_start, may_be_read, session_of
from tui.runs.process import RunProcess
from tui.runs.recipe_sources import by_exec, of_client, of_container, of_job, of_process

_WAITS = re.compile(
    r"""(?:[\w./=-]+\s+)*['"]?"""
    r"""(?:(?:\S*/)?(?:ba|da|z|k)?sh(?:\s+-[a-bd-z-]*)*|sleep\s+\S+|tail\s+-[fF]\s+/dev/null)['"]?"""
)
"""A container's command that does nothing by itself: what runs in it was started by hand."""


def captured(run: FoundRun, at: float) -> Recipe | Unknown:
    """How it was started, or why that cannot be told.

    Args:
        run: what is seen of it now.
        at: now, in epoch seconds.
    """
    if run.is_idle:
        return Unknown(why=Absence.MISSING, reason="nothing of a run is seen in it yet", at=at)
    inside = _outermost(run)
    by_hand = run.container is not None and _is_by_hand(run.container, inside)
    if run.client is not None and _starts_it(run.client, by_hand=by_hand):
        return of_client(run.client, run, at)
    if run.container is not None and not (by_hand or run.is_here):
        return of_container(run.container, run, at)
    if run.submission_id and not run.launchers:
        return of_job(run, at)
    if inside is None:
        return Unknown(why=Absence.MISSING, reason="nothing tells how it was started", at=at)
    if not may_be_read(inside):
        reason = f"process {inside.pid} is another user's: run milepost as that user or with sudo"
        return Unknown(why=Absence.NO_PERMISSION, reason=reason, at=at)
    if run.is_here:
        return of_process(inside, run, at)
    if run.container is not None:
        return by_exec(inside, run.container, at)
    reason = f"it runs in a container that Docker does not tell of: {run.hidden_by}"
    return Unknown(why=Absence.NO_PERMISSION, reason=reason, at=at)


def describes(recipe: Recipe, run: FoundRun) -> bool:
    """Whether the recipe is of this very start of the run.

    What was started by milepost leads a session, so that all in it belongs to that start however
    the process that began it has ended.
    """
    container = run.container.container.id if run.container is not None else ""
    if recipe.container_id and recipe.container_id == container:
        return True
    if recipe.submission_id and recipe.submission_id == run.submission_id:
        return True
    if recipe.ours and not recipe.pid and recipe.log in output_paths(run):
        return True  # whoever started it was killed before it knew the pid
    for process in (run.client, *run.launchers, run.driver):
        if process is None or not recipe.pid:
            continue
        if is_same_start(process, recipe.pid, recipe.run_started_at):
            return True
        if recipe.ours and session_of(process) == recipe.pid:
            return process.started_at >= recipe.run_started_at - 1.0
    return False


def _outermost(run: FoundRun) -> RunProcess | None:
    """What starts the whole, beside Docker."""
    return next(iter((*run.launchers, run.driver)), None)


def _starts_it(client: RunProcess, *, by_hand: bool) -> bool:
    """Whether the same client would start the run again, and is ours to read."""
    verb = client.docker.verb if client.docker is not None else ""
    return (verb == "exec" or (verb == "run" and not by_hand)) and may_be_read(client)


def _is_by_hand(found: FoundContainer, inside: RunProcess | None) -> bool:
    """Whether someone started the run within a container that was there for anything."""
    if inside is None:
        return False
    if found.pid and not is_below_first(inside, found.pid):
        return True
    only_waits = bool(_WAITS.fullmatch(shlex.join(found.argv)))
    return only_waits and not speaks_of_miles(found.argv)
