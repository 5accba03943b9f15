"""A container's output copied to a file of ours, for a run whose output goes to no file.

The copy is what the log probe follows, and what is left when `--rm` takes the container along.
"""

from __future__ import annotations

import threading
from collections.abc import Sequence
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

    def __init__(self, container_id: str, copy: Path, engine: DockerEngine | None = None) -> None:
        self._container_id = container_id
        self._copy = copy
        self._engine = engine or DockerEngine()
        self._closing = threading.Event()
        self._fault: str = ""
        self._thread: threading.Thread | None = None

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:  # noqa: ARG002 of the protocol
        """Begin copying at the first look; afterwards say what is wrong, if anything is."""
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="container-log", daemon=True)
            self._thread.start()
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
