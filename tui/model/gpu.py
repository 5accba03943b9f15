"""What NVML says of the GPUs of this box.

On a unified-memory part (GB10) the device has no memory of its own: its memory readings are
`NOT_SUPPORTED`, and the pool of the box (`tui.model.memory`) is the number to watch.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui.model.reading import NOT_ASKED, Reading


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuProcess:
    """One process that holds memory on a device."""

    pid: int
    """As the driver reports it: a pid of the host's namespace."""
    name: str = ""
    """Process title, empty where it cannot be read."""
    memory_bytes: Reading[int] = NOT_ASKED
    """Held by ordinary device allocations; managed memory is not in it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One device at one moment."""

    index: int
    name: str
    uuid: str = ""
    unified: bool = False
    """The device has no memory of its own and shares the box's pool."""
    utilisation_ratio: Reading[float] = NOT_ASKED
    power_w: Reading[float] = NOT_ASKED
    """The GPU rail, not the box."""
    power_limit_w: Reading[float] = NOT_ASKED
    sm_clock_mhz: Reading[float] = NOT_ASKED
    temperature_c: Reading[float] = NOT_ASKED
    temperature_margin_c: Reading[float] = NOT_ASKED
    """Degrees left until the device slows itself down; a small negative is over the limit."""
    memory_total_bytes: Reading[int] = NOT_ASKED
    memory_used_bytes: Reading[int] = NOT_ASKED
    throttle_reasons: Reading[tuple[str, ...]] = NOT_ASKED
    """Names of the clock event reasons active now, idle and application clocks left out."""
    thermal_slowdown_ratio: Reading[float] = NOT_ASKED
    """Share of the time since the reading before that was spent slowed down by heat."""
    processes: Reading[tuple[GpuProcess, ...]] = NOT_ASKED


@dataclass(frozen=True, slots=True, kw_only=True)
class GpuReport:
    """All devices of one tick."""

    driver_version: str
    devices: tuple[Gpu, ...]
    library: str = ""
    """Version of the Python binding, for bug reports."""
    warnings: tuple[str, ...] = ()
    """Set-up faults worth a line: a second NVML binding installed, a deprecated one in use."""
