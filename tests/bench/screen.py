"""What the screen costs: start, CPU, memory and bytes, next to nvitop on the same stand-in GPU.

Usage: python tests/bench/screen.py [SECONDS]   (default 30; nvitop is measured where it is installed)
"""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
import time
from pathlib import Path

import psutil
from nvml.build import build
from terminal import Terminal

SIZE = (160, 50)
_WORDS = 20
"""A screen with more words on it says something."""
GB10 = """\
driver = 580.126.09
count = 1
0.name = NVIDIA GB10
0.uuid = GPU-fa4e0001
0.utilisation = 96
0.power = 91000
0.temperature = 71
0.margin = 13
0.sm_clock = 2281
0.compute = 1:1073741824
"""


class Cost:
    """CPU seconds of a process and all below it; of those that ended, what was last seen."""

    def __init__(self, pid: int) -> None:
        self._root = psutil.Process(pid)
        self._seen: dict[int, float] = {}
        self.peak_mib = 0.0

    def cpu_s(self) -> float:
        resident = 0
        for process in (self._root, *self._root.children(recursive=True)):
            try:
                times, memory = process.cpu_times(), process.memory_info().rss
            except psutil.Error:
                continue
            self._seen[process.pid] = times.user + times.system
            resident += memory
        self.peak_mib = max(self.peak_mib, resident / 2**20)
        return sum(self._seen.values())


def measured(name: str, argv: list[str], ready: str, seconds: float, env: dict[str, str]) -> None:
    """Run it in a terminal for some seconds and print a line."""
    begin = time.monotonic()
    with Terminal(argv, SIZE, **env) as terminal:
        terminal.until(lambda text: len(text.split()) > _WORDS)
        first_s = time.monotonic() - begin
        terminal.shows(ready)
        cost = Cost(terminal.pid)
        _settle(terminal, 8.0)
        cpu_s, bytes_before, start = cost.cpu_s(), terminal.received_bytes, time.monotonic()
        while time.monotonic() - start < seconds:
            terminal.wait(0.5)
            cost.cpu_s()
        span = time.monotonic() - start
        share = (cost.cpu_s() - cpu_s) / span
        rate = (terminal.received_bytes - bytes_before) / span
        terminal.leave()
    print(
        f"{name:<34} first frame {first_s:5.2f} s   {share:6.1%} of a core   "
        f"{cost.peak_mib:6.1f} MiB   {rate:7.0f} B/s",
        flush=True,
    )


def _settle(terminal: Terminal, seconds: float) -> None:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        terminal.wait(0.2)


def main(seconds: float) -> None:
    """One line a program."""
    with tempfile.TemporaryDirectory() as folder:
        library = build(Path(folder))
        answers = Path(folder) / "answers"
        answers.write_text(GB10, encoding="utf-8")
        env = {
            "LD_LIBRARY_PATH": str(library.parent),
            "FAKE_NVML": str(answers),
            "HOME": folder,
        }
        log = Path(folder) / "plain.log"
        log.write_text("Job 'x' submitted successfully\n", encoding="utf-8")
        milepost = [sys.executable, "-m", "tui"]
        measured("milepost, a quiet log", [*milepost, "--log", str(log)], "GB10", seconds, env)
        measured(
            "milepost demo --speed 1", [*milepost, "demo", "--speed", "1"], "GB10", seconds, env
        )
        if shutil.which("nvitop", path=os.environ["PATH"]):
            measured("nvitop", ["nvitop", "--monitor", "full"], "GB10", seconds, env)
        else:
            print("nvitop is not installed")


if __name__ == "__main__":
    main(float(sys.argv[1]) if len(sys.argv) > 1 else 30.0)
