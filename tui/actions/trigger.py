"""The save trigger: a file that we create, and that the run finds, obeys, and removes.

It is created exclusively, so that a request which is under way is never made a second time, and
never removed by us: a run whose trigger is gone when its save is done ends.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from tui.actions.containers import exec_in
from tui.actions.errors import Refused
from tui.actions.rights import mount_seen_by, user_of
from tui.actions.signals import is_alive
from tui.model.launch import host_path
from tui.model.reading import Unknown
from tui.model.target import ProcessTarget, RunTarget
from tui.runs.attachment import mounts_of
from tui.runs.merge import FoundRun


class Look(StrEnum):
    """What is at the trigger's path."""

    ABSENT = "absent"
    PENDING = "pending"
    """A request that was not carried out yet."""
    FOLDER = "folder"
    DANGLING = "dangling"
    """A link that leads nowhere."""
    NO_FOLDER = "no-folder"
    READ_ONLY = "read-only"


_LOOK = """
d=${0%/*}; [ -d "${d:=/}" ] || { echo no-folder; exit; }
[ -d "$0" ] && { echo folder; exit; }
[ -e "$0" ] && { echo pending; exit; }
[ -L "$0" ] && { echo dangling; exit; }
if [ -w "$d" ]; then echo absent; else echo read-only; fi
"""
_CREATE = 'set -C; : > "$0"'
_SHELL = "/bin/sh"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trigger:
    """Its path, and the way to it."""

    path: str
    """As the run sees it."""
    here: str = ""
    """The same by a path of ours; empty: by a command in the container."""
    container_id: str = ""
    driver: ProcessTarget | None = None

    def look(self) -> Look:
        """What is there. Raises OSError."""
        if self.here:
            return _look_here(self.here)
        code, told = self._run(_LOOK)
        if code != 0 or told not in tuple(Look):
            raise OSError(f"{self.path} in the container: {told[:200]}")
        return Look(told)

    def create(self) -> bool:
        """Ask; False where it was asked already. Raises OSError."""
        if self.here:
            return self._create_here()
        code, told = self._run(_CREATE)
        if code == 0:
            return True
        if self.look() is Look.PENDING:
            return False
        raise OSError(f"{self.path} in the container: {told[:200]}")

    def _create_here(self) -> bool:
        folder, name = os.path.split(self.here)
        parent = os.open(folder, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            # A path by way of the driver's pid is of the driver if that is alive after the opening.
            if self.driver is not None and not is_alive(self.driver):
                raise ProcessLookupError(f"process {self.driver.pid} is gone")
            flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
            number = os.open(name, flags, 0o644, dir_fd=parent)
        except FileExistsError:
            return False
        finally:
            os.close(parent)
        if self.driver is not None and os.geteuid() == 0:
            with suppress(OSError):
                os.fchown(number, *user_of(self.driver.pid))
        os.close(number)
        return True

    def _run(self, script: str) -> tuple[int, str]:
        ran = exec_in(self.container_id, (_SHELL, "-c", script, self.path))
        if isinstance(ran, Unknown):
            raise OSError(ran.reason)
        return ran.value.exit_code, ran.value.output.strip()


def trigger_of(path: str, run: FoundRun, target: RunTarget) -> Trigger:
    """The trigger of a run, by the way that is surest: a path of ours before a command inside.

    Raises:
        Refused: there is no way to it.
    """
    driver = target.driver
    if run.is_here:
        return Trigger(path=path, here=path, driver=driver)
    for here in _paths_here(path, run, driver):
        return Trigger(path=path, here=here, driver=driver)
    if target.container is not None:
        return Trigger(path=path, container_id=target.container.id, driver=driver)
    raise Refused(
        f"{path} lies in another mount namespace, which cannot be reached from here",
        "run milepost as root, or as a user who may ask Docker",
    )


def _paths_here(path: str, run: FoundRun, driver: ProcessTarget | None) -> Iterator[str]:
    """Paths of ours that lead to the same place for certain."""
    if driver is None:
        return
    mapped = host_path(path, mounts_of(run))
    if mapped is not None and _is_same_place(mapped, path, driver):
        yield mapped
    root = f"/proc/{driver.pid}/root"
    if os.geteuid() == 0 and not _has_link(root, posixpath.dirname(path)):
        yield f"{root}{path}"


def _is_same_place(mapped: str, path: str, driver: ProcessTarget) -> bool:
    """No link leads elsewhere on our side, and no further mount on the driver's."""
    folder = posixpath.dirname(mapped)
    if os.path.realpath(folder) != folder or not os.access(folder, os.W_OK | os.X_OK):
        return False
    with suppress(OSError):
        device = Path(folder).stat().st_dev
        seen = mount_seen_by(driver.pid, posixpath.dirname(path), device)
        return seen.device == f"{os.major(device)}:{os.minor(device)}"
    return False


def _has_link(root: str, folder: str) -> bool:
    """A link on the way below another root leads out of it, into ours."""
    parts = [part for part in folder.split("/") if part]
    return any(
        os.path.islink(f"{root}/{'/'.join(parts[: end + 1])}")  # noqa: PTH114 - as text
        for end in range(len(parts))
    )


def _look_here(path: str) -> Look:
    file, folder = Path(path), Path(path).parent
    if not folder.is_dir():
        return Look.NO_FOLDER
    if file.is_dir():
        return Look.FOLDER
    if file.exists():
        return Look.PENDING
    if file.is_symlink():
        return Look.DANGLING
    return Look.ABSENT if os.access(folder, os.W_OK | os.X_OK) else Look.READ_ONLY
