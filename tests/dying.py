"""`milepost`, with an action whose process meets its fate at a chosen write of the journal.

`python dying.py POINT SIGNS WORDS…` is `milepost WORDS…`. The process of the action that it begins
is `python dying.py POINT SIGNS --action FOLLOWER FOLDER PLAN`, and else as `tui.actions` is.
"""

from __future__ import annotations

import itertools
import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import asdict, dataclass
from enum import StrEnum
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from tui.actions import launch
from tui.actions.__main__ import main as act
from tui.cli import run
from tui.model.journal import Entry, Mark
from tui.runs.journal import Journal

_PATIENCE_S = 120.0


class Fate(StrEnum):
    """What happens at the write."""

    ACTION = "action"
    """The action's process is killed."""
    FOLLOWER = "follower"
    """The command or the screen is killed that began it, and follows it."""
    BOTH = "both"
    TWICE = "twice"
    """As `ACTION`; whoever watches has the process that finishes it killed too."""
    GIVEN_UP = "given up"
    """As `ACTION`; whoever watches does not finish it, but closes it as it stands."""
    RUN = "run"
    """The action waits until whoever watches has killed the run, and goes on."""
    ENGINE = "engine"
    """The action waits until whoever watches has stopped the Docker engine, and goes on."""
    CRASH = "crash"
    """The action's process is killed, and whoever watches stops the engine."""


_KILLS_ACTION = frozenset((Fate.ACTION, Fate.BOTH, Fate.TWICE, Fate.GIVEN_UP, Fate.CRASH))
_WAITS = frozenset((Fate.RUN, Fate.ENGINE))
_KILLS_FOLLOWER = frozenset((Fate.FOLLOWER, Fate.BOTH))


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One write of the journal, and what happens at it."""

    write: int
    """From 0, in the process of the action; -1: none."""
    when: str
    """`before` or `after`."""
    fate: Fate

    @property
    def text(self) -> str:
        return json.dumps(asdict(self))


def point_of(text: str) -> Point:
    document = json.loads(text)
    return Point(**{**document, "fate": Fate(document["fate"])})


@dataclass(frozen=True, slots=True)
class Signs:
    """A new folder, by which the action and who watches it tell each other of the point."""

    folder: Path

    def reach(self, stage: str) -> None:
        """It is there."""
        part = self.folder / "part"
        part.write_text(stage)
        part.rename(self.folder / "reached")

    @property
    def reached(self) -> str:
        """Where in the action that was; empty: it has not come to it."""
        with suppress(FileNotFoundError):
            return (self.folder / "reached").read_text()
        return ""

    @property
    def go_on(self) -> Path:
        """Made once the action may go on."""
        return self.folder / "go-on"

    @property
    def writes(self) -> Path:
        """A byte for every write."""
        return self.folder / "writes"


@dataclass(slots=True)
class Writes:
    """Stands in the place of the journal's own write."""

    point: Point
    signs: Signs
    follower: int
    steps: tuple[str, ...] = ()
    count: int = 0

    def made(self, journal: Journal, entry: Entry) -> None:
        """Write it, and let come to pass what has to, before or after."""
        self.steps = entry.steps or self.steps
        is_here = self.count == self.point.write
        self.count += 1
        if is_here and self.point.when == "before":
            self._meet_fate(entry)
        _WRITE(journal, entry)
        with self.signs.writes.open("ab") as writes:
            writes.write(b".")
        if is_here and self.point.when == "after":
            self._meet_fate(entry)

    def _meet_fate(self, entry: Entry) -> None:
        fate = self.point.fate
        self.signs.reach(self._stage(entry))
        if fate in _KILLS_FOLLOWER:
            with suppress(ProcessLookupError):
                os.kill(self.follower, signal.SIGKILL)
        if fate in _KILLS_ACTION:
            os.kill(os.getpid(), signal.SIGKILL)
        end = time.monotonic() + _PATIENCE_S
        while fate in _WAITS and not self.signs.go_on.exists() and time.monotonic() < end:
            time.sleep(0.02)

    def _stage(self, entry: Entry) -> str:
        step = self.steps[entry.step] if entry.step is not None and self.steps else ""
        words = itertools.takewhile(_is_plain, entry.line.split()[:4])
        noted = " ".join(words) if entry.mark is Mark.NOTED else ""
        return f"{step}: {noted or entry.mark.value}" if step else entry.mark.value


def _is_plain(word: str) -> bool:
    """It says the same at each time."""
    return not any(char.isdigit() or char == "/" for char in word)


_WRITE = Journal.write


def main() -> int:
    """Either of the two."""
    text, folder, *words = sys.argv[1:]
    if words[:1] != ["--action"]:
        return _follow(text, folder, words)
    if os.fork():
        os._exit(0)
    writes = Writes(point_of(text), Signs(Path(folder)), int(words[1]))
    Journal.write = lambda journal, entry: writes.made(journal, entry)  # type: ignore[method-assign,assignment]
    return act(Path(words[2]), words[3])


def _follow(text: str, folder: str, words: list[str]) -> int:
    def begun(argv: list[str], **options: Any) -> subprocess.Popen[bytes]:
        own = (sys.executable, __file__, text, folder, "--action", str(os.getpid()), *argv[-2:])
        return subprocess.Popen(own, **options)

    vars(launch)["subprocess"] = SimpleNamespace(**{**vars(subprocess), "Popen": begun})
    return run(words)


if __name__ == "__main__":
    sys.exit(main())
