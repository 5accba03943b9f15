"""Found runs as a list that a person chooses from."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from tui.model.launch import ListedRun
from tui.runs.attachment import (
    attachment_of,
    client_words,
    container_words,
    launcher_words,
    pid_of,
)
from tui.runs.merge import FoundRun

IDLE = "no driver in it"
"""The state of a container that could hold a run, and holds none."""


def listed(runs: Sequence[FoundRun]) -> tuple[ListedRun, ...]:
    """The runs as a list to choose from."""
    natural = [_handle_of(run) for run in runs]
    return tuple(
        _listed(run, handle if natural.count(handle) == 1 else pid_of(run) or handle)
        for run, handle in zip(runs, natural, strict=True)
    )


def _listed(run: FoundRun, handle: str) -> ListedRun:
    attachment = attachment_of(run)
    written_at = 0.0
    if attachment.log is not None:
        try:
            written_at = Path(attachment.log.value).stat().st_mtime
        except OSError:  # the copy of a container's output that nobody has begun yet
            written_at = 0.0
    return ListedRun(
        handle=handle,
        attachment=attachment,
        state=_state_of(run),
        started_at=run.started_at,
        log_written_at=written_at,
        found_by=tuple(_found_by(run)),
    )


def _state_of(run: FoundRun) -> str:
    """What can be told without reading the log."""
    if run.container is not None and run.container.container.status != "running":
        return run.container.container.status
    if run.is_idle:
        return IDLE
    if run.job is not None and run.job.status != "RUNNING":
        return run.job.status.lower()
    return "running" if run.driver or run.job or run.container else "starting"


def _found_by(run: FoundRun) -> Iterator[str]:
    if run.container is not None:
        yield container_words(run.container)
    elif run.driver is not None and run.driver.container_id:
        yield f"container {run.driver.container_id[:12]}"
    if run.client is not None:
        yield f"{client_words(run.client)}, process {run.client.pid}"
    for launcher in run.launchers:
        yield f"{launcher_words(launcher)}, process {launcher.pid}"
    if run.driver is not None:
        yield f"driver, process {run.driver.pid}"
    if run.job is not None:
        yield f"Ray job {run.job.submission_id}, {run.job.status}"


def _handle_of(run: FoundRun) -> str:
    if run.container is not None:
        return run.container.container.name
    return pid_of(run) or run.submission_id
