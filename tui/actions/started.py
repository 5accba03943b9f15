"""What a resume has started, by what its journal says of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tui.actions import containers, ray_jobs
from tui.actions.signals import boot_id, is_alive
from tui.actions.stopping import Patience, stop_tree
from tui.model.action import ActionRecord
from tui.model.reading import Absence, Unknown
from tui.model.target import JobTarget, ProcessTarget
from tui.runs.ray_jobs import URL


def process_of(facts: Mapping[str, str]) -> ProcessTarget | None:
    """The process that was started; None where it was none of ours."""
    pid, ticks = facts.get("pid", ""), facts.get("pid_ticks", "")
    if not (pid.isdecimal() and ticks.isdecimal()):
        return None
    return ProcessTarget(pid=int(pid), start_ticks=int(ticks), boot_id=boot_id())


def goes_on(facts: Mapping[str, str], at: float) -> bool:
    """Whether anything of it lives; so it is called too while nobody can tell."""
    process = process_of(facts)
    if process is not None and is_alive(process):
        return True
    if container := facts.get("container_id"):
        return containers.is_running_now(container)
    if submission_id := facts.get("submission_id"):
        found = ray_jobs.find(JobTarget(submission_id=submission_id, address=URL), at)
        if isinstance(found, Unknown):
            return found.why is not Absence.MISSING
        return found.value.is_active
    return process is None


def end_started(records: Iterable[ActionRecord], grace_s: float) -> None:
    """End the processes that these actions started: those of a demo do not outlive it."""
    for record in records:
        process = process_of(record.facts)
        if process is not None and is_alive(process):
            stop_tree(process, patience=Patience(grace_s=grace_s))
