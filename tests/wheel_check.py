"""Install a built wheel in a clean environment; read a status, and watch the demo in a real pty.

Usage: python tests/wheel_check.py dist/milepost-….whl
"""

from __future__ import annotations

import json
import os
import pty
import select
import signal
import subprocess
import sys
import tempfile
import time
import venv
from pathlib import Path

import pyte

DEADLINE_S = 200.0
SIZE = (160, 50)
WANTED = ("RUNNING", "NVIDIA GB10", "rollout")


def main(wheel: Path) -> None:
    """Exit with an error where anything of it fails."""
    with tempfile.TemporaryDirectory() as folder:
        environment = Path(folder) / "venv"
        venv.create(environment, with_pip=True)
        python = environment / "bin" / "python"
        subprocess.run([python, "-m", "pip", "install", "-q", wheel], check=True)
        command = environment / "bin" / "milepost"
        _check_status(command, Path(folder))
        _check_demo(command)


def _check_status(command: Path, folder: Path) -> None:
    log = folder / "plain.log"
    log.write_text("Job 'x' submitted successfully\nJob 'x' failed\n")
    told = subprocess.run(
        [command, "status", "--json", "--log", log], capture_output=True, text=True, cwd=folder
    )
    state = json.loads(told.stdout)["summary"]["state"]
    print(f"status: {state}, exit code {told.returncode}")
    assert (state, told.returncode) == ("failed", 5), told.stderr


def _check_demo(command: Path) -> None:
    child, terminal = pty.fork()
    if child == 0:
        os.environ.update(TERM="xterm-256color", COLUMNS=str(SIZE[0]), LINES=str(SIZE[1]))
        os.execv(command, [str(command), "demo", "--speed", "40"])
    screen = pyte.Screen(*SIZE)
    stream = pyte.ByteStream(screen)
    _resize(terminal)
    end = time.monotonic() + DEADLINE_S
    while not all(word in "\n".join(screen.display) for word in WANTED):
        assert time.monotonic() < end, "\n".join(screen.display)
        if select.select([terminal], [], [], 0.2)[0]:
            stream.feed(os.read(terminal, 65536))
    os.write(terminal, b"q")
    while select.select([terminal], [], [], 5.0)[0]:
        try:
            if not os.read(terminal, 65536):
                break
        except OSError:
            break
    _, status = os.waitpid(child, 0)
    print(f"demo: on screen, left with {os.waitstatus_to_exitcode(status)}")
    assert os.waitstatus_to_exitcode(status) == 0


def _resize(terminal: int) -> None:
    import fcntl
    import struct
    import termios

    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", SIZE[1], SIZE[0], 0, 0))


if __name__ == "__main__":
    signal.alarm(300)
    main(Path(sys.argv[1]).resolve())
