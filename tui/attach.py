"""From what a person named, and what is running here, to the thing to watch.

A value that was typed beats one that was found; each keeps where it came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from tui.config import Config
from tui.errors import NothingFoundError, UsageError
from tui.miles.flags import launch_from_shell
from tui.model.events import Attached
from tui.model.launch import Attachment, Container, Found, LaunchArgs, host_path
from tui.model.reading import Known, Unknown
from tui.model.reduce import reduce
from tui.model.snapshot import Snapshot
from tui.monitor import Monitor
from tui.probes import Probe
from tui.probes.checkpoints import CheckpointsProbe
from tui.probes.container import ContainerProbe
from tui.probes.engines import EnginesProbe
from tui.probes.gpu import GpuProbe
from tui.probes.log_tail import LogProbe
from tui.probes.memory import DiskProbe, MemoryProbe
from tui.probes.processes import ProcessesProbe
from tui.probes.simulated import SimulatedGpu
from tui.runs.docker import DockerEngine
from tui.runs.docker_answers import FoundContainer
from tui.runs.process import Driver, find_drivers


@dataclass(frozen=True, slots=True, kw_only=True)
class Target:
    """What a person named; nothing at all is fine."""

    name: str | None = None
    """A container, a pid, or a log file."""
    log: Path | None = None
    checkpoints: Path | None = None
    engines: tuple[str, ...] = ()
    container: str | None = None

    @property
    def is_empty(self) -> bool:
        """Nothing was named: what runs here decides."""
        return not (self.name or self.log or self.checkpoints or self.engines or self.container)


def attached(target: Target, *, at: float) -> Attachment:
    """What to watch.

    Raises:
        UsageError: a name that fits nothing, or several runs to choose from.
        NothingFoundError: a named container, process or file is not there.
    """
    target = _resolved(target)
    if target.container is not None:
        base = _of_container(_named_container(target.container, at), at)
    elif target.name is not None:
        base = _of_driver(_named_driver(int(target.name), at))
    elif target.is_empty:
        base = _discovered(at)
    else:
        base = Attachment()
    return _overridden(base, target)


def _resolved(target: Target) -> Target:
    """The positional name as what it is: a file, a pid, else a container."""
    name = target.name
    if name is None or name.isdigit():
        return target
    if Path(name).is_file():
        return replace(target, name=None, log=target.log or Path(name))
    if Path(name).is_dir():
        return replace(target, name=None, checkpoints=target.checkpoints or Path(name))
    if "/" in name:
        raise NothingFoundError(f"{name}: no such file or folder")
    return replace(target, name=None, container=target.container or name)


def _overridden(base: Attachment, target: Target) -> Attachment:
    if target.log is not None:
        log = Found(value=str(target.log.absolute()), source="--log")
        base = replace(base, log=log, name=base.name if base.name != "run" else target.log.stem)
    if target.checkpoints is not None:
        base = replace(
            base,
            checkpoints=Found(value=str(target.checkpoints.absolute()), source="--checkpoints"),
        )
    if target.engines:
        engines = tuple(Found(value=url, source="--engine") for url in target.engines)
        base = replace(base, engines=engines)
    return base


def _named_container(name: str, at: float) -> FoundContainer:
    answer = DockerEngine().find_miles_containers(at, name)
    if isinstance(answer, Unknown):
        raise NothingFoundError(f"container {name} cannot be looked up: {answer.reason}")
    if not answer.value:
        raise NothingFoundError(
            f"there is no container {name}", "`docker ps -a` lists the containers of this machine"
        )
    return answer.value[0]


def _named_driver(pid: int, at: float) -> Driver:
    for driver in find_drivers(at):
        if driver.pid == pid:
            return driver
    raise NothingFoundError(
        f"process {pid} is not a Miles driver (train.py or train_async.py)",
        "without RUN, milepost looks for one itself",
    )


def _discovered(at: float) -> Attachment:
    """The one run there is."""
    containers = DockerEngine().find_miles_containers(at)
    notes = []
    if isinstance(containers, Unknown):
        notes.append(f"containers of Miles: {containers.reason}")
    found = containers.value if isinstance(containers, Known) else ()
    if isinstance(containers, Known) and not found:
        notes.append("containers of Miles: none is running")
    drivers = tuple(each for each in find_drivers(at) if not (found and each.foreign_mounts))
    if not drivers:
        notes.append("train.py or train_async.py processes: none that can be seen")
    names = [each.container.name for each in found] + [str(each.pid) for each in drivers]
    if len(names) > 1:
        raise UsageError(
            f"there are {len(names)} runs on this machine: {', '.join(names)}",
            "name one: milepost RUN",
        )
    if found:
        return _of_container(found[0], at)
    if drivers:
        return _of_driver(drivers[0])
    return Attachment(notes=(*notes, "or name the log: milepost --log FILE --checkpoints DIR"))


def _of_container(found: FoundContainer, at: float) -> Attachment:
    container = found.container
    source = f"container {container.name}"
    launch = launch_from_shell(" ".join((*found.argv, *found.environment)))
    attachment = Attachment(
        name=container.name,
        container=Found(value=container.id or container.name, source=source),
        launch=launch,
        checkpoints=_saves_of(launch, container, source),
    )
    logs = [driver for driver in find_drivers(at) if driver.foreign_mounts]
    if len(logs) == 1 and isinstance(logs[0].output, Known):
        log = host_path(logs[0].output.value, container.mounts)
        if log is not None and Path(log).is_file():
            attachment = replace(attachment, log=Found(value=log, source=source))
    return attachment


def _saves_of(launch: LaunchArgs, container: Container, source: str) -> Found | None:
    if launch.save is None:
        return None
    mapped = host_path(launch.save, container.mounts)
    return None if mapped is None else Found(value=mapped, source=f"{source}, --save {launch.save}")


def _of_driver(driver: Driver) -> Attachment:
    source = f"process {driver.pid}"
    save = driver.launch.save
    if save is not None and not save.startswith("/") and driver.cwd:
        save = str(Path(driver.cwd) / save)
    log = None
    notes: tuple[str, ...] = ()
    if isinstance(driver.output, Known):
        log = Found(value=driver.output.value, source=f"{source}, its output")
    else:
        notes = (f"log of process {driver.pid}: {driver.output.reason}; name it with --log FILE",)
    return Attachment(
        name=Path(log.value).stem if log else f"pid {driver.pid}",
        log=log,
        checkpoints=Found(value=save, source=f"{source}, --save") if save else None,
        driver_pid=Found(value=str(driver.pid), source=source),
        launch=driver.launch,
        demo=driver.demo,
        notes=notes,
    )


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
    if attachment.driver_pid is not None:
        probes.append(ProcessesProbe())
    return Monitor(probes, first, interval_s=config.interval_s)


def has_target(attachment: Attachment) -> bool:
    """There is something to watch."""
    return bool(
        attachment.log
        or attachment.checkpoints
        or attachment.engines
        or attachment.container
        or attachment.driver_pid
    )
