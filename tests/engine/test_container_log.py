"""A container's output is copied past a restart of its engine and past the limit of its log."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from box import Box, opened_box
from docker_box import DockerBox

from tui.model.launch import Attachment, Found
from tui.model.snapshot import Snapshot
from tui.probes.container_log import ContainerLogProbe
from tui.runs.docker import DockerEngine

pytestmark = pytest.mark.engine

DEADLINE_S = 60.0


class Engine:
    """One whose containers outlive it, so that it can be stopped and started again."""

    def __init__(self, inside: Box, folder: Path) -> None:
        self.box = DockerBox(host=f"unix://{folder}/docker.sock", box=inside)
        inside.docker_host = self.box.host
        self._folder = folder
        self._daemon: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        with (self._folder / "log").open("ab") as log:
            self._daemon = self.box.box.start(
                "dockerd",
                *(f"--{name}-root={self._folder}/{name}" for name in ("data", "exec")),
                f"--pidfile={self._folder}/pid",
                f"--host={self.box.host}",
                *("--iptables=false", "--storage-driver=vfs", "--live-restore"),
                stdout=log,
                stderr=log,
            )
        end = time.monotonic() + DEADLINE_S
        while not self.box.docker("version", "--format={{.Server.Version}}", check=False):
            if self._daemon.poll() is not None or time.monotonic() > end:
                pytest.skip("dockerd does not start here")
            time.sleep(0.05)

    def stop(self) -> None:
        """Ask it to end; it is not our child but that of the box."""
        pid = (self._folder / "pid").read_text()
        self.box.box.run("kill", pid)
        assert self._daemon is not None
        self._daemon.wait(DEADLINE_S)


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> Iterator[Engine]:
    if os.geteuid() != 0 or not (shutil.which("dockerd") and shutil.which("docker")):
        pytest.skip("needs root, dockerd and docker")
    folder = Path(tempfile.mkdtemp(prefix="mp", dir="/tmp"))
    with opened_box() as inside:
        engine = Engine(inside, folder)
        monkeypatch.setenv("DOCKER_HOST", engine.box.host)
        (folder / "nothing.tar").write_bytes(b"\0" * 1024)
        engine.start()
        engine.box.docker("import", f"{folder}/nothing.tar", engine.box.image)
        try:
            yield engine
        finally:
            engine.box.docker("rm", "--force", "run-a", check=False)
    shutil.rmtree(folder)


class Printer:
    """A container that prints what it is given, and the copy of what it printed."""

    def __init__(self, engine: Engine, folder: Path, *options: str) -> None:
        os.mkfifo(folder / "feed")
        words = engine.box.run_words(
            "--detach", "--name=run-a", f"--volume={folder}:/feed", *options
        )
        loop = 'exec 3<>/feed/feed; while read -r line <&3; do echo "$line"; done'
        container = engine.box.docker(*words, "/bin/sh", "-c", loop)
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
    engine: Engine, tmp_path: Path
) -> None:
    printer = Printer(engine, tmp_path)
    printer.prints(0, 50)
    printer.holds(50)
    engine.stop()
    printer.prints(50, 100)
    engine.start()
    printer.prints(100, 150)
    printer.holds(150)
    printer.probe.close()


def test_a_log_that_docker_cuts_is_taken_up_where_the_copy_ends(
    engine: Engine, tmp_path: Path
) -> None:
    printer = Printer(engine, tmp_path, "--log-opt=max-size=2k", "--log-opt=max-file=2")
    for first in range(0, 200, 10):
        printer.prints(first, first + 10)
        printer.holds(first + 10)
    whole = "".join(f"line {n:03d}\n" for n in range(200))
    assert len(engine.box.docker("logs", "run-a")) < len(whole) / 2
    engine.stop()
    engine.start()
    printer.prints(200, 210)
    printer.holds(210)
    printer.probe.close()
