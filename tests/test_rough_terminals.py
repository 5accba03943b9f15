"""The real monitor and the demo under terminals and signals that are rough with them."""

from __future__ import annotations

import os
import signal
import sys
import time
import uuid
from contextlib import suppress
from pathlib import Path

import psutil
import pytest
from terminal import Terminal

from tui.demo.launch import start

pytestmark = pytest.mark.pty

DEMO = [sys.executable, "-m", "tui", "demo", "--speed", "60"]
GONE_S = 15.0


@pytest.fixture
def mark() -> str:
    """Marks all processes of a test, by their environment."""
    return uuid.uuid4().hex


def marked(mark: str) -> list[int]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            if process.environ().get("MILEPOST_TEST") == mark:
                found.append(process.pid)
    return found


def all_end(mark: str) -> None:
    end = time.monotonic() + GONE_S
    while left := marked(mark):
        assert time.monotonic() < end, [psutil.Process(pid).cmdline() for pid in left]
        time.sleep(0.05)


def demo(mark: str, *argv: str, size: tuple[int, int] = (160, 50)) -> Terminal:
    return Terminal([*DEMO, *argv], size, MILEPOST_TEST=mark)


@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_a_signal_ends_all_of_it(mark: str, number: signal.Signals, code: int) -> None:
    with demo(mark) as terminal:
        terminal.shows("RUNNING")
        os.kill(terminal.pid, number)
        assert terminal.ends() == code
        assert terminal.is_clean
        all_end(mark)


def test_a_closed_terminal_ends_all_of_it(mark: str) -> None:
    with demo(mark) as terminal:
        terminal.shows("RUNNING")
        assert len(marked(mark)) > 2
        terminal.hang_up()
        assert terminal.ends() == 129
        all_end(mark)


def test_killed_it_leaves_nothing_behind(mark: str) -> None:
    with demo(mark) as terminal:
        terminal.shows("RUNNING")
        os.kill(terminal.pid, signal.SIGKILL)
        assert terminal.ends() == -signal.SIGKILL
        all_end(mark)


def test_a_reader_of_a_kilobyte_a_second(mark: str) -> None:
    """It gets whole pictures of now, not of long ago, and its keys and exit do not queue."""
    with demo(mark) as terminal:
        terminal.shows("RUNNING", "reward")
        terminal.wait(20, bytes_per_s=1024)
        before = terminal.resident_bytes
        terminal.wait(10, bytes_per_s=1024)
        assert terminal.resident_bytes - before < 4 << 20
        terminal.type("q")
        assert terminal.ends(bytes_per_s=1024, deadline_s=3.0) == 0
        all_end(mark)


def test_suspended_for_longer_than_a_stall_it_comes_back_without_alarm(mark: str) -> None:
    with demo(mark) as terminal:
        terminal.shows("RUNNING", "reward")
        terminal.type("\x1a")
        while psutil.Process(terminal.pid).status() != psutil.STATUS_STOPPED:
            terminal.wait(0.05)
        terminal.wait(0.5)
        assert terminal.is_clean
        terminal.wait(15)
        terminal.raw.clear()
        terminal.screen.reset()
        os.kill(terminal.pid, signal.SIGCONT)
        terminal.shows("RUNNING", "reward")
        terminal.wait(3)
        assert b"STALLED" not in terminal.raw
        assert b"stalled" not in terminal.raw
        assert terminal.leave() == 0
        assert terminal.is_clean
        all_end(mark)


def test_a_storm_of_sizes_ends_in_the_picture_of_the_last(mark: str) -> None:
    with demo(mark) as terminal:
        terminal.shows("RUNNING")
        for step in range(150):
            terminal.resize(20 + (step * 37) % 200, 5 + (step * 11) % 70)
            terminal.wait(0.01)
        terminal.resize(100, 40)
        terminal.until(lambda text: "RUNNING" in text and "help" in text.splitlines()[39])
        assert terminal.leave() == 0
        assert terminal.is_clean
        all_end(mark)


def test_memory_stays_flat_over_hundreds_of_rollouts(tmp_path: Path, mark: str) -> None:
    """At three thousand times life's speed this is two weeks of a run."""
    run = start(tmp_path, speed=3000.0, num_rollout=5000, save_interval=20)
    argv = [*DEMO[:3], "--log", str(run.log), "--checkpoints", str(run.checkpoints)]
    try:
        with Terminal([*argv, "--interval", "0.2"], (160, 50), MILEPOST_TEST=mark) as terminal:
            terminal.until(lambda text: rollout(text) > 60)
            before = terminal.resident_bytes
            terminal.until(lambda text: rollout(text) > 400)
            assert terminal.resident_bytes - before < 10 << 20
            assert terminal.leave() == 0
    finally:
        run.stop()


def rollout(text: str) -> int:
    """As the first line of the screen tells it."""
    words = text.partition("\n")[0].split()
    return int(words[words.index("rollout") + 1]) if "rollout" in words else -1
