"""A stand-in for a run: steps that need memory, processor and disk, each part timed.

Usage: python tests/bench/stand_in.py FOLDER    (until it is ended; one JSON line a step)
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import sys
import time
from pathlib import Path

POOL_BYTES = 64 << 20
"""Larger than any cache of the processor."""
COPIES, HASHED_BYTES, WRITTEN_BYTES = 6, 48 << 20, 8 << 20


def step(source: bytearray, target: bytearray, descriptor: int) -> dict[str, float]:
    """Copy through memory, compute, write to the disk and wait for it."""
    times = [time.monotonic()]
    for _ in range(COPIES):
        target[:] = source
    times.append(time.monotonic())
    hashlib.sha256(memoryview(source)[:HASHED_BYTES]).digest()
    times.append(time.monotonic())
    os.pwrite(descriptor, memoryview(source)[:WRITTEN_BYTES], 0)
    os.fsync(descriptor)
    times.append(time.monotonic())
    memory, processor, disk = (b - a for a, b in itertools.pairwise(times))
    return {
        "begin": times[0],
        "end": times[-1],
        "memory": memory,
        "processor": processor,
        "disk": disk,
    }


def main() -> None:
    source, target = bytearray(os.urandom(1 << 20) * (POOL_BYTES >> 20)), bytearray(POOL_BYTES)
    path = Path(sys.argv[1]) / f"written-{os.getpid()}"
    descriptor = os.open(path, os.O_CREAT | os.O_WRONLY)
    while True:
        print(json.dumps(step(source, target, descriptor)), flush=True)


if __name__ == "__main__":
    main()
