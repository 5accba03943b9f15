"""How long the history of a large log takes, next to `grep -c` and a plain read in the same run.

Usage: python tests/bench/history.py [MIB]   (default 1024; needs twice that on the disk's cache)
"""

from __future__ import annotations

import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from tui.model.launch import Attachment, Found
from tui.model.reduce import reduced
from tui.model.snapshot import Snapshot
from tui.probes.log_tail import LogProbe

ROUNDS = 3
_STEP = (
    "\x1b[36m(FSDPTrainRayActor pid=200)\x1b[0m [{at}.000 actor_cell0_rank0] log_utils.py:542 - "
    "step {n}: {{'train/loss': {x:.4f}, 'train/grad_norm': 0.9, 'train/step': {n}}}\n"
)
_TIMER = (
    "\x1b[36m(FSDPTrainRayActor pid=200)\x1b[0m [{at}.000 actor_cell0_rank0] timer.py:42 - "
    "Timer actor_train end (elapsed: 41.3s)\n"
)
_DECODE = (
    "\x1b[36m(SGLangEngine pid=300)\x1b[0m [{at}] Decode batch, #running-req: 64, #token: 20480, "
    "token usage: 0.12, cuda graph: True, gen throughput (token/s): {x:.2f}, #queue-req: 0\n"
)
_HTTP = (
    '\x1b[36m(SGLangEngine pid=300)\x1b[0m [{at}] INFO:     192.0.2.1:4 - "POST /generate '
    'HTTP/1.1" 200 OK\n'
)


def write(log: Path, size_mib: int) -> None:
    """A log as a long run writes it: mostly engine lines, a few records, now and then a warning."""
    draw, n, written, begin = random.Random(7), 0, 0, 1_790_000_000
    with log.open("w", encoding="utf-8") as out:
        while written < size_mib << 20:
            n += 1
            at = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(begin + n * 60))
            lines = [_DECODE.format(at=at, x=draw.random() * 5000) for _ in range(300)]
            lines += [_HTTP.format(at=at) for _ in range(256)]
            lines += [_TIMER.format(at=at), _STEP.format(at=at, n=n, x=draw.random())]
            if not n % 50:
                lines.append("WARNING:root:something ERROR-like happened\n")
            text = "".join(lines)
            written += out.write(text)


def timed(work: Callable[[], object]) -> float:
    begin = time.perf_counter()
    work()
    return time.perf_counter() - begin


def newest(log: Path) -> None:
    probe, seen = LogProbe(), _watching(log)
    seen = reduced(seen, probe.read(time.time(), seen))
    assert seen.story.step is not None
    probe.close()


def whole(log: Path) -> None:
    probe, seen = LogProbe(), _watching(log)
    seen = reduced(seen, probe.read(time.time(), seen))
    while seen.log.history_ratio < 1.0 or seen.story.first_step != 1:
        time.sleep(0.01)
        seen = reduced(seen, probe.read(time.time(), seen))


def _watching(log: Path) -> Snapshot:
    return Snapshot(attachment=Attachment(log=Found(value=str(log), source="benchmark")))


def main(size_mib: int) -> None:
    """Print the median of some rounds, and the ratio to each floor."""
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "plain.log"
        write(log, size_mib)
        subprocess.run(["cat", log], stdout=subprocess.DEVNULL, check=True)
        works: dict[str, Callable[[], object]] = {
            "plain read (cat)": lambda: subprocess.run(["cat", log], stdout=subprocess.DEVNULL),
            "grep -c ERROR": lambda: subprocess.run(
                ["grep", "-c", "ERROR", log], capture_output=True
            ),
            "milepost, newest state": lambda: newest(log),
            "milepost, whole history": lambda: whole(log),
        }
        took: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(ROUNDS):
            for name, work in works.items():
                took[name].append(timed(work))
    medians = {name: sorted(times)[len(times) // 2] for name, times in took.items()}
    floor = medians["grep -c ERROR"]
    for name, seconds in medians.items():
        print(f"{name:<26} {seconds:8.3f} s   {seconds / floor:7.2f} × grep -c")
    peak_mib = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(f"log {size_mib} MiB, {ROUNDS} rounds, medians; peak memory {peak_mib:.0f} MiB")


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 1024)
