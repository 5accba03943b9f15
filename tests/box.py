"""A machine within this one: processes, mounts and network of its own, so that nobody else's runs
are seen. All that was started in it ends with it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psutil
import pytest
from terminal import Terminal

_FIRST = """
import fcntl, signal, socket, struct, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # orphans are reaped
loopback = struct.pack("16sh", b"lo", 1)
fcntl.ioctl(socket.socket(socket.AF_INET, socket.SOCK_DGRAM), 0x8914, loopback)
print("ready", flush=True)
sys.stdin.read()
"""
DEMO = f"{sys.executable} -m tui.demo --speed 40 --num-rollout 5000"
NO_DOCKER = "unix:///nonexistent/docker.sock"


class Box:
    """Programs run in it with this environment, and no Docker unless a test brings one."""

    def __init__(self, first: int) -> None:
        self._first = first
        self.docker_host = NO_DOCKER
        self._started: list[subprocess.Popen[bytes]] = []

    def words(self, *argv: str | Path) -> list[str]:
        """The command that runs a command inside."""
        return ["nsenter", f"--target={self._first}", "--pid", "--mount", "--net", *map(str, argv)]

    def start(self, *argv: str | Path, **options: Any) -> subprocess.Popen[bytes]:
        """Start it; it ends with the box."""
        options.setdefault("stdin", subprocess.DEVNULL)
        started = subprocess.Popen(
            self.words(*argv), env={**os.environ, "DOCKER_HOST": self.docker_host}, **options
        )
        self._started.append(started)
        return started

    def shell(self, command: str, cwd: Path) -> subprocess.Popen[bytes]:
        """Start a shell command; `DEMO` in it is a run of the demo without end."""
        return self.start("bash", "-c", f"cd {cwd}; {command.replace('DEMO', DEMO)}")

    def milepost(self, *argv: str | Path) -> subprocess.CompletedProcess[str]:
        """Run `milepost`."""
        return self.run(sys.executable, "-m", "tui", *argv)

    def screen(self, *argv: str) -> Terminal:
        """Open the screen of `milepost` in a terminal."""
        words = self.words(sys.executable, "-m", "tui", *argv)
        return Terminal(words, DOCKER_HOST=self.docker_host)

    def runs(self) -> list[dict[str, Any]]:
        """What `milepost runs` lists."""
        told = self.milepost("runs", "--json")
        assert told.returncode in (0, 6), told.stderr
        document = json.loads(told.stdout)
        assert document["milepost"] == 1
        listed: list[dict[str, Any]] = document["runs"]
        assert told.returncode == (0 if listed else 6)
        return listed

    def runs_until(
        self, wanted: Callable[[list[dict[str, Any]]], bool], deadline_s: float = 400.0
    ) -> list[dict[str, Any]]:
        """What it lists once that is as wanted."""
        end = time.monotonic() + deadline_s
        while not wanted(listed := self.runs()):
            assert time.monotonic() < end, f"never came true: {json.dumps(listed, indent=1)}"
            time.sleep(0.1)
        return listed

    def the_run(self, rollout: int = 0) -> dict[str, Any]:
        """The one run, once its log tells of this rollout."""
        (run,) = self.runs_until(lambda runs: len(runs) == 1 and _reached(runs[0]) >= rollout)
        return run

    def status(self, *argv: str) -> dict[str, Any]:
        """What `milepost status` tells of the one run there is, once it is running."""
        end = time.monotonic() + 60.0
        while True:
            told = self.milepost("status", "--json", *argv)
            document: dict[str, Any] = json.loads(told.stdout) if told.stdout else {}
            if document and document["summary"]["state"] == "running":
                return document
            assert time.monotonic() < end, f"never running: {told}"
            time.sleep(0.1)

    def wait(self) -> None:
        """For all that was started, which has ended when the box has."""
        for each in self._started:
            each.wait(60)

    def run(self, *argv: str | Path, timeout: float = 400.0) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        return subprocess.run(
            self.words(*argv),
            env={**os.environ, "DOCKER_HOST": self.docker_host},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
        )


def _reached(run: dict[str, Any]) -> int:
    rollout = run["rollout"]
    return -1 if rollout is None else int(rollout)


@contextmanager
def opened_box() -> Iterator[Box]:
    """A box, or a skip where this machine makes none."""
    unshare = ["unshare", "--pid", "--mount", "--net", "--fork", "--mount-proc"]
    if os.geteuid() != 0:
        unshare[1:1] = ["--user", "--map-root-user"]
    try:
        outer = subprocess.Popen(
            [*unshare, sys.executable, "-c", _FIRST],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
    except FileNotFoundError:
        pytest.skip("needs unshare")
    with outer:
        assert outer.stdout is not None
        if outer.stdout.readline() != b"ready\n":
            pytest.skip("this machine makes no namespaces for us")
        (first,) = psutil.Process(outer.pid).children()
        box = Box(first.pid)
        yield box
        assert outer.stdin is not None
        outer.stdin.close()
        box.wait()
