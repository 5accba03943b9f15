"""What NVML's answers mean: faults in words, unified memory, the slowdown counters. Pure.

NVML's exceptions are never kept: they cannot be hashed and `error == None` raises. A name and a
code are.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from enum import IntEnum

from tui.model.reading import Absence, Known, Unknown

LOWEST_MARGIN_C = -10
"""A device shuts down a few degrees over its limit, so a margin below this is no measurement."""

_SHARES_POOL = re.compile(r"\b(GB10|N1X?|Thor|Orin|Xavier|Tegra)\b", re.IGNORECASE)
"""Parts that have no memory of their own."""
_HAS_OWN_MEMORY = re.compile(
    r"GeForce|\bRTX\b|\bGTX\b|Quadro|Tesla|TITAN|HBM|SXM|PCIe|\d ?GB\b", re.IGNORECASE
)
"""Families of cards, whatever their driver answers."""


class NvmlCode(IntEnum):
    """Return codes of nvml.h that have a meaning for a person."""

    NOT_SUPPORTED = 3
    NO_PERMISSION = 4
    DRIVER_NOT_LOADED = 9
    TIMEOUT = 10
    LIBRARY_NOT_FOUND = 12
    FUNCTION_NOT_FOUND = 13
    GPU_IS_LOST = 15
    RESET_REQUIRED = 16
    LIB_RM_VERSION_MISMATCH = 18
    UNKNOWN = 999


_MEANINGS: Mapping[int, tuple[Absence, str]] = {
    NvmlCode.NOT_SUPPORTED: (Absence.NOT_SUPPORTED, "{subject} has no such value"),
    NvmlCode.FUNCTION_NOT_FOUND: (
        Absence.NOT_SUPPORTED,
        "the driver has no such call; a newer driver may",
    ),
    NvmlCode.NO_PERMISSION: (
        Absence.NO_PERMISSION,
        "no permission to read {subject}; run as a user who may open /dev/nvidia*",
    ),
    NvmlCode.DRIVER_NOT_LOADED: (
        Absence.MISSING,
        "the NVIDIA driver is installed but not loaded; load it (modprobe nvidia) or reboot",
    ),
    NvmlCode.TIMEOUT: (
        Absence.TIMED_OUT,
        "{subject} did not answer the driver's library in time; it is asked again",
    ),
    NvmlCode.LIBRARY_NOT_FOUND: (
        Absence.MISSING,
        "no NVIDIA driver on this machine; in a container, start it with --gpus all",
    ),
    NvmlCode.GPU_IS_LOST: (
        Absence.ERROR,
        "{subject} is lost: it fell off the bus; the run on it is over, "
        "look into the kernel log (dmesg) and switch the machine off and on",
    ),
    NvmlCode.RESET_REQUIRED: (
        Absence.ERROR,
        "{subject} needs a reset; the run on it is over, reboot",
    ),
    NvmlCode.LIB_RM_VERSION_MISMATCH: (
        Absence.ERROR,
        "driver was updated under a running system; the run may go on, "
        "reboot at the next checkpoint",
    ),
    NvmlCode.UNKNOWN: (
        Absence.ERROR,
        "{subject} failed without saying why; if it stays so, look into the kernel log (dmesg)",
    ),
}


def fault_meaning(name: str, code: int, subject: str, at: float) -> Unknown:
    """An NVML error as the absence of a value, with a remedy where one is known."""
    why, words = _MEANINGS.get(code, (Absence.ERROR, "{subject} failed"))
    return Unknown(why=why, reason=f"{words.format(subject=subject)} ({name}, {code})", at=at)


def shares_pool(name: str, memory: Known[tuple[int, int]] | Unknown) -> bool | None:
    """Whether the device lives off the box's pool; None when this answer does not tell.

    `memory` is NVML's (total, used). A part known to share the pool does so whatever total is told:
    community shims fill in the box's, N1X a few GiB. An unknown part shares it when it reports no
    memory. A card never does, and an error, such as a lost device, proves nothing.
    """
    if isinstance(memory, Unknown) and memory.why is not Absence.NOT_SUPPORTED:
        return None
    if _SHARES_POOL.search(name):
        return True
    reports_none = isinstance(memory, Unknown) or memory.value[0] == 0
    return reports_none and not _HAS_OWN_MEMORY.search(name)


class SlowdownMeter:
    """Share of the time spent slowed down, from counters whose unit is told in two ways.

    nvml.h says nanoseconds, nvidia-smi prints the same counters as microseconds. None grows faster
    than time, so a growth that is impossible in microseconds proves nanoseconds; one that stays
    possible several times in a row settles on microseconds. Until then there is no ratio.
    """

    _SLACK = 2.0
    """The units are a factor of 1000 apart; this much covers any jitter of the two clocks."""
    _TIMES = 3

    def __init__(self) -> None:
        self._before: tuple[float, tuple[int, ...]] | None = None
        self._unit_s: float | None = None
        self._possible = 0

    def ratio(self, at: float, counters: tuple[int, ...]) -> float | None:
        """The share since the call before, None when it cannot be told."""
        before, self._before = self._before, (at, counters)
        if before is None or at <= before[0] or len(before[1]) != len(counters):
            return None
        grown = [new - old for new, old in zip(counters, before[1], strict=True)]
        if min(grown) < 0:
            return None
        elapsed_s = at - before[0]
        return self._share(max(grown), elapsed_s)

    def _share(self, grown: int, elapsed_s: float) -> float | None:
        if grown == 0:
            return 0.0
        if grown * 1e-6 > self._SLACK * elapsed_s:
            self._unit_s = 1e-9
        elif self._unit_s is None:
            self._possible += 1
            self._unit_s = 1e-6 if self._possible >= self._TIMES else None
        return None if self._unit_s is None else min(1.0, grown * self._unit_s / elapsed_s)
