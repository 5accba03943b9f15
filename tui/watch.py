"""Assemble a monitor for an attachment: which probes look at it, and one that finds the run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tui.attach import Target, completed, found, ray_answer, started_again
from tui.config import Config
from tui.errors import MilepostError
from tui.model.events import Attached, Event, RunsFound
from tui.model.judge.standing import ENDED
from tui.model.launch import Attachment, Found, ListedRun
from tui.model.reduce import reduce
from tui.model.snapshot import Snapshot
from tui.monitor import Monitor
from tui.probes import Probe
from tui.probes.checkpoints import CheckpointsProbe
from tui.probes.container import ContainerProbe
from tui.probes.container_log import ContainerLogProbe
from tui.probes.engines import EnginesProbe
from tui.probes.gone import GoneProbe
from tui.probes.gpu import GpuProbe
from tui.probes.guard import GuardProbe
from tui.probes.job import JobProbe
from tui.probes.journal import JournalProbe
from tui.probes.log_tail import LogProbe
from tui.probes.memory import DiskProbe, MemoryProbe
from tui.probes.processes import ProcessesProbe
from tui.probes.recipe import RecipeProbe
from tui.probes.save_path import save_path
from tui.probes.simulated import SimulatedGpu
from tui.probes.verify import VerifyProbe
from tui.runs.attachment import output_copy
from tui.runs.merge import FoundRun
from tui.runs.recipe_end import has_ended
from tui.runs.recipe_store import kept
from tui.runs.sameness import is_of
from tui.runs.state_dir import run_folder
from tui.successor import SuccessorFinder

_GLANCE_S = 3.0


class RunFinder:
    """Goes on looking for the run, or for the rest of it: it may start after we did."""

    name = "run"
    cadence_s = 5.0
    deadline_s = 10.0

    def __init__(self, target: Target) -> None:
        self._target = target
        self._log_bytes: int | None = None
        """Size of the named log at the first look."""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Look again until there is a driver, or the log has told the end; then for a new start."""
        attachment = seen.attachment
        if seen.verdict.state in ENDED and not seen.action_holder:
            return self._started_again(attachment, now)
        if attachment.driver_pid is not None or seen.story.ending is not None:
            return ()
        try:
            finding = found(self._aim(attachment), at=now, log_grows=self._log_grows(), past=True)
        except MilepostError:
            return ()
        if finding.choices:
            return (RunsFound(at=now, runs=finding.choices),)
        later = completed(attachment, finding.attachment)
        if later == attachment and not seen.choices:
            return ()
        return (Attached(at=now, attachment=later),)

    def close(self) -> None:
        """Nothing is held."""

    def _started_again(self, attachment: Attachment, now: float) -> Sequence[Event]:
        later = started_again(attachment, now)
        if later is None:
            return ()
        later = replace(later, name=attachment.name, read_only=attachment.read_only)
        return (Attached(at=now, attachment=later, succeeds=True),)

    def _aim(self, attachment: Attachment) -> Target:
        """What a person named; else the run that is watched already, so that no other is taken."""
        if not self._target.is_empty:
            return self._target
        if attachment.container is not None:
            return Target(container=attachment.container.value)
        if attachment.log is not None:
            return Target(log=Path(attachment.log.value))
        return self._target

    def _log_grows(self) -> bool:
        """Whether the named log is longer than at the first look."""
        if self._target.log is None:
            return False
        try:
            size = self._target.log.stat().st_size
        except OSError:
            return False
        if self._log_bytes is None:
            self._log_bytes = size
        return size > self._log_bytes


class DriverProcesses(ProcessesProbe):
    """The processes of a driver that is known: without one, those of other runs would count."""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Nothing to tell before there is a driver."""
        return () if seen.attachment.driver_pid is None else super().read(now, seen)


def run_seen(attachment: Attachment, at: float) -> FoundRun | None:
    """All that is seen now of what is watched; None where nothing of it runs any more."""
    container, inside = attachment.container, attachment.driver_pid or attachment.job
    target = Target(container=container.value if container is not None else None)
    if inside is not None:
        target = Target(name=inside.value)
    try:
        run = found(target, at=at).run
    except MilepostError:
        return None
    return run if run is not None and is_of(run, attachment) else None


def is_gone(attachment: Attachment, at: float) -> bool:
    """What wrote its log was seen on this machine, has ended, and nothing of it is seen."""
    recipe = kept(run_folder(attachment))
    if recipe is None or attachment.log is None or not recipe.log:
        return False
    # Another log is that of a start that nobody has seen running yet.
    if os.path.realpath(recipe.log) != os.path.realpath(attachment.log.value):
        return False
    if not has_ended(recipe, at):
        return False
    try:
        return found(Target(log=Path(attachment.log.value)), at=at).run is None
    except MilepostError:
        return False


def monitor_of(
    attachment: Attachment,
    config: Config,
    *,
    at: float,
    target: Target | None = None,
    choices: tuple[ListedRun, ...] = (),
    demo_folder: Path | None = None,
    extra: Sequence[Probe] = (),
) -> Monitor:
    """A monitor of that attachment.

    Args:
        attachment: what is known to be watched.
        config: limits, cadence, and whether anything may be changed.
        at: now, in epoch seconds.
        target: what a person named; given, the run is looked for as long as it is not found.
        choices: several runs that a person may choose from.
        demo_folder: a demo brings a box of its own, in its folder.
        extra: more probes.
    """
    attachment = replace(attachment, read_only=config.read_only)
    first = Snapshot(limits=config.limits, now=at)
    first = reduce(first, Attached(at=at, attachment=attachment))
    first = reduce(first, RunsFound(at=at, runs=choices))
    probes: list[Probe] = [LogProbe(), *_box(demo_folder), DiskProbe(), EnginesProbe()]
    probes += [CheckpointsProbe(), VerifyProbe(), ContainerProbe(), ContainerLogProbe(output_copy)]
    probes += [
        DriverProcesses(),
        GoneProbe(is_gone),
        JobProbe(ray_answer),
        JournalProbe(),
        GuardProbe(),
        *([RunFinder(target)] if target is not None else []),
        RecipeProbe(run_seen),
        SuccessorFinder(at),
    ]
    return Monitor([*probes, *extra], first, interval_s=config.interval_s)


def glanced(run: ListedRun, config: Config, *, at: float) -> tuple[ListedRun, Snapshot]:
    """What its log, container and processes tell within a moment. No engine is asked.

    Where the command line was silent, the run comes back with the save folder its log names.
    """
    first = Snapshot(limits=config.limits, now=at)
    first = reduce(first, Attached(at=at, attachment=run.attachment))
    probes = (LogProbe(), ContainerProbe(), ContainerLogProbe(output_copy), DriverProcesses())
    snapshot = Monitor(probes, first).once(deadline_s=_GLANCE_S)
    saved = save_path(snapshot, at)
    if run.attachment.checkpoints is None and isinstance(saved, str):
        checkpoints = Found(value=saved, source="--save in its log")
        run = replace(run, attachment=replace(run.attachment, checkpoints=checkpoints))
    return run, snapshot


def _box(demo_folder: Path | None) -> Sequence[Probe]:
    if demo_folder is None:
        return GpuProbe(), MemoryProbe()
    return SimulatedGpu(demo_folder / "gpu.json"), MemoryProbe(str(demo_folder / "meminfo"))
