"""The simulated box: `meminfo` and `gpu.json` in the run's folder, rewritten each second.

The numbers are those of an NVIDIA GB10: one memory pool for CPU and GPU, so what the trainer and
the engines hold comes out of the kernel's MemAvailable.
"""

from __future__ import annotations

import json
import random
import threading
import time
from enum import Enum
from pathlib import Path

_TOTAL_KB = 127_600_748
_GB_KB = 1 << 20
_INTERVAL_S = 1.0
_FALL_GB_PER_S = 6.0
_FLOOR_GB = 2.4


class Activity(Enum):
    """What the GPU is busy with: utilisation, power, clock, temperature, memory in use (GiB)."""

    STARTING = (0.03, 11.0, 208, 44, 22.0)
    GENERATING = (0.96, 91.0, 2281, 71, 74.0)
    TRAINING = (0.99, 96.0, 2236, 74, 82.0)
    SAVING = (0.07, 18.0, 2405, 63, 84.0)
    UPDATING = (0.41, 38.0, 2405, 66, 79.0)
    HUNG = (0.0, 11.4, 208, 49, 82.0)


class Box(threading.Thread):
    """Writes both files until the process ends."""

    def __init__(self, directory: Path, *, seed: int) -> None:
        super().__init__(daemon=True, name="box")
        self.activity = Activity.STARTING
        self.processes: tuple[tuple[int, str, int], ...] = ()
        """Pid, title and bytes of each process on the GPU."""
        self._directory = directory
        self._draw = random.Random(f"{seed}:box")  # noqa: S311 - no secret
        self._falls_since: float | None = None

    def let_memory_fall(self) -> None:
        """From now on something eats the pool."""
        if self._falls_since is None:
            self._falls_since = time.monotonic()

    def run(self) -> None:
        while True:
            self.write()
            time.sleep(_INTERVAL_S)

    def write(self) -> None:
        _replace(self._directory / "meminfo", self._meminfo())
        _replace(self._directory / "gpu.json", self._gpu())

    def _available_gb(self) -> float:
        used = self.activity.value[4] + self._draw.uniform(-0.4, 0.4)
        available = _TOTAL_KB / _GB_KB - used
        if self._falls_since is not None:
            available -= _FALL_GB_PER_S * (time.monotonic() - self._falls_since)
        return max(_FLOOR_GB, available)

    def _meminfo(self) -> str:
        available = int(self._available_gb() * _GB_KB)
        cached = min(9 * _GB_KB, available // 2)
        rows = {
            "MemTotal": _TOTAL_KB,
            "MemFree": available - cached,
            "MemAvailable": available,
            "Buffers": 412_608,
            "Cached": cached,
            "SwapCached": 0,
            "Active": 8_211_404,
            "Inactive": 6_022_180,
            "SwapTotal": 16_777_212,
            "SwapFree": 16_777_212,
            "Dirty": 1_284,
            "AnonPages": _TOTAL_KB - available,
            "Mapped": 1_904_128,
            "Shmem": 2_201_344,
            "Slab": 1_204_816,
            "SReclaimable": 702_112,
            "CmaTotal": 0,
            "CmaFree": 0,
        }
        return "".join(f"{name + ':':<16}{kb:>9} kB\n" for name, kb in rows.items())

    def _gpu(self) -> str:
        load, power_w, clock, temperature, _ = self.activity.value
        warmth = temperature + self._draw.randint(-1, 1)
        device = {
            "index": 0,
            "name": "NVIDIA GB10",
            "unified": True,
            "utilisation_ratio": round(
                min(1.0, max(0.0, load + self._draw.uniform(-0.02, 0.01))), 2
            ),
            "power_w": round(power_w * self._draw.uniform(0.97, 1.03), 2),
            "sm_clock_mhz": clock,
            "temperature_c": warmth,
            "temperature_margin_c": 84 - warmth,
            "processes": [
                {"pid": pid, "name": name, "memory_bytes": size}
                for pid, name, size in self.processes
            ],
        }
        return json.dumps({"driver_version": "580.173.02", "devices": [device]})


def _replace(path: Path, text: str) -> None:
    temporary = path.with_name(path.name + ".tmp")
    temporary.write_text(text)
    temporary.replace(path)
