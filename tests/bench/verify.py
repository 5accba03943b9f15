"""How long a deep verify takes, next to `cat`, `cksum` and `sha256sum` of the same files.

Usage: python tests/bench/verify.py [MB] [FOLDER]   (default 3000 MB, below the temporary folder)

Each is run warm, all files in the page cache, and cold, none. For the verify also: its peak memory,
and how far the page cache and MemAvailable moved.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from tui.checkpoints.ledger import remembered
from tui.checkpoints.verify import verify
from tui.demo.checkpoint import iteration_folder, save, save_data_source
from tui.demo.weights import Model

ROUNDS = 3
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


def main() -> None:
    if sys.argv[1:2] == ["--one"]:
        verify_one(Path(sys.argv[2]))
        return
    size_mb = int(sys.argv[1]) if len(sys.argv) > 1 else 3000
    base = sys.argv[2] if len(sys.argv) > 2 else None
    root = Path(tempfile.mkdtemp(prefix="verify-bench-", dir=base))
    os.environ["XDG_STATE_HOME"] = str(root / "state")
    try:
        compare(write(root / "checkpoints", size_mb))
    finally:
        shutil.rmtree(root)


if __name__ == "__main__":
    main()
