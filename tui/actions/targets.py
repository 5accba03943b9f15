"""A run that was seen, as what can be told to stop."""

from __future__ import annotations

from collections.abc import Iterable

from tui.actions.signals import target_started_at
from tui.miles.secrets import masked_words
from tui.miles.titles import Role
from tui.model.launch import Process
from tui.model.target import ContainerTarget, JobTarget, ProcessTarget, RunTarget
from tui.runs import ray_jobs
from tui.runs.merge import FoundRun
from tui.runs.process import RunProcess

_TITLE_CHARS = 60
_CLUSTER = frozenset({Role.RAY})
"""Ray's own processes: others may have jobs there too."""


def run_target(run: FoundRun, seen: Iterable[Process] = ()) -> RunTarget | None:
    """What there is of it to stop; None: nothing of it lives.

    Args:
        run: as it was found a moment ago.
        seen: its processes, as the monitor tells them.
    """
    container = run.container.container if run.container is not None else None
    target = RunTarget(
        container=None
        if container is None or container.status not in ("running", "paused", "restarting")
        else ContainerTarget(id=container.id, name=container.name, started_at=container.started_at),
        job=_job(run),
        client=_process(run.client),
        launchers=tuple(each for one in run.launchers if (each := _process(one)) is not None),
        driver=_process(run.driver),
        members=tuple(_members(run, seen)),
    )
    return target if target != RunTarget() else None


def _job(run: FoundRun) -> JobTarget | None:
    if not run.submission_id or (run.job is not None and not run.job.is_active):
        return None
    return JobTarget(submission_id=run.submission_id, address=ray_jobs.URL)


def _process(process: RunProcess | None) -> ProcessTarget | None:
    if process is None:
        return None
    title = " ".join(masked_words(process.argv))[:_TITLE_CHARS]
    return target_started_at(process.pid, process.started_at, title)


def _members(run: FoundRun, seen: Iterable[Process]) -> Iterable[ProcessTarget]:
    known = {each.pid for each in (run.driver, run.client, *run.launchers) if each is not None}
    for process in seen:
        if process.pid in known or process.role in _CLUSTER:
            continue
        target = target_started_at(process.pid, process.started_at, process.title[:_TITLE_CHARS])
        if target is not None:
            yield target
