"""The Docker engine that `tests/engine` starts, as its tests use it."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest
from box import Box, opened_box

REPOSITORY = Path(__file__).parents[1]
_START_S = 200.0


@dataclass(frozen=True)
class DockerBox:
    """A running engine and an image of nothing, into which this machine's programs are mounted.

    The engine and its containers are in a box of their own. Its socket is in reach from outside
    too, but only a client that is started inside the box is seen there.
    """

    host: str
    box: Box
    folder: Path
    options: tuple[str, ...] = ()
    """Of the engine."""
    image: str = "milepost-test:empty"
    _daemons: list[subprocess.Popen[bytes]] = field(default_factory=list)

    def start(self) -> None:
        """Start the engine, and wait until it answers; a skip where it does not start."""
        with (self.folder / "log").open("ab") as log:
            daemon = self.box.start(
                "dockerd",
                f"--data-root={self.folder}/data",
                f"--exec-root={self.folder}/exec",
                f"--pidfile={self.folder}/pid",
                f"--host={self.host}",
                "--iptables=false",
                "--storage-driver=vfs",
                *self.options,
                stdout=log,
                stderr=log,
            )
        self._daemons.append(daemon)
        deadline = time.monotonic() + _START_S
        while not self.docker("version", "--format={{.Server.Version}}", check=False):
            if daemon.poll() is not None or time.monotonic() > deadline:
                text = (self.folder / "log").read_text(errors="replace")
                pytest.skip(f"dockerd does not start here: {text.strip().rpartition(chr(10))[2]}")
            time.sleep(0.05)

    def stop(self, number: signal.Signals) -> None:
        """End the engine by this signal: SIGTERM lets it end its containers first."""
        daemon = self._daemons[-1]
        for inner in psutil.Process(daemon.pid).children():
            inner.send_signal(number)
        daemon.wait(_START_S)

    def remove_all(self) -> None:
        """All containers."""
        if containers := self.docker("ps", "--all", "--quiet", check=False).split():
            self.docker("rm", "--force", *containers, check=False)

    def docker(self, *args: str, check: bool = True) -> str:
        """Run the command-line client; what it printed."""
        ran = subprocess.run(
            ["docker", *args],
            env={**os.environ, "DOCKER_HOST": self.host},
            capture_output=True,
            text=True,
            timeout=300,
        )
        if check and ran.returncode != 0:
            raise AssertionError(f"docker {' '.join(args)}: {ran.stderr}")
        return ran.stdout.strip()

    def run_words(self, *options: str, network: str = "host") -> tuple[str, ...]:
        """`run …` up to and with the image: /tmp empty, this Python inside."""
        own = (f"--network={network}", "--tmpfs=/tmp", *self.mounts)
        return ("run", *own, *options, self.image)

    @property
    def mounts(self) -> tuple[str, ...]:
        """Everything that a Python of this environment needs, read-only and in its own place."""
        needed = {Path(name) for name in ("/usr", "/bin", "/lib", "/lib64", "/etc")}
        needed |= {Path(sys.base_prefix), Path(sys.prefix), REPOSITORY}
        outer = [path for path in needed if path.exists() and not needed & set(path.parents)]
        return tuple(f"--volume={path}:{path}:ro" for path in sorted(outer))


@contextmanager
def opened_engine(*options: str) -> Iterator[DockerBox]:
    """An engine with nothing in it but the image; a skip where this machine makes none."""
    if os.geteuid() != 0:
        pytest.skip("needs root to start a Docker engine of its own")
    for program in ("dockerd", "docker"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    # A socket's path is limited to 107 bytes, so not below pytest's own folders.
    folder = Path(tempfile.mkdtemp(prefix="mp", dir="/tmp"))
    (folder / "nothing.tar").write_bytes(b"\0" * 1024)
    with opened_box() as inside:
        host = f"unix://{folder}/docker.sock"
        box = DockerBox(host=host, box=inside, folder=folder, options=options)
        inside.docker_host = box.host
        try:
            box.start()
            box.docker("import", f"{folder}/nothing.tar", box.image)
            yield box
        finally:
            box.remove_all()
    shutil.rmtree(folder)
