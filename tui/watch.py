"""Assemble a monitor for an attachment: which probes look at it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from tui.attach import output_copy
from tui.config import Config
from tui.model.events import Attached
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


def monitor_of(
    attachment: Attachment, config: Config, *, at: float, demo_folder: Path | None = None
) -> Monitor:
    """A monitor of that attachment. A demo brings a box of its own, in its folder."""
    attachment = replace(attachment, read_only=config.read_only)
    first = Snapshot(limits=config.limits, now=at)
    first = reduce(first, Attached(at=at, attachment=attachment))
    box: Sequence[Probe]
    if demo_folder is not None:
        box = (SimulatedGpu(demo_folder / "gpu.json"), MemoryProbe(str(demo_folder / "meminfo")))
    else:
        box = (GpuProbe(), MemoryProbe())
    probes: list[Probe] = [LogProbe(), *box, DiskProbe(), EnginesProbe(), CheckpointsProbe()]
    if attachment.container is not None:
        probes.append(ContainerProbe())
        copy = output_copy(attachment.container.value)
        if attachment.log is not None and attachment.log.value == str(copy):
            probes.append(ContainerLogProbe(attachment.container.value, copy))
    if attachment.driver_pid is not None:
        probes.append(ProcessesProbe())
    return Monitor(probes, first, interval_s=config.interval_s)
