"""From what a person named, and what is running here, to the thing to watch.

A value that was typed beats one that was found; each keeps where it came from.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from pathlib import Path

import psutil

from tui.errors import NothingFoundError, UsageError
from tui.model.action import ActionKind
from tui.model.launch import Attachment, Found, ListedRun
from tui.model.reading import Absence, Reading, Unknown, known
from tui.probes.http_get import fetch
from tui.runs import ray_jobs
from tui.runs.attachment import attachment_of, output_is_known, output_paths
from tui.runs.journal import Journal
from tui.runs.listing import listed
from tui.runs.look import look_around, looked_for
from tui.runs.merge import FoundRun, Sightings, merged
from tui.runs.next_log import original_stem
from tui.runs.state_dir import kept_runs, run_id, runs_folder

_MOST_PAST = 20
_STARTED = frozenset({"log", "container_id", "submission_id"})
"""Facts of a resume that name what it started."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a person named; nothing at all is fine."""

    name: str | None = None
    """A container, a pid, a Ray job, or a log file."""
    log: Path | None = None
    checkpoints: Path | None = None
    engines: tuple[str, ...] = ()
    container: str | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing was named: what runs here decides."""
        return not (self.name or self.log or self.checkpoints or self.engines or self.container)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """What there is to watch; or several runs to choose from; or neither, and what was sought."""

    attachment: Attachment
    choices: tuple[ListedRun, ...] = ()
    run: FoundRun | None = None
    """What was seen of it, with what must not be shown; None: nothing of it runs."""


def found(target: Target, *, at: float, log_grows: bool = False, past: bool = False) -> Finding:
    """What to watch.

    Args:
        target: what a person named.
        at: now, in epoch seconds.
        log_grows: the named log was seen growing, so something that runs here writes it.
        past: runs that were seen before and are gone count where nothing runs.

    Raises:
        UsageError: a name that fits several runs.
        NothingFoundError: a named run, container, process or file is not there.
    """
    target = _resolved(target)
    name = target.container or target.name
    if name is not None:
        seen = _seen(at, name)
        run: FoundRun | None = _of_id(name, seen)
        gone = _gone(name, seen) if past and run is None else None
        if gone is not None:
            return Finding(attachment=_overridden(gone, target))
        run = run or _named(name, seen, only_container=target.container is not None)
    elif target.is_empty:
        return _discovered(_seen(at), past=past)
    elif target.log is not None:
        run = _writer_of(target.log, _seen(at), log_grows=log_grows)
    else:
        run = None
    base = attachment_of(run) if run is not None else Attachment()
    return Finding(attachment=_overridden(base, target), run=run)


def attached(target: Target, *, at: float) -> Attachment:
    """What to watch, where nobody can be asked to choose.

    Raises:
        UsageError: a name that fits several runs, or none was named and there are several.
        NothingFoundError: a named run, container, process or file is not there.
    """
    finding = found(target, at=at)
    if finding.choices:
        raise UsageError(
            f"there are {len(finding.choices)} runs on this machine: {_names(finding.choices)}",
            "name one, as in `milepost RUN`; `milepost runs` tells them apart",
        )
    return finding.attachment


def all_runs(at: float) -> tuple[tuple[ListedRun, ...], tuple[str, ...]]:
    """Every run on this machine, and what was looked for in vain or could not be looked at."""
    seen = _seen(at)
    return listed(merged(seen)), looked_for(seen)


def has_target(attachment: Attachment) -> bool:
    """There is something to watch."""
    return bool(
        attachment.log
        or attachment.checkpoints
        or attachment.engines
        or attachment.container
        or attachment.driver_pid
        or attachment.job
    )


def completed(before: Attachment, later: Attachment) -> Attachment:
    """What is watched, with what was found of it since and was missing."""
    is_run = later.container or later.driver_pid or later.job
    if not is_run and has_target(before):
        return before
    return replace(
        later,
        log=before.log or later.log,
        checkpoints=before.checkpoints or later.checkpoints,
        engines=before.engines or later.engines,
        launch=before.launch if before.launch.argv else later.launch,
        read_only=before.read_only,
    )


def started_again(before: Attachment, at: float) -> Attachment | None:
    """Another start of the run that was watched, whoever began it; None: nothing of it runs."""
    for run in merged(_seen(at)):
        later = attachment_of(run)
        pairs = ((before.container, later.container), (before.log, later.log))
        is_other = any(old and new and old.value != new.value for old, new in pairs)
        if is_other and run_id(later) == run_id(before):
            return later
    return None


def is_of_start(attachment: Attachment, started: Mapping[str, str]) -> bool:
    """Whether this is what an action says that it started: by log, container or job."""
    places = (attachment.log, attachment.container, attachment.job)
    named = {started.get(key) for key in _STARTED} - {None}
    return any(place.value in named for place in places if place is not None)


def _seen(at: float, name: str = "") -> Sightings:
    return look_around(at, ray_answer, name)


def ray_answer(at: float) -> Reading[str]:
    """What Ray's dashboard says of its jobs."""
    answer = fetch(ray_jobs.URL, ray_jobs.PATH, at)
    if isinstance(answer, Unknown):
        return answer
    if answer.value.status != HTTPStatus.OK:
        reason = f"it answers with status {answer.value.status}"
        return Unknown(why=Absence.ERROR, reason=reason, at=at)
    return known(answer.value.text, at)


def _resolved(target: Target) -> Target:
    """The positional name as what it is: a file, a folder, else the name of a run."""
    name = target.name
    if name is None or name.isdigit():
        return target
    # Not pathlib's: a name too long for a file is none, not an error.
    if os.path.isfile(name):  # noqa: PTH113
        return replace(target, name=None, log=target.log or Path(name))
    if os.path.isdir(name):  # noqa: PTH112
        return replace(target, name=None, checkpoints=target.checkpoints or Path(name))
    return target


def _overridden(base: Attachment, target: Target) -> Attachment:
    if target.log is not None:
        log = Found(value=str(target.log.absolute()), source="--log")
        base = replace(
            base, log=log, name=base.name if base.name != "run" else original_stem(log.value)
        )
    if target.checkpoints is not None:
        base = replace(
            base,
            checkpoints=Found(value=str(target.checkpoints.absolute()), source="--checkpoints"),
        )
    if target.engines:
        engines = tuple(Found(value=url, source="--engine") for url in target.engines)
        base = replace(base, engines=engines)
    return base


def _named(name: str, seen: Sightings, *, only_container: bool) -> FoundRun:
    runs = merged(seen, ended_job=name)
    fitting = [
        run
        for run in runs
        if _answers(run, name) and (run.container is not None or not only_container)
    ]
    if not fitting:
        raise _not_there(name, seen)
    if len(fitting) > 1:  # the ended job of that id is beside the one that was started after it
        fitting = [run for run in fitting if run.job is None or run.job.is_active]
    if len(fitting) > 1:
        raise UsageError(
            f"{name} fits {len(fitting)} runs: {_names(listed(fitting))}", "name one of these"
        )
    return fitting[0]


def _answers(run: FoundRun, name: str) -> bool:
    """Whether a person can mean it: by what it is found by, by its name, by that of its folder."""
    if run.answers_to(name):
        return True
    attachment = attachment_of(run)
    return name in (attachment.name, run_id(attachment))


def _names(runs: Sequence[ListedRun]) -> str:
    """What each is named by, with what it is known as where that is another word."""
    return ", ".join(
        run.handle if run.handle == run.attachment.name else f"{run.handle} ({run.attachment.name})"
        for run in runs
    )


def _not_there(name: str, seen: Sightings) -> NothingFoundError:
    if "/" in name:
        return NothingFoundError(f"{name}: no such file or folder")
    if name.isdigit():
        return NothingFoundError(
            f"process {name} is not a Miles driver (train.py or train_async.py), nor the launcher "
            "or docker client of one",
            "without RUN, milepost looks for one itself",
        )
    if isinstance(seen.containers, Unknown):
        return NothingFoundError(
            f"container {name} cannot be looked up: {seen.containers.reason}",
            "and no Ray job or file is called so",
        )
    return NothingFoundError(
        f"there is no container {name}, and no Ray job or file is called so",
        "`milepost runs` lists the runs, `docker ps -a` the containers of this machine",
    )


def _of_id(name: str, seen: Sightings) -> FoundRun | None:
    """The run that has this state folder, whatever container, log or pid it has by now."""
    folder = runs_folder() / name
    if "/" in name or not os.path.isdir(folder):  # noqa: PTH112 - as in `_resolved`
        return None
    started = _newest_start(folder)
    for run in merged(seen):
        attachment = attachment_of(run)
        if run_id(attachment) == name or is_of_start(attachment, started):
            return run
    return None


def _newest_start(folder: Path) -> Mapping[str, str]:
    """What was started in place of the run by the last resume that came so far."""
    with suppress(OSError):
        for record in reversed(Journal(folder).actions()):
            if record.kind is ActionKind.RESUME and not _STARTED.isdisjoint(record.facts):
                return record.facts
    return {}


def _gone(name: str, seen: Sightings) -> Attachment | None:
    """A run of that name that was seen before, where none that is there answers to it."""
    if any(_answers(run, name) for run in merged(seen, ended_job=name)):
        return None
    fitting = [run for run in kept_runs() if run.answers_to(name)]
    exact = [run for run in fitting if run.id == name]
    if len(exact or fitting) > 1:
        ids = ", ".join(run.id for run in fitting)
        raise UsageError(f"{name} fits {len(fitting)} runs that are gone: {ids}", "name one")
    return _without_stranger(fitting[0].attachment) if fitting else None


def _without_stranger(attachment: Attachment) -> Attachment:
    """Nothing of the run is there: whoever has its driver's pid now is somebody else."""
    pid = attachment.driver_pid
    if pid is None or not psutil.pid_exists(int(pid.value)):
        return attachment
    return replace(attachment, driver_pid=None)


def _past_runs() -> tuple[ListedRun, ...]:
    return tuple(
        ListedRun(
            handle=run.id,
            attachment=run.attachment,
            state="gone",
            log_written_at=_written_at(run.attachment),
            found_by=("seen before",),
        )
        for run in kept_runs()[:_MOST_PAST]
        if _is_left(run.attachment)
    )


def _is_left(attachment: Attachment) -> bool:
    """Something of it is still there: a log, or where it saved."""
    places = (attachment.log, attachment.checkpoints)
    return any(Path(place.value).exists() for place in places if place is not None)


def _written_at(attachment: Attachment) -> float:
    try:
        return Path(attachment.log.value).stat().st_mtime if attachment.log else 0.0
    except OSError:
        return 0.0


def _discovered(seen: Sightings, *, past: bool) -> Finding:
    """The one run there is, or all. A container that only could hold one counts when none runs."""
    runs = merged(seen)
    if not runs and past:
        return Finding(attachment=Attachment(notes=looked_for(seen)), choices=_past_runs())
    working = [run for run in runs if not run.is_idle] or runs
    if len(working) == 1:
        return Finding(attachment=attachment_of(working[0]), run=working[0])
    return Finding(attachment=Attachment(notes=looked_for(seen)), choices=listed(working))


def _writer_of(log: Path, seen: Sightings, *, log_grows: bool) -> FoundRun | None:
    """The run that prints into this very file; a copied file has none.

    Where it cannot be read where a run prints, and that is the only run, a log that grows is its.
    """
    runs = merged(seen)
    for run in runs:
        if any(_is_same_file(path, log) for path in output_paths(run)):
            return run
    if log_grows and len(runs) == 1 and not output_is_known(runs[0]):
        return runs[0]
    return None


def _is_same_file(path: str, log: Path) -> bool:
    try:
        return log.samefile(path)
    except OSError:
        return False
