"""What a deep verify costs: beside other readers of the same files, and the run beside it.

Usage: python tests/bench/verify.py [MB] [FOLDER]   (default 3000 MB, below the temporary folder)

`cat`, `cksum` and `sha256sum` take turns with it, warm, all files in the page cache, and cold, none.
For the verify also: its peak memory, and how far the page cache and MemAvailable moved. Then a
stand-in for a run steps all the while, on one core and on all, and verifies of cold files come and
go: its step time with and without.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from tui.checkpoints.ledger import remembered
from tui.checkpoints.verify import verify
from tui.demo.checkpoint import iteration_folder, save, save_data_source
from tui.demo.weights import Model

ROUNDS = 3
BESIDE_ROUNDS, PAUSE_S, SAMPLED_S = 8, 5.0, 0.1
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
    before = peak_mib()
    available, cached = meminfo("MemAvailable"), meminfo("Cached")
    begin = time.perf_counter()
    result = verify(folder)
    seconds = time.perf_counter() - begin
    assert result.is_good, result
    usage = resource.getrusage(resource.RUSAGE_SELF)
    cost = {
        "seconds": seconds,
        "cpu_s": usage.ru_utime + usage.ru_stime,
        "before_mib": before,
        "peak_mib": peak_mib(),
        "available_mib": meminfo("MemAvailable") - available,
        "cached_mib": meminfo("Cached") - cached,
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
        cost = min(costs, key=lambda cost: cost["seconds"])
        print(
            f"     milepost: CPU {cost['cpu_s']:.1f} s, memory {cost['before_mib']:.0f} → "
            f"{cost['peak_mib']:.0f} MiB, page cache {cost['cached_mib']:+.0f} MiB, "
            f"MemAvailable {cost['available_mib']:+.0f} MiB"
        )
    begin = time.perf_counter()
    assert remembered(folder)
    print(f"its result remembered: {1e3 * (time.perf_counter() - begin):.2f} ms")


Step = dict[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Spell:
    """One verify while the stand-in steps, and the memory of the box meanwhile, in MiB."""

    begin: float
    end: float
    available: tuple[int, int, int]
    """MemAvailable before, least, after."""
    cached: tuple[int, int, int]
    """Cached before, most, after."""


def spell_of(folder: Path) -> Spell:
    make_cold(files_of(folder))
    available, cached = [meminfo("MemAvailable")], [meminfo("Cached")]
    begin = time.monotonic()
    with subprocess.Popen(
        [sys.executable, __file__, "--one", str(folder)], stdout=subprocess.DEVNULL
    ) as reader:
        while reader.poll() is None:
            available.append(meminfo("MemAvailable"))
            cached.append(meminfo("Cached"))
            time.sleep(SAMPLED_S)
    end = time.monotonic()
    assert reader.returncode == 0
    return Spell(
        begin=begin,
        end=end,
        available=(available[0], min(available), meminfo("MemAvailable")),
        cached=(cached[0], max(cached), meminfo("Cached")),
    )


def beside(folder: Path, runs: int) -> None:
    """Verifies that come and go while `runs` stand-ins step."""
    with tempfile.TemporaryDirectory(dir=folder.parent) as written, ExitStack() as ended:
        steppers = []
        for _ in range(runs):
            output = ended.enter_context(tempfile.TemporaryFile("w+"))
            stepper = subprocess.Popen([sys.executable, str(STAND_IN), written], stdout=output)
            ended.callback(stepper.wait)
            ended.callback(stepper.kill)
            steppers.append(output)
        spells = []
        for _ in range(BESIDE_ROUNDS):
            time.sleep(PAUSE_S)
            spells.append(spell_of(folder))
        time.sleep(PAUSE_S)
        steps = [step for output in steppers for step in steps_in(output)]
    tell_beside(runs, steps, spells)


def steps_in(output: TextIO) -> list[Step]:
    output.seek(0)
    return [json.loads(line) for line in output if line.endswith("\n")][1:]


def tell_beside(runs: int, steps: list[Step], spells: list[Spell]) -> None:
    """Each verify against the pauses around it: other work on the box comes and goes."""
    took = statistics.median(v.end - v.begin for v in spells)
    print(
        f"beside {runs} of {os.cpu_count()} cores at work: {len(spells)} verifies of {took:.1f} s"
    )
    for part in ("whole step", "memory", "processor", "disk"):
        without, with_it = [], []
        for spell in spells:
            without.append(statistics.median(seconds(s, part) for s in steps if is_near(s, spell)))
            with_it.append(statistics.median(seconds(s, part) for s in steps if is_in(s, spell)))
        more = sorted(100 * (b / a - 1) for a, b in zip(without, with_it, strict=True))
        print(
            f"  {part:10} without {1e3 * statistics.median(without):6.1f} ms, with "
            f"{1e3 * statistics.median(with_it):6.1f} ms: {statistics.median(more):+.1f} % "
            f"({more[0]:+.1f} to {more[-1]:+.1f})"
        )
    least = statistics.median(v.available[1] - v.available[0] for v in spells)
    after = statistics.median(v.available[2] - v.available[0] for v in spells)
    most = statistics.median(v.cached[1] - v.cached[0] for v in spells)
    cached = statistics.median(v.cached[2] - v.cached[0] for v in spells)
    print(f"  MemAvailable {least:+.0f} MiB at the least, {after:+.0f} after; ", end="")
    print(f"page cache {most:+.0f} MiB at the most, {cached:+.0f} after")


def is_in(step: Step, spell: Spell) -> bool:
    return spell.begin <= step["begin"] and step["end"] <= spell.end


def is_near(step: Step, spell: Spell) -> bool:
    before = spell.begin - PAUSE_S <= step["begin"] and step["end"] <= spell.begin
    after = spell.end <= step["begin"] and step["end"] <= spell.end + PAUSE_S
    return before or after


def seconds(step: Step, part: str) -> float:
    return step["end"] - step["begin"] if part == "whole step" else step[part]


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
