"""From what a person named, and what is running here, to the thing to watch.

A value that was typed beats one that was found; each keeps where it came from.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

from tui.errors import NothingFoundError, UsageError
from tui.miles.flags import launch_from_shell
from tui.model.launch import Attachment, Container, Found, LaunchArgs, host_path
from tui.model.reading import Known, Unknown
from tui.runs.docker import DockerEngine
from tui.runs.docker_answers import FoundContainer
from tui.runs.process import Driver, find_drivers

_FRESH_S = 120.0
"""A log written to within this time belongs to something that runs."""


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
    elif target.log is not None:
        base = _writer_of(target.log.absolute(), at)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class _Runs:
    """The runs on this machine."""

    containers: tuple[FoundContainer, ...]
    drivers: tuple[Driver, ...]
    """Those outside of these containers."""
    notes: tuple[str, ...]
    """What was looked for and not found."""

    @property
    def names(self) -> tuple[str, ...]:
        containers = tuple(each.container.name for each in self.containers)
        return containers + tuple(str(each.pid) for each in self.drivers)


def _runs(at: float) -> _Runs:
    containers = DockerEngine().find_miles_containers(at)
    notes = []
    if isinstance(containers, Unknown):
        notes.append(f"containers of Miles: {containers.reason}")
    elif not containers.value:
        notes.append("containers of Miles: none is running")
    found = containers.value if isinstance(containers, Known) else ()
    drivers = tuple(each for each in find_drivers(at) if not (found and each.foreign_mounts))
    if not drivers:
        notes.append("train.py or train_async.py processes: none that can be seen")
    return _Runs(containers=found, drivers=drivers, notes=tuple(notes))


def _discovered(at: float) -> Attachment:
    """The one run there is."""
    runs = _runs(at)
    if len(runs.names) > 1:
        raise UsageError(
            f"there are {len(runs.names)} runs on this machine: {', '.join(runs.names)}",
            "name one: milepost RUN",
        )
    if runs.names:
        return _of_only(runs, at)
    hint = "or name the log: milepost --log FILE --checkpoints DIR"
    return Attachment(notes=(*runs.notes, hint))


def _of_only(runs: _Runs, at: float) -> Attachment:
    if runs.containers:
        return _of_container(runs.containers[0], at)
    return _of_driver(runs.drivers[0])


def _writer_of(log: Path, at: float) -> Attachment:
    """The run that writes this log: the driver that prints into it, or the only run there is."""
    try:
        age_s = at - log.stat().st_mtime
    except OSError:
        return Attachment()
    if age_s > _FRESH_S:
        return Attachment()
    runs = _runs(at)
    for driver in runs.drivers:
        if isinstance(driver.output, Known) and Path(driver.output.value) == log.resolve():
            return _of_driver(driver)
    return _of_only(runs, at) if len(runs.names) == 1 else Attachment()


def _of_container(found: FoundContainer, at: float) -> Attachment:
    container = found.container
    source = f"container {container.name}"
    launch = launch_from_shell(" ".join((*found.argv, *found.environment)))
    attachment = Attachment(
        name=container.name,
        container=Found(value=container.id or container.name, source=source),
        log=Found(value=str(output_copy(container.id)), source=f"{source}, its output copied here"),
        launch=launch,
        checkpoints=_saves_of(launch, container, source),
    )
    inside = [driver for driver in find_drivers(at) if driver.foreign_mounts]
    if len(inside) != 1:
        return attachment
    driver = inside[0]
    attachment = replace(attachment, driver_pid=Found(value=str(driver.pid), source=source))
    if isinstance(driver.output, Known):
        log = host_path(driver.output.value, container.mounts)
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


def output_copy(container_id: str) -> Path:
    """Where a container's output is copied to when it goes to no file that can be read."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "milepost" / "output" / f"{container_id[:12]}.log"


def has_target(attachment: Attachment) -> bool:
    """There is something to watch."""
    return bool(
        attachment.log
        or attachment.checkpoints
        or attachment.engines
        or attachment.container
        or attachment.driver_pid
    )
