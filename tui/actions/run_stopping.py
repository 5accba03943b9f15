"""End a run: in the way that lets it end cleanly, then by force, then say what does not die.

A driver in a container is asked before its container is: as the first process of a container a
shell passes no signal on, and `docker stop` would end in a kill.
"""

from __future__ import annotations

import time

from tui.actions import containers, ray_jobs
from tui.actions.asking import asked_to_end
from tui.actions.context import Context, Done
from tui.actions.errors import StepFailed
from tui.actions.freeing import Wanted, wait_until_free
from tui.actions.signals import is_alive
from tui.actions.stopping import Patience, stop_tree
from tui.model.events import GpusRead, MemoryRead
from tui.model.gpu import GpuReport
from tui.model.judge.words import counted, span
from tui.model.memory import Memory
from tui.model.plan import StopRun
from tui.model.reading import Absence, Reading, Unknown
from tui.model.snapshot import Snapshot
from tui.model.target import ContainerTarget, JobTarget, ProcessTarget, RunTarget
from tui.probes.gpu import GpuProbe
from tui.probes.memory import MemoryProbe

_DOCKER_GRACE_S = 10.0
_CLIENT_S = 10.0
_LINGER_S = 10.0
"""For engines and trainers, which Ray ends when it sees that their driver is gone."""


def perform(step: StopRun, context: Context) -> Done:
    """Stop it, and wait until memory and ports are free."""
    begun = time.monotonic()
    target = step.target
    said = [*_job_stopped(target.job, step.grace_s, context)]
    if target.container is not None:
        said += _container_stopped(target.container, target, step.grace_s, context)
    else:
        said += _processes_stopped(target, step.grace_s, context)
    said += _rest_stopped(target, context)
    said.append(_freed(step, context))
    spent = span(time.monotonic() - begun)
    return Done(line=f"stopped within {spent}: {'; '.join(said) or 'it was gone already'}")


def _job_stopped(job: JobTarget | None, grace_s: float, context: Context) -> list[str]:
    if job is None:
        return []
    context.note(f"asking Ray to stop job {job.submission_id}")
    answer = ray_jobs.stop(job, context.clock())
    if isinstance(answer, Unknown):
        return [f"Ray could not be asked: {answer.reason}"]
    if context.wait_for(lambda: _has_ended(job, context.clock()), grace_s, every_s=0.3):
        return [f"Ray job {job.submission_id} ended"]
    return [f"Ray job {job.submission_id} did not end within {span(grace_s)}"]


def _has_ended(job: JobTarget, at: float) -> bool:
    found = ray_jobs.find(job, at)
    return not isinstance(found, Unknown) and not found.value.is_active


def _container_stopped(
    container: ContainerTarget, target: RunTarget, grace_s: float, context: Context
) -> list[str]:
    was_there = containers.is_running(container)
    driver = target.driver
    if driver is not None and asked_to_end(driver, container):
        context.note(f"asked the driver, process {driver.pid}, to end (SIGTERM)")
        context.wait_for(lambda: not is_alive(driver), grace_s)
        context.wait_for(lambda: not containers.is_running(container), _LINGER_S, every_s=0.3)
    context.note(f"stopping container {container.name}")
    answer = containers.stop(container, _DOCKER_GRACE_S)
    if isinstance(answer, Unknown):
        raise StepFailed(
            f"container {container.name} could not be stopped: {answer.reason}",
            f"stop it by hand: docker stop {container.name}",
        )
    if answer.value is containers.Outcome.ANOTHER:
        raise StepFailed(
            f"container {container.name} was started again meanwhile, and was left alone",
            "look again, and make a new plan",
        )
    _client_ended(target.client, context)
    return [f"container {container.name} {'ended' if was_there else 'was gone already'}"]


def _client_ended(client: ProcessTarget | None, context: Context) -> None:
    """It ends with its container, once it has printed the last of it."""
    if client is not None and not context.wait_for(lambda: not is_alive(client), _CLIENT_S):
        stop_tree(client, note=context.note)


def _processes_stopped(target: RunTarget, grace_s: float, context: Context) -> list[str]:
    named = [each for each in (target.driver, *target.launchers, target.client) if each]
    if not named:
        return []
    top, *also = named
    stopped = stop_tree(top, also, patience=Patience(grace_s=grace_s), note=context.note)
    if not stopped.is_gone:
        raise StepFailed(f"{top.title} (process {top.pid}): {stopped.line}")
    return [f"process {top.pid} {stopped.line}"]


def _rest_stopped(target: RunTarget, context: Context) -> list[str]:
    """Engines and trainers that outlive their driver hold the memory a start needs."""
    if context.wait_for(lambda: not any(map(is_alive, target.members)), _LINGER_S, every_s=0.3):
        return []
    left = [each for each in target.members if is_alive(each)]
    if not left:
        return []
    top, *also = left
    stopped = stop_tree(top, also, patience=Patience(grace_s=_LINGER_S), note=context.note)
    if not stopped.is_gone:
        raise StepFailed(f"{counted(len(left), 'process')} of the run: {stopped.line}")
    return [f"{counted(len(left), 'process')} that outlived the driver ended"]


def _freed(step: StopRun, context: Context) -> str:
    wanted = Wanted(
        ports=step.ports, run=step.target.processes, available_bytes=step.available_bytes
    )
    context.note("waiting until memory and ports are free")
    gpu, pool = GpuProbe(), MemoryProbe()
    try:
        freed = wait_until_free(
            wanted,
            gpus=lambda: _gpus(gpu, context.clock()),
            memory=lambda: _memory(pool, context.clock()),
            deadline_s=step.free_s,
        )
    finally:
        gpu.close()
    if freed.missing_bytes:
        raise StepFailed(
            f"stopped, but {freed.line}",
            "on unified memory a start now can freeze the box; wait, then resume with `r`",
        )
    return freed.line


def _gpus(probe: GpuProbe, at: float) -> Reading[GpuReport]:
    told = [event for event in probe.read(at, Snapshot(now=at)) if isinstance(event, GpusRead)]
    return told[-1].report if told else Unknown(why=Absence.NOT_ASKED, reason="", at=at)


def _memory(probe: MemoryProbe, at: float) -> Reading[Memory]:
    told = [event for event in probe.read(at, Snapshot(now=at)) if isinstance(event, MemoryRead)]
    return told[-1].memory if told else Unknown(why=Absence.NOT_ASKED, reason="", at=at)
