"""A Docker engine of the tests' own: private data, a private socket, a network of its own."""

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

_START_S = 60.0


@pytest.fixture(scope="session")
def _engine() -> Iterator[DockerBox]:
    if os.geteuid() != 0:
        pytest.skip("needs root to start a Docker engine of its own")
    for program in ("dockerd", "docker"):
        if shutil.which(program) is None:
            pytest.skip(f"needs {program}")
    # A socket's path is limited to 107 bytes, so not below pytest's own folders.
    folder = Path(tempfile.mkdtemp(prefix="mp", dir="/tmp"))
    with opened_box() as inside:
        box = DockerBox(host=f"unix://{folder}/docker.sock", box=inside)
        inside.docker_host = box.host
        daemon = _started(inside, folder)
        try:
            _wait_until_it_answers(box, daemon, folder / "log")
            box.docker("import", f"{folder}/nothing.tar", box.image)
            yield box
        finally:
            _remove_all(box)
    shutil.rmtree(folder)


def _started(inside: Box, folder: Path) -> subprocess.Popen[bytes]:
    (folder / "nothing.tar").write_bytes(b"\0" * 1024)
    with (folder / "log").open("wb") as log:
        return inside.start(
            "dockerd",
            f"--data-root={folder}/data",
            f"--exec-root={folder}/exec",
            f"--pidfile={folder}/pid",
            f"--host=unix://{folder}/docker.sock",
            "--iptables=false",
            "--storage-driver=vfs",
            stdout=log,
            stderr=log,
        )


@pytest.fixture
def docker_box(_engine: DockerBox, monkeypatch: pytest.MonkeyPatch) -> Iterator[DockerBox]:
    """The engine, named by DOCKER_HOST; its containers are removed after the test."""
    monkeypatch.setenv("DOCKER_HOST", _engine.host)
    yield _engine
    _remove_all(_engine)


def _wait_until_it_answers(box: DockerBox, daemon: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + _START_S
    while not box.docker("version", "--format={{.Server.Version}}", check=False):
        if daemon.poll() is not None or time.monotonic() > deadline:
            last = log.read_text(errors="replace").strip().splitlines()[-1:]
            pytest.skip(f"dockerd does not start here: {' '.join(last)}")
        time.sleep(0.05)


def _remove_all(box: DockerBox) -> None:
    if containers := box.docker("ps", "--all", "--quiet", check=False).split():
        box.docker("rm", "--force", *containers, check=False)
