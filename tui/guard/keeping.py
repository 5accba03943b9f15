"""What a guard writes into the state folder of the run it watches: the black box, and its own log.

The folder is another once it is known where the run saves: both move there.
"""

from __future__ import annotations

import logging
import threading
from contextlib import suppress
from logging.handlers import RotatingFileHandler
from pathlib import Path

from tui.attach import has_target
from tui.guard.recorder import Recorder
from tui.model.snapshot import Snapshot
from tui.runs.state_dir import made, run_folder

LOG = "guard.log"
_CLOSE_S = 1.0
_LOG_BYTES, _OLD_LOGS = 1 << 20, 1
_MILEPOST = logging.getLogger("milepost")


class RunKeeper:
    """Keeps what is published, in the folder of the run that it is about.

    On a thread of its own: which folder that is, is asked of the disk the run saves to, which may
    hang.
    """

    def __init__(self, *, with_log: bool = True) -> None:
        """`with_log`: what milepost says of itself is kept too."""
        self._with_log = with_log
        self._folder: Path | None = None
        self._recorder: Recorder | None = None
        self._log: _Log | None = None
        self._newest: Snapshot | None = None
        self._news = threading.Event()
        self._closing = False
        self._thread: threading.Thread | None = None

    def record(self, snapshot: Snapshot) -> None:
        """Keep it. Returns at once."""
        self._newest = snapshot
        self._news.set()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="keeper", daemon=True)
            self._thread.start()

    def close(self) -> None:
        """Write what waits, and let go; one that hangs is left behind."""
        self._closing = True
        self._news.set()
        if self._thread is not None:
            self._thread.join(_CLOSE_S)

    def _run(self) -> None:
        while not self._closing:
            self._news.wait()
            self._news.clear()
            if self._newest is not None:
                self._keep(self._newest)
        self._let_go()

    def _keep(self, snapshot: Snapshot) -> None:
        if not has_target(snapshot.attachment):
            return
        folder = run_folder(snapshot.attachment)
        if folder != self._folder:
            self._let_go()
            self._begin(folder)
        if self._recorder is not None:
            self._recorder.record(snapshot)

    def _let_go(self) -> None:
        if self._recorder is not None:
            self._recorder.close()
            self._recorder = None
        if self._log is not None:
            _MILEPOST.removeHandler(self._log)
            self._log.close()
            self._log = None

    def _begin(self, folder: Path) -> None:
        self._folder = folder
        self._recorder = Recorder(folder)
        self._recorder.start()
        if not self._with_log:
            return
        with suppress(OSError):
            self._log = _Log(made(folder) / LOG)
            _MILEPOST.setLevel(logging.INFO)
            _MILEPOST.addHandler(self._log)


class _Log(RotatingFileHandler):
    """Bounded, and silent about a disk that is full: who watches has other worries."""

    def __init__(self, file: Path) -> None:
        super().__init__(
            file, maxBytes=_LOG_BYTES, backupCount=_OLD_LOGS, encoding="utf-8", delay=True
        )
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s"))

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802  logging calls it so
        """Nothing can be done about it here."""
