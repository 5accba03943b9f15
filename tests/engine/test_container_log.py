"""A container's output is copied past a restart of its engine and past the limit of its log."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from docker_box import DockerBox, opened_engine

from tui.model.launch import Attachment, Found
from tui.model.snapshot import Snapshot
from tui.probes.container_log import ContainerLogProbe
from tui.runs.docker import DockerEngine

pytestmark = pytest.mark.engine

DEADLINE_S = 200.0


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerBox]:
    """One whose containers outlive it, so that it can be stopped and started again."""
    with opened_engine("--live-restore") as engine:
        monkeypatch.setenv("DOCKER_HOST", engine.host)
        yield engine


class Printer:
    """A container that prints what it is given, and the copy of what it printed."""

    def __init__(self, engine: DockerBox, folder: Path, *options: str) -> None:
        os.mkfifo(folder / "feed")
        words = engine.run_words("--detach", "--name=run-a", f"--volume={folder}:/feed", *options)
        loop = 'exec 3<>/feed/feed; while read -r line <&3; do echo "$line"; done'
        container = engine.docker(*words, "/bin/sh", "-c", loop)
        self._feed = os.open(folder / "feed", os.O_RDWR)
        self.copy = folder / "copy.log"
        self.probe = ContainerLogProbe(lambda _: self.copy, DockerEngine())
        found = Found(value=container, source="test")
        log = Found(value=str(self.copy), source="test")
        self.seen = Snapshot(attachment=Attachment(container=found, log=log))
        self.probe.read(time.time(), self.seen)

    def prints(self, first: int, last: int) -> None:
        os.write(self._feed, "".join(f"line {n:03d}\n" for n in range(first, last)).encode())

    def holds(self, count: int) -> None:
        wanted = "".join(f"line {n:03d}\n" for n in range(count))
        end = time.monotonic() + DEADLINE_S
        while not self.copy.exists() or self.copy.read_text() != wanted:
            assert time.monotonic() < end, self.copy.read_text()[-400:]
            time.sleep(0.02)


def test_an_engine_that_restarts_costs_no_line_and_doubles_none(
    engine: DockerBox, tmp_path: Path
) -> None:
    printer = Printer(engine, tmp_path)
    printer.prints(0, 50)
    printer.holds(50)
    engine.stop(signal.SIGTERM)
    printer.prints(50, 100)
    engine.start()
    printer.prints(100, 150)
    printer.holds(150)
    printer.probe.close()


def test_a_log_that_docker_cuts_is_taken_up_where_the_copy_ends(
    engine: DockerBox, tmp_path: Path
) -> None:
    printer = Printer(engine, tmp_path, "--log-opt=max-size=2k", "--log-opt=max-file=2")
    for first in range(0, 200, 10):
        printer.prints(first, first + 10)
        printer.holds(first + 10)
    whole = "".join(f"line {n:03d}\n" for n in range(200))
    assert len(engine.docker("logs", "run-a")) < len(whole) / 2
    engine.stop(signal.SIGTERM)
    engine.start()
    printer.prints(200, 210)
    printer.holds(210)
    printer.probe.close()
