"""Assemble a monitor for an attachment: which probes look at it, and one that finds the run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tui.attach import Target, attached, output_copy
from tui.config import Config
from tui.errors import MilepostError
from tui.model.events import Attached, Event
from tui.model.launch import Attachment
from tui.model.reduce import reduce
from tui.model.snapshot import Snapshot
from tui.monitor import Monitor
from tui.probes import Probe
from tui.probes.checkpoints import CheckpointsProbe
from tui.probes.container import ContainerProbe
from tui.probes.container_log import ContainerLogProbe
from tui.probes.engines import EnginesProbe
from tui.probes.gpu import GpuProbe
from tui.probes.log_tail import LogProbe
from tui.probes.memory import DiskProbe, MemoryProbe
from tui.probes.processes import ProcessesProbe
from tui.probes.simulated import SimulatedGpu


class RunFinder:
    """Goes on looking for the run: its container may start after we did."""

    name = "run"
    cadence_s = 5.0
    deadline_s = 10.0

    def __init__(self, target: Target) -> None:
        self._target = target

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Look again, until there is a container or a driver, or the log has told the end."""
        attachment = seen.attachment
        is_found = attachment.container is not None or attachment.driver_pid is not None
        if is_found or seen.story.ending is not None:
            return ()
        try:
            found = attached(self._target, at=now)
        except MilepostError:
            return ()
        if found.container is None and found.driver_pid is None:
            return ()
        return (Attached(at=now, attachment=replace(found, read_only=attachment.read_only)),)

    def close(self) -> None:
        """Nothing is held."""


class DriverProcesses(ProcessesProbe):
    """The processes of a driver that is known: without one, those of other runs would count."""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Nothing to tell before there is a driver."""
        return () if seen.attachment.driver_pid is None else super().read(now, seen)


def monitor_of(
    attachment: Attachment,
    config: Config,
    *,
    at: float,
    target: Target | None = None,
    demo_folder: Path | None = None,
) -> Monitor:
    """A monitor of that attachment.

    Args:
        attachment: what is known to be watched.
        config: limits, cadence, and whether anything may be changed.
        at: now, in epoch seconds.
        target: what a person named; given, the run is looked for as long as it is not found.
        demo_folder: a demo brings a box of its own, in its folder.
    """
    attachment = replace(attachment, read_only=config.read_only)
    first = Snapshot(limits=config.limits, now=at)
    first = reduce(first, Attached(at=at, attachment=attachment))
    probes: list[Probe] = [LogProbe(), *_box(demo_folder), DiskProbe(), EnginesProbe()]
    probes += [CheckpointsProbe(), ContainerProbe(), ContainerLogProbe(output_copy)]
    probes += [DriverProcesses(), *([RunFinder(target)] if target is not None else [])]
    return Monitor(probes, first, interval_s=config.interval_s)


def _box(demo_folder: Path | None) -> Sequence[Probe]:
    if demo_folder is None:
        return GpuProbe(), MemoryProbe()
    return SimulatedGpu(demo_folder / "gpu.json"), MemoryProbe(str(demo_folder / "meminfo"))
