"""Start a command so that it begins at most once, whoever is killed on the way.

The helper process that becomes the command writes a mark the instant before, and holds the mark's
lock until it has begun or never will. Entered again, whoever gets the lock reads the truth.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from tui.actions import spawn
from tui.actions.signals import boot_id
from tui.model.codec import encoded
from tui.model.recipe import Bounds
from tui.model.target import ProcessTarget

FILE = "start"
_HELPER = Path(spawn.__file__)
_LOCK_S = 30.0
_BEGIN_S = 60.0
_LOOK_S = 0.05


class NotBegunError(Exception):
    """The command did not begin, and will not; says why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """What to start."""

    argv: tuple[str, ...]
    environment: Sequence[tuple[str, str]]
    cwd: str
    log: str
    """Where it prints: a new file, or an empty one that an attempt before this one made."""
    bounds: Bounds | None = None
    """None: ours."""


@dataclass(frozen=True, slots=True)
class Gate:
    """Held by the one who may start something of a run."""

    mark: int
    """The open file."""
    key: str

    @property
    def begun(self) -> ProcessTarget | None:
        """What was started under this key; it may have ended since."""
        return _begun(self.mark, self.key)

    def start(self, command: Command, *, again: bool = False) -> ProcessTarget:
        """Start it.

        Args:
            command: what.
            again: an attempt before this one may have made the log already.

        Raises:
            NotBegunError: it did not begin.
        """
        log = opened_log(command.log, again=again)
        try:
            told = _handed_over(command, self.key, self.mark, log)
        finally:
            os.close(log)
        begun = self.begun
        if begun is None:
            raise NotBegunError(f"{command.argv[0]} cannot be started: {told or 'it was killed'}")
        return begun


@contextmanager
def gate(folder: Path, key: str) -> Iterator[Gate]:
    """Be the one who may start something of this run.

    Args:
        folder: the run's state folder.
        key: of the start: under one key nothing begins twice.

    Raises:
        NotBegunError: a start before this one hangs.
        OSError: the mark cannot be used.
    """
    mark = os.open(folder / FILE, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        _lock(mark)
        yield Gate(mark, key)
    finally:
        os.close(mark)


def opened_log(path: str, *, again: bool) -> int:
    """A new file to print into, or one that was made for it and is still empty.

    Raises:
        NotBegunError: there is something at that path, or none can be made.
    """
    flags = os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC | os.O_NOFOLLOW
    try:
        return os.open(path, flags | os.O_CREAT | os.O_EXCL, 0o644)
    except FileExistsError:
        if again:
            number = os.open(path, flags)
            if os.fstat(number).st_size == 0:
                return number
            os.close(number)
        raise NotBegunError(f"{path} is there already, and is not overwritten") from None
    except OSError as fault:
        raise NotBegunError(f"{path} cannot be made: {fault.strerror}") from fault


def _handed_over(command: Command, key: str, mark: int, log: int) -> str:
    """Have the helper become it. Returns when it has, or will not any more: why."""
    order = spawn.Order(
        key=key,
        boot_id=boot_id(),
        argv=list(command.argv),
        environment=dict(reversed(command.environment)),  # of a name given twice the first counts
        cwd=command.cwd or "/",
        bounds=encoded(command.bounds),
    )
    helper = subprocess.Popen(  # noqa: S603 - our own file
        [sys.executable, "-I", "-S", str(_HELPER), str(mark), str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        pass_fds=(mark, log),
    )
    try:
        told, _ = helper.communicate(json.dumps(order).encode("ascii"), timeout=_BEGIN_S)
    except subprocess.TimeoutExpired:
        return f"nothing happens: does {order['cwd']} answer?"
    return told.decode("utf-8", "replace").strip().rpartition("\n")[2]


def _lock(mark: int) -> None:
    end = time.monotonic() + _LOCK_S
    while True:
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > end:
                raise NotBegunError("a start before this one hangs") from None
            time.sleep(_LOOK_S)
        else:
            return


def _begun(mark: int, key: str) -> ProcessTarget | None:
    """A mark that cannot be read is of a box that went down, and everything with it."""
    try:
        told, pid, start_ticks, boot = json.loads(os.pread(mark, spawn.MARK_BYTES, 0))
    except (ValueError, TypeError):
        return None
    if told != key:
        return None
    return ProcessTarget(pid=pid, start_ticks=start_ticks, boot_id=boot)
