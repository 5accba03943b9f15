"""One look at all that can tell of a run: processes, Docker, Ray. No source holds up another."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Collection, Iterator
from typing import TypeVar

from tui.model.reading import Absence, Reading, Unknown, known
from tui.runs import ray_jobs
from tui.runs.docker import DockerEngine
from tui.runs.docker_answers import FoundContainer
from tui.runs.merge import Sightings
from tui.runs.process import find_processes
from tui.runs.ray_jobs import RayJob

PATIENCE_S = 2.0
"""A source that has not answered by then is not waited for."""
_RAY = ray_jobs.URL.removeprefix("http://")

T = TypeVar("T")


def look_around(at: float, ask_ray: Callable[[float], Reading[str]], name: str = "") -> Sightings:
    """What can be seen now.

    Args:
        at: now, in epoch seconds.
        ask_ray: gives Ray's answer about its jobs.
        name: a container that is wanted whatever runs in it.
    """
    processes = find_processes(at)
    inside = {each.container_id for each in (*processes.drivers, *processes.launchers)}
    engine = DockerEngine()
    containers = _asked(lambda: _containers(engine, at, name, inside))
    jobs = _asked(lambda: _jobs(ask_ray(at), at))
    end = time.monotonic() + PATIENCE_S
    return Sightings(
        processes=processes,
        containers=_answer(containers, end, "Docker", at),
        jobs=_answer(jobs, end, f"Ray at {_RAY}", at),
    )


def looked_for(seen: Sightings) -> tuple[str, ...]:
    """What was looked for and is not there, or could not be looked at, with the remedy."""
    return (*_of_containers(seen), *_of_processes(seen), *_of_jobs(seen))


def _of_containers(seen: Sightings) -> Iterator[str]:
    if isinstance(seen.containers, Unknown):
        yield f"containers of Miles: {seen.containers.reason}"
    elif not seen.containers.value:
        yield "containers of Miles: none is running"


def _of_processes(seen: Sightings) -> Iterator[str]:
    processes = seen.processes
    if processes.others_are_hidden:
        yield (
            "processes: this system hides those of other users; run milepost as the run's user "
            "or with sudo"
        )
    if not (processes.drivers or processes.launchers):
        yield (
            "processes: no train.py, train_async.py, scripts/run_*.py or `ray job submit` among "
            f"the {len(processes.pids)} that can be seen"
        )


def _of_jobs(seen: Sightings) -> Iterator[str]:
    if isinstance(seen.jobs, Unknown):
        yield f"Ray jobs: {_RAY}: {seen.jobs.reason}"
        return
    if not any(job.is_active for job in seen.jobs.value):
        yield f"Ray jobs: {_RAY} has none that runs"
    for job in seen.jobs.value[:1]:
        if not job.is_active:
            yield f"its newest is {job.status}: see it with `milepost {job.submission_id}`"


def _containers(
    engine: DockerEngine, at: float, name: str, drivers_in: Collection[str]
) -> Reading[tuple[FoundContainer, ...]]:
    try:
        return engine.find_miles_containers(at, name, drivers_in)
    finally:
        engine.close()


def _jobs(answer: Reading[str], at: float) -> Reading[tuple[RayJob, ...]]:
    if isinstance(answer, Unknown):
        return answer
    jobs = ray_jobs.jobs_of(answer.value)
    if jobs is None:
        return Unknown(why=Absence.ERROR, reason="what answers there is not Ray", at=at)
    return known(jobs, at)


def _asked(question: Callable[[], T]) -> queue.SimpleQueue[T]:
    """Ask on a thread that nobody waits for."""
    answers: queue.SimpleQueue[T] = queue.SimpleQueue()
    threading.Thread(target=lambda: answers.put(question()), name="look", daemon=True).start()
    return answers


def _answer(answers: queue.SimpleQueue[Reading[T]], end: float, who: str, at: float) -> Reading[T]:
    try:
        return answers.get(timeout=max(0.0, end - time.monotonic()))
    except queue.Empty:
        reason = f"{who} did not answer within {PATIENCE_S:g} s"
        return Unknown(why=Absence.TIMED_OUT, reason=reason, at=at)
