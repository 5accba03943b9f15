"""Start a person's command in our care: detached, with a log of its own, its recipe kept first."""

from __future__ import annotations

import itertools
import os
import shutil
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.actions.own_recipe import begun
from tui.actions.spawning import Command, NotBegunError, gate
from tui.errors import MilepostError, UsageError
from tui.miles.flags import launch_from_argv
from tui.model.launch import Attachment
from tui.model.reading import known
from tui.model.recipe import Recipe, RecipeKind
from tui.runs.attachment import attachment_of
from tui.runs.bounds import bounds_of
from tui.runs.docker_client import docker_command, is_detached
from tui.runs.merge import FoundRun
from tui.runs.output import OutputFile
from tui.runs.process import RunProcess
from tui.runs.recipe_changes import startable
from tui.runs.recipe_store import keep
from tui.runs.state_dir import made, run_folder, run_id


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A command that was started."""

    pid: int
    log: str
    run_id: str
    """Of the run, as far as the command's own words tell."""
    changes: tuple[str, ...] = ()
    """What had to differ from what was typed."""


def start_command(
    command: Sequence[str], *, folder: Path, name: str | None = None, log: Path | None = None
) -> Started:
    """Start it, and be sure to know later how.

    Args:
        command: the command and its arguments.
        folder: where it runs, and prints unless told otherwise.
        name: of the run; by default that of the folder it saves to.
        log: a new file for its output.

    Raises:
        UsageError: the log is there already, or the command would leave its output elsewhere.
        MilepostError: it cannot be started, or what has to be known of it cannot be kept.
    """
    if is_detached(command):
        raise UsageError(
            "with --detach, docker does not show what the container prints",
            "leave -d out: milepost detaches the client, and keeps its output in the log",
        )
    if shutil.which(command[0]) is None and not (folder / command[0]).is_file():
        raise UsageError(f"{command[0]}: no such command")
    at = time.time()
    path = _log(folder, name or _save_name(command), log)
    typed = _recipe(tuple(command), folder, path, at)
    recipe, changes = startable(typed, time.strftime("%Y%m%d-%H%M%S", time.localtime(at)))
    attachment = _attachment(recipe)
    state = run_folder(attachment)
    try:
        made(state)
        keep(state, recipe)
        with gate(state, f"run/{at}") as opened:
            process = opened.start(_command(recipe))
        keep(state, begun(recipe, path, process))
    except (NotBegunError, OSError) as fault:
        raise MilepostError(str(fault)) from fault
    return Started(pid=process.pid, log=path, run_id=run_id(attachment), changes=changes)


def _recipe(argv: tuple[str, ...], folder: Path, log: str, at: float) -> Recipe:
    docker = docker_command(argv, str(folder))
    return Recipe(
        kind=RecipeKind.PROCESS,
        source="milepost run",
        captured_at=at,
        run_started_at=at,
        ours=True,
        argv=argv,
        environment=tuple(os.environ.items()),
        cwd=str(folder),
        bounds=bounds_of(os.getpid()),
        log=log,
        is_client=docker is not None,
        container_name=docker.container if docker is not None and docker.verb == "run" else "",
        removes_container=docker is not None and docker.removes,
        mounts=docker.mounts if docker is not None else (),
    )


def _command(recipe: Recipe) -> Command:
    return Command(
        argv=recipe.argv,
        environment=recipe.environment or (),
        cwd=recipe.cwd,
        bounds=recipe.bounds,
        log=recipe.log,
    )


def _attachment(recipe: Recipe) -> Attachment:
    """What there will be to watch, as it would be found."""
    printed = OutputFile(path=recipe.log, device=0, inode=0)
    process = RunProcess(
        pid=0,
        started_at=recipe.run_started_at,
        argv=recipe.argv,
        launch=launch_from_argv(recipe.argv),
        cwd=recipe.cwd,
        output=known(printed, recipe.captured_at),
        docker=docker_command(recipe.argv, recipe.cwd),
    )
    if recipe.is_client:
        return attachment_of(FoundRun(client=process, is_here=False))
    return attachment_of(FoundRun(driver=process))


def _log(folder: Path, name: str, named: Path | None) -> str:
    if named is not None:
        path = folder / named
        if os.path.lexists(path):
            raise UsageError(f"{path} is there already, and is not overwritten", "name another")
        return str(path)
    numbers = itertools.count(2)
    path = folder / f"{name}.log"
    while os.path.lexists(path):
        path = folder / f"{name}-{next(numbers)}.log"
    return str(path)


def _save_name(command: Sequence[str]) -> str:
    save = launch_from_argv(command).save
    return (Path(save).name if save else "") or "run"
