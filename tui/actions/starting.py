"""Start a recipe's command, once: a process, a container, or a job of Ray.

Entered again it looks at what was begun before: that is left alone, whatever became of it since,
and only what never began is begun.
"""

from __future__ import annotations

import json
import os
import time
from dataclasses import replace

from tui.actions import client_start, ray_jobs, recreate
from tui.actions.context import Context, Done
from tui.actions.errors import StepFailed
from tui.actions.expected import note_tracker
from tui.actions.own_recipe import begun, keep_own
from tui.actions.signals import is_alive
from tui.actions.spawning import Command, NotBegunError, gate
from tui.actions.twins import refuse_second
from tui.model.plan import StartRun
from tui.model.reading import Absence, Reading, Unknown
from tui.model.recipe import Recipe, RecipeKind
from tui.model.target import JobTarget
from tui.runs.docker_client import docker_command
from tui.runs.recipe_changes import new_submission_id

_RAY_LOOK_S = 1.0
_RAY_S = 60.0
"""For an agent of Ray that is just starting."""


def perform(step: StartRun, context: Context) -> Done:
    """Start it, or find what was started before."""
    note_tracker(context)
    match step.recipe.kind:
        case RecipeKind.PROCESS:
            return _process(step, context)
        case RecipeKind.CONTAINER:
            return recreate.perform(step, context)
        case RecipeKind.JOB:
            return _job(step, context)


def _process(step: StartRun, context: Context) -> Done:
    recipe = step.recipe
    docker = docker_command(recipe.argv, recipe.cwd) if recipe.is_client else None
    try:
        with gate(context.folder, f"{context.plan.id}/{context.step}") as opened:
            process = opened.begun
            if process is None:
                refuse_second(context)
                if docker is not None:
                    client_start.ready(docker, context)
                context.note(f"starting {recipe.argv[0]}, which prints into {step.log}")
                process = opened.start(_command(recipe, step.log), again=context.again)
    except NotBegunError as fault:
        raise StepFailed(str(fault)) from fault
    facts = {"pid": str(process.pid), "pid_ticks": str(process.start_ticks)}
    context.note(f"process {process.pid} has begun", log=step.log, **facts)
    recipe = keep_own(begun(recipe, step.log, process), context)
    line = f"started process {process.pid}, log {step.log}"
    if docker is None or docker.verb != "run":
        return Done(line=line if is_alive(process) else f"{line}; it has ended already")
    container = client_start.container_of(docker, process, step.log, context)
    if container is None:
        return Done(line=f"{line}; its container is still to come")
    keep_own(replace(recipe, container_id=container.id, mounts=container.mounts), context)
    facts = {"container_id": container.id, "container_name": container.name}
    return Done(line=f"{line}, container {container.name} ({container.id[:12]})", facts=facts)


def _command(recipe: Recipe, log: str) -> Command:
    environment = recipe.environment
    return Command(
        argv=recipe.argv,
        environment=environment if environment is not None else tuple(os.environ.items()),
        cwd=recipe.cwd,
        bounds=recipe.bounds,
        log=log,
    )


def _job(step: StartRun, context: Context) -> Done:
    recipe = step.recipe
    submission_id = step.submission_id or new_submission_id(
        recipe.submission_id, time.strftime("%Y%m%d-%H%M%S", time.localtime(context.plan.made_at))
    )
    job = JobTarget(submission_id=submission_id, address=recipe.address)
    if not context.again or ray_jobs.is_missing(job, context.clock()):
        refuse_second(context)
    context.note(f"submitting job {submission_id}", submission_id=submission_id)
    answer = _submitted(job, recipe, context)
    end = time.monotonic() + _RAY_S
    while isinstance(answer, Unknown) and answer.why is Absence.TIMED_OUT:
        if time.monotonic() >= end:
            break
        context.pause(_RAY_LOOK_S)
        answer = _submitted(job, recipe, context)  # a job that is there already is not made twice
    if isinstance(answer, Unknown):
        raise StepFailed(
            f"job {submission_id} cannot be submitted: {answer.reason}",
            f"is Ray up at {recipe.address}?",
        )
    keep_own(replace(recipe, run_started_at=context.clock(), submission_id=submission_id), context)
    return Done(line=f"submitted job {submission_id}", facts={"submission_id": submission_id})


def _submitted(job: JobTarget, recipe: Recipe, context: Context) -> Reading[ray_jobs.Outcome]:
    return ray_jobs.submit(
        job,
        recipe.entrypoint,
        context.clock(),
        runtime_env=json.loads(recipe.runtime_env or "{}"),
        metadata=dict(recipe.metadata),
    )
