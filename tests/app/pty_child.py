"""A screen for tests to drive from outside: `pty_child.py SCENARIO`, one update for each byte read.

The bytes come through the pipe named by MILEPOST_STEPS; the scenario says what an update is.
"""

from __future__ import annotations

import logging
import os
import random
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import replace

import fake_run
import fakes

from tui.app.options import ScreenOptions
from tui.app.run import run_app
from tui.errors import MilepostError
from tui.model.launch import Attachment
from tui.model.progress import LogLine
from tui.model.snapshot import Snapshot

HOSTILE = (
    "\x1b[2J",
    "\x1b[?1049l",
    "\x1b]52;c;aGFja2Vk\x07",
    "\x1b]0;title\x1b\\",
    "\x1bPq#0\x1b\\",
    "\x1bc",
    "\x9b31m",
    "\x9d52;c;x\x9c",
    "\x07\x08\x0b\x0c\x0e\x0f\x00\x7f\x05",
    "\r\n\t",
    "\u202e\u2066\u200f\u200b\u2028",
    "[/]",
    "[@click=app.quit]x[/]",
    "回答",
    "👩\u200d🔬",
    "e\u0301",
    "\ud800",
)


def seconds() -> Iterator[Snapshot]:
    """A quiet run: only the clock moves."""
    snapshot = fakes.running()
    while True:
        yield snapshot
        snapshot = replace(snapshot, now=snapshot.now + 1)


def scrolling() -> Iterator[Snapshot]:
    """A run that logs a long line each second."""
    for count, snapshot in enumerate(seconds()):
        lines = tuple(
            LogLine(at=snapshot.now - 60 + n, source="trainer", text=f"line {n} " + "x" * 100)
            for n in range(count, count + 60)
        )
        yield replace(snapshot, lines=lines)


def hostile() -> Iterator[Snapshot]:
    """Every text there is holds what must never reach a terminal."""
    dice = random.Random(7)

    def text() -> str:
        return " ".join(dice.choice(HOSTILE) + chr(dice.randrange(0x2FF)) for _ in range(12))

    for snapshot in seconds():
        alert = fake_run.alert(line=text(), code=text(), advice=text(), evidence=(text(),))
        yield replace(
            snapshot,
            attachment=fake_run.attachment(name=text()),
            log=replace(snapshot.log, path=text()),
            lines=tuple(LogLine(at=snapshot.now, source=text(), text=text()) for _ in range(40)),
            alert_log=(fake_run.record(alert),),
            story=replace(snapshot.story, phase=None),
            verdict=replace(snapshot.verdict, reason=text(), alerts=(alert,)),
        )


def noisy() -> Iterator[Snapshot]:
    """Libraries print while the screen is open."""
    for snapshot in seconds():
        os.write(2, b"NOISE-OF-C\n")
        sys.stderr.write("NOISE-OF-PYTHON\n")
        logging.getLogger("library").warning("WARNED-BY-LOG")
        warnings.warn("WARNED-BY-PYTHON", stacklevel=1)
        yield snapshot


def broken() -> Iterator[Snapshot]:
    """A fault of ours: a view is given what it cannot draw."""
    yield fakes.running()
    yield replace(fakes.running(), attachment=None)  # type: ignore[arg-type]


SCENARIOS: dict[str, Callable[[], Iterator[Snapshot]]] = {
    "seconds": seconds,
    "scrolling": scrolling,
    "hostile": hostile,
    "noisy": noisy,
    "broken": broken,
    "empty": lambda: iter((fakes.empty(),)),
    "hanging": seconds,
}


class PipedSource:
    """Publishes the next snapshot of a scenario for each byte that comes through the pipe."""

    def __init__(self, scenario: str) -> None:
        self._snapshots = SCENARIOS[scenario]()
        self._hangs = scenario == "hanging"

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        threading.Thread(target=self._run, args=(publish,), daemon=True).start()

    def _run(self, publish: Callable[[Snapshot], None]) -> None:
        publish(next(self._snapshots))
        steps = int(os.environ["MILEPOST_STEPS"])
        while os.read(steps, 1):
            publish(next(self._snapshots))

    def attach(self, attachment: Attachment) -> None:
        """No scenario has anything to choose."""

    def verify(self, path: str | None) -> None:
        """No scenario has bytes to read."""

    def stop(self) -> None:
        while self._hangs:
            time.sleep(3600)


def main() -> int:
    # A session leader's first terminal becomes the one that hangs it up.
    if os.environ.get("MILEPOST_CONTROLLED") and sys.stdin.isatty():
        os.close(os.open(os.ttyname(0), os.O_RDWR))
    options = ScreenOptions(mouse="MILEPOST_NO_MOUSE" not in os.environ)
    try:
        return run_app(PipedSource(sys.argv[1]), options)
    except MilepostError as error:
        print(error)
        return int(error.exit_code)


if __name__ == "__main__":
    sys.exit(main())
