"""What a deep verify costs: beside other readers of the same files, and the run beside it.

Usage: PYTHONPATH=tests python tests/bench/verify.py [MB] [FOLDER]
(default 3000 MB, below the temporary folder)

`cat`, `cksum` and `sha256sum` take turns with it, warm, all files in the page cache, and cold, none.
For the verify also: its peak memory, the most of the files that it has cached at a time, and how far
the box's page cache and MemAvailable moved, at most and in the end. Then a stand-in for a run steps
all the while, on one core and on all, and a verify of cold files beside it is stopped every other
second: the run's step time with and without.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from page_cache import resident_bytes

from tui.checkpoints.ledger import remembered
from tui.checkpoints.verify import verify
from tui.demo.checkpoint import iteration_folder, save, save_data_source
from tui.demo.weights import Model
from tui.probes.verify import READER

ROUNDS = 3
TURNS, TURN_S = 60, 1.0
STAND_IN = Path(__file__).with_name("stand_in.py")
TOOLS = {
    "cat": ("cat",),
    "cksum": ("cksum",),
    "sha256sum": ("sha256sum",),
}


def write(root: Path, size_mb: int) -> Path:
    """A checkpoint as Miles writes it."""
    for _ in save(root, 3, Model(total_mb=size_mb, seed=1), seed=1):
        pass
    save_data_source(root, 3, samples=8, groups=2)
    os.sync()
    return iteration_folder(root, 4)


def files_of(folder: Path) -> list[Path]:
    return sorted(path for path in folder.rglob("*") if path.is_file())


def make_cold(files: list[Path]) -> None:
    for path in files:
        descriptor = os.open(path, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)


def make_warm(files: list[Path]) -> None:
    subprocess.run(["cat", *map(str, files)], stdout=subprocess.DEVNULL, check=True)


def run_tool(words: tuple[str, ...], files: list[Path]) -> None:
    subprocess.run([*words, *map(str, files)], stdout=subprocess.DEVNULL, check=True)


def meminfo(key: str) -> int:
    for line in Path("/proc/meminfo").read_text().splitlines():
        if line.startswith(f"{key}:"):
            return int(line.split()[1]) // 1024
    raise KeyError(key)


def verified_apart(folder: Path) -> dict[str, float]:
    """One deep verify in a process of its own, which says what it cost."""
    told = subprocess.run(
        [sys.executable, __file__, "--one", str(folder)],
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    cost: dict[str, float] = json.loads(told)
    return cost


def verify_one(folder: Path) -> None:
    before, files = peak_mib(), files_of(folder)
    available, cached, held = [meminfo("MemAvailable")], [meminfo("Cached")], [0]

    def sample(*_: int) -> None:
        available.append(meminfo("MemAvailable"))
        cached.append(meminfo("Cached"))
        held.append(sum(map(resident_bytes, files)) >> 20)

    begin = time.perf_counter()
    result = verify(folder, report=sample)
    seconds = time.perf_counter() - begin
    assert result.is_good, result
    sample()
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cost = {
        "seconds": seconds,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "before_mib": before,
        "peak_mib": peak_mib(),
        "held_mib": max(held[1:]),
        "held_after_mib": held[-1],
        "available_least_mib": min(available) - available[0],
        "available_after_mib": available[-1] - available[0],
        "cached_most_mib": max(cached) - cached[0],
        "cached_after_mib": cached[-1] - cached[0],
    }
    print(json.dumps(cost))


def peak_mib() -> float:
    """Of this process; what `getrusage` says starts at its parent's."""
    status = Path("/proc/self/status").read_text()
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def compare(folder: Path) -> None:
    """Rounds in which all take turns, so that a slow moment of the disk hits all."""
    files = files_of(folder)
    size = sum(path.stat().st_size for path in files)
    print(f"{len(files)} files, {size / 1e9:.2f} GB, {ROUNDS} rounds, {os.cpu_count()} CPUs")
    for name, prepare in (("warm", make_warm), ("cold", make_cold)):
        took: dict[str, list[float]] = {tool: [] for tool in TOOLS}
        costs = []
        for _ in range(ROUNDS):
            for tool, words in TOOLS.items():
                prepare(files)
                begin = time.perf_counter()
                run_tool(words, files)
                took[tool].append(time.perf_counter() - begin)
            prepare(files)
            costs.append(verified_apart(folder))
        took["milepost"] = [cost["seconds"] for cost in costs]
        for tool, times in took.items():
            best, median = min(times), sorted(times)[len(times) // 2]
            rate = size / best / 1e9
            print(f"{name} {tool:10} best {best:6.2f} s, median {median:6.2f} s {rate:6.2f} GB/s")
        cost = {key: statistics.median(each[key] for each in costs) for key in costs[0]}
        print(
            f"     milepost: CPU {cost['cpu_s']:.1f} s, memory {cost['before_mib']:.0f} → "
            f"{cost['peak_mib']:.0f} MiB; of the files {cost['held_mib']:.0f} MiB cached at most, "
            f"{cost['held_after_mib']:.0f} after;\n     of the box: page cache "
            f"{cost['cached_most_mib']:+.0f} MiB at most, {cost['cached_after_mib']:+.0f} after; "
            f"MemAvailable {cost['available_least_mib']:+.0f} at least, "
            f"{cost['available_after_mib']:+.0f} after"
        )
    begin = time.perf_counter()
    assert remembered(folder)
    print(f"its result remembered: {1e3 * (time.perf_counter() - begin):.2f} ms")


Step = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Turn:
    """A moment in which a verify read, or stood still."""

    begin: float
    end: float

    def holds(self, step: Step) -> bool:
        return self.begin <= step["begin"] and step["end"] <= self.end


def beside(folder: Path, runs: int) -> None:
    """Verifies of cold files, stopped and let go on every moment, while `runs` stand-ins step.

    Other work on the box comes and goes; two moments that follow one another are alike.
    """
    with tempfile.TemporaryDirectory(dir=folder.parent) as written, ExitStack() as ended:
        outputs = []
        for _ in range(runs):
            outputs.append(ended.enter_context(tempfile.TemporaryFile("w+")))
            words = [sys.executable, str(STAND_IN), written]
            stepper = subprocess.Popen(words, stdout=outputs[-1], start_new_session=True)
            ended.callback(stepper.wait)
            ended.callback(stepper.kill)
        time.sleep(TURN_S)
        pairs: list[tuple[Turn, Turn]] = []
        while len(pairs) < TURNS:
            pairs += turns_of(folder)
        steps = [step for output in outputs for step in steps_in(output)]
    tell_beside(runs, steps, pairs)


def turns_of(folder: Path) -> Iterator[tuple[Turn, Turn]]:
    """The turns of one verify as the screen starts it: it reads, then it is stopped."""
    make_cold(files_of(folder))
    words = [*READER, str(folder)]
    with subprocess.Popen(words, stdout=subprocess.DEVNULL, start_new_session=True) as reader:
        while True:
            reading = rested()
            if reader.poll() is not None:
                assert reader.returncode == 0
                return
            reader.send_signal(signal.SIGSTOP)
            yield reading, rested()
            reader.send_signal(signal.SIGCONT)


def rested() -> Turn:
    begin = time.monotonic()
    time.sleep(TURN_S)
    return Turn(begin=begin, end=time.monotonic())


def steps_in(output: TextIO) -> list[Step]:
    output.seek(0)
    return [json.loads(line) for line in output if line.endswith("\n")]


def tell_beside(runs: int, steps: list[Step], pairs: list[tuple[Turn, Turn]]) -> None:
    print(f"a run on {runs} of {os.cpu_count()} cores, {len(pairs)} turns of {TURN_S:g} s")
    for part in ("step", "memory", "processor", "disk"):
        with_it, without, ratios = [], [], []
        for reading, standing in pairs:
            beside_it = [seconds(step, part) for step in steps if reading.holds(step)]
            alone = [seconds(step, part) for step in steps if standing.holds(step)]
            if beside_it and alone:
                with_it += beside_it
                without += alone
                ratios.append(statistics.median(beside_it) / statistics.median(alone))
        low, middle, high = (100 * (each - 1) for each in statistics.quantiles(ratios, n=4))
        print(
            f"  {part:9} without {1e3 * statistics.median(without):6.1f} ms, with "
            f"{1e3 * statistics.median(with_it):6.1f} ms; turn by turn {middle:+.1f} % "
            f"(half of them {low:+.1f} to {high:+.1f})"
        )


def seconds(step: Step, part: str) -> float:
    return step["end"] - step["begin"] if part == "step" else step[part]


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        verify_one(Path(sys.argv[2]))
        return
    size_mb = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    base = sys.argv[2] if len(sys.argv) > 2 else None
    root = Path(tempfile.mkdtemp(prefix="verify-bench-", dir=base))
    os.environ["XDG_STATE_HOME"] = str(root / "state")
    try:
        folder = write(root / "checkpoints", size_mb)
        compare(folder)
        for runs in sorted({1, os.cpu_count() or 1}):
            beside(folder, runs)
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
