"""A container's output copied to a file of ours, for a run whose output goes to no file.

The copy is what the log probe follows, and what is left when `--rm` takes the container along.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

from tui.model.events import Event, LogUnreadable
from tui.model.reading import Absence, Unknown
from tui.model.snapshot import Snapshot
from tui.runs.docker import DockerEngine

FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 30.0


class ContainerLogProbe:
    """Copies one container's output for as long as it runs.

    What an earlier copy holds already is skipped by its length, so nothing is doubled.
    """

    name = "container log"
    cadence_s = 2.0
    deadline_s = 5.0

    def __init__(self, copy_of: Callable[[str], Path], engine: DockerEngine | None = None) -> None:
        """`copy_of` says where the output of a container, by its id, is copied to."""
        self._copy_of = copy_of
        self._engine = engine or DockerEngine()
        self._closing = threading.Event()
        self._container_id = ""
        self._copy = Path()
        self._fault = ""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Begin copying when the copy is what is watched; then say what is wrong, if anything."""
        container, log = seen.attachment.container, seen.attachment.log
        if container is None or log is None:
            return ()
        copy = self._copy_of(container.value)
        if log.value != str(copy):
            return ()
        if container.value != self._container_id:
            self._container_id, self._copy = container.value, copy
            threading.Thread(target=self._run, name="container-log", daemon=True).start()
        if not self._fault:
            return ()
        fault = Unknown(why=Absence.ERROR, reason=self._fault, at=now)
        return (LogUnreadable(at=now, path=str(self._copy), fault=fault),)

    def close(self) -> None:
        """Stop copying; a read that blocks ends with the process."""
        self._closing.set()

    def _run(self) -> None:
        pause_s = FIRST_PAUSE_S
        while not self._closing.is_set():
            try:
                self._copy_all()
            except FileNotFoundError:
                return
            except OSError as error:
                self._fault = f"the container's output: {error}"
                self._closing.wait(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)
            else:
                # The stream also ends when the engine restarts: ask for all of it again.
                self._closing.wait(pause_s)
                pause_s = min(LONGEST_PAUSE_S, 2 * pause_s)

    def _copy_all(self) -> None:
        """The output from its beginning, without the bytes that the copy holds already."""
        self._copy.parent.mkdir(parents=True, exist_ok=True)
        copied = self._copy.stat().st_size if self._copy.exists() else 0
        with self._copy.open("ab") as out:
            for chunk in self._engine.follow_logs(self._container_id, 0.0):
                self._fault = ""
                known, copied = chunk[:copied], max(0, copied - len(chunk))
                out.write(chunk[len(known) :])
                out.flush()
                if self._closing.is_set():
                    return
