"""The child process that asks NVML: one request a line in, one report a line out.

A process of its own, because NVML calls have blocked for minutes and crash with their driver. It
asks no more than it must, since the run it watches waits at the same driver lock: one `nvmlInit`,
values at each request, process lists every few seconds, the rest every few minutes. Each value is
read under a guard of its own: one failure never drops the others.
"""

from __future__ import annotations

import importlib.metadata
import json
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any, TypeVar

import pynvml

from tui.model.gpu import Gpu, GpuProcess, GpuReport
from tui.model.reading import NOT_ASKED, Absence, Known, Reading, Unknown, known, mapped, value_or
from tui.probes.child import die_with_parent, own_output
from tui.probes.gpu_processes import merged
from tui.probes.gpu_rules import (
    LOWEST_MARGIN_C,
    NvmlCode,
    SlowdownMeter,
    fault_meaning,
    shares_pool,
)
from tui.probes.gpu_wire import encoded

T = TypeVar("T")

PROCESSES_EVERY_S = 5.0
FACTS_EVERY_S = 180.0

_BINDING = "nvidia-ml-py"
_MISMATCH = getattr(pynvml, "NVMLLibraryMismatchError", pynvml.NVMLError)
"""Not a kind of NVMLError, and not in every binding that calls itself pynvml."""

_REASONS = {
    "SwPowerCap": "software power cap",
    "HwSlowdown": "hardware slowdown",
    "SyncBoost": "sync boost",
    "SwThermalSlowdown": "software thermal slowdown",
    "HwThermalSlowdown": "hardware thermal slowdown",
    "HwPowerBrakeSlowdown": "hardware power brake",
    "DisplayClockSetting": "display clock setting",
}
"""Clock event reasons by the end of their constant's name."""


@dataclass(frozen=True, slots=True)
class Tick:
    """One request: the asker's clock, carried on by ours."""

    at: float
    began: float

    def now(self) -> float:
        """The asker's clock at this moment, however long the calls before it took."""
        return self.at + time.monotonic() - self.began


def guarded(call: Callable[..., T], *args: Any, subject: str, at: float) -> Reading[T]:
    """What the call returns, or its failure in words."""
    try:
        return known(call(*args), at)
    except pynvml.NVMLError as error:
        return fault_meaning(type(error).__name__, error.value, subject, at)
    except (_MISMATCH, AttributeError) as error:
        return fault_meaning(type(error).__name__, NvmlCode.FUNCTION_NOT_FOUND, subject, at)
    except OSError as error:
        return Unknown(why=Absence.ERROR, reason=f"{subject}: {error}", at=at)


class Device:
    """One GPU and what is kept of it between requests."""

    def __init__(self, index: int) -> None:
        self._index = index
        self._handle: Reading[Any] = NOT_ASKED
        self._name = f"GPU {index}"
        self._uuid = ""
        self._unified = False
        self._power_limit_w: Reading[float] = NOT_ASKED
        self._unsupported: dict[str, Unknown] = {}
        self._processes: Reading[tuple[GpuProcess, ...]] = NOT_ASKED
        self._processes_at = float("-inf")
        self._slowdown = SlowdownMeter()

    def identify(self, at: float) -> None:
        """Ask for what hardly changes, and give unsupported values another chance."""
        self._unsupported.clear()
        by_index = pynvml.nvmlDeviceGetHandleByIndex
        handle = guarded(by_index, self._index, subject=f"GPU {self._index}", at=at)
        if isinstance(handle, Known) or isinstance(self._handle, Unknown):
            self._handle = handle
        self._name = value_or(self._ask(at, "name", pynvml.nvmlDeviceGetName), self._name)
        self._uuid = value_or(self._ask(at, "uuid", pynvml.nvmlDeviceGetUUID), self._uuid)
        self._power_limit_w = self._ask(at, "power limit", _power_limit_w, _enforced_limit_w)

    def read(self, tick: Tick) -> Gpu:
        """All values now."""
        at = tick.at
        total_bytes, used_bytes = self._memory(at)
        if not 0 <= at - self._processes_at < PROCESSES_EVERY_S:
            self._processes, self._processes_at = self._held(at), at
        return Gpu(
            index=self._index,
            name=self._name,
            uuid=self._uuid,
            unified=self._unified,
            utilisation_ratio=self._ask(at, "utilisation", _utilisation_ratio),
            power_w=self._ask(at, "power", _power_w),
            power_limit_w=self._power_limit_w,
            sm_clock_mhz=self._ask(at, "clock", _sm_clock_mhz),
            temperature_c=self._ask(at, "temperature", _temperature_c, _temperature_old_c),
            temperature_margin_c=self._margin_c(at),
            memory_total_bytes=total_bytes,
            memory_used_bytes=used_bytes,
            throttle_reasons=self._ask(at, "reasons", _reasons),
            thermal_slowdown_ratio=self._slowdown_ratio(tick),
            processes=self._processes,
        )

    def _ask(self, at: float, field: str, *calls: Callable[[Any], T]) -> Reading[T]:
        """The answer of the first call that is supported; a no is kept until `identify`."""
        if isinstance(self._handle, Unknown):
            return self._handle
        if field in self._unsupported:
            return self._unsupported[field]
        reading: Reading[T] = NOT_ASKED
        for call in calls:
            reading = guarded(call, self._handle.value, subject=f"GPU {self._index}", at=at)
            if isinstance(reading, Known) or reading.why is not Absence.NOT_SUPPORTED:
                return reading
        if isinstance(reading, Unknown):
            self._unsupported[field] = reading
        return reading

    def _memory(self, at: float) -> tuple[Reading[int], Reading[int]]:
        memory = self._ask(at, "memory", _memory_v2_bytes, _memory_bytes)
        unified = shares_pool(self._name, memory)
        if unified is not None:
            self._unified = unified
        if unified or (isinstance(memory, Known) and memory.value[0] == 0):
            reason = f"{self._name} reports no memory of its own"
            memory = Unknown(why=Absence.NOT_SUPPORTED, reason=reason, at=at)
        return mapped(memory, lambda both: both[0]), mapped(memory, lambda both: both[1])

    def _margin_c(self, at: float) -> Reading[float]:
        margin = self._ask(at, "margin", _margin_c)
        if isinstance(margin, Known) and margin.value < LOWEST_MARGIN_C:
            reason = f"NVML tells a margin of {margin.value:.0f} °C, which cannot be"
            return Unknown(why=Absence.NOT_SUPPORTED, reason=reason, at=at)
        return margin

    def _slowdown_ratio(self, tick: Tick) -> Reading[float]:
        counters = self._ask(tick.at, "slowdown", _slowdown_counters)
        if isinstance(counters, Unknown):
            return counters
        ratio = self._slowdown.ratio(tick.now(), counters.value)
        if ratio is None:
            reason = "a share needs two readings, and more to be sure of the counters' unit"
            return Unknown(why=Absence.NOT_ASKED, reason=reason, at=tick.at)
        return known(ratio, tick.at)

    def _held(self, at: float) -> Reading[tuple[GpuProcess, ...]]:
        compute = self._ask(at, "compute processes", _compute_processes)
        graphics = self._ask(at, "graphics processes", _graphics_processes)
        for listed in (compute, graphics):
            if isinstance(listed, Unknown) and listed.why is not Absence.NOT_SUPPORTED:
                return listed
        if isinstance(compute, Unknown) and isinstance(graphics, Unknown):
            return compute
        return known(merged((*value_or(compute, ()), *value_or(graphics, ())), at), at)


class Reader:
    """NVML as a whole: initialised once, failures tried again rarely."""

    def __init__(self) -> None:
        self._devices: tuple[Device, ...] = ()
        self._driver_version = ""
        self._fault: Unknown | None = None
        self._initialised = False
        self._surveyed_at = float("-inf")
        self._library, self._warnings = binding_version(), binding_warnings()

    def report(self, at: float) -> Reading[GpuReport]:
        """The answer to one request."""
        tick = Tick(at=at, began=time.monotonic())
        if not 0 <= at - self._surveyed_at < FACTS_EVERY_S:
            self._surveyed_at = at
            self._fault = self._survey(at)
        if self._fault is not None:
            return self._fault
        report = GpuReport(
            driver_version=self._driver_version,
            devices=tuple(device.read(tick) for device in self._devices),
            library=self._library,
            warnings=self._warnings,
        )
        return known(report, at)

    def _survey(self, at: float) -> Unknown | None:
        if not self._initialised:
            started = guarded(pynvml.nvmlInit, subject="the driver", at=at)
            if isinstance(started, Unknown):
                return started
            self._initialised = True
        version = guarded(pynvml.nvmlSystemGetDriverVersion, subject="the driver", at=at)
        self._driver_version = value_or(version, self._driver_version)
        count = guarded(pynvml.nvmlDeviceGetCount, subject="the driver", at=at)
        if isinstance(count, Unknown) and not self._devices:
            return count
        new = range(len(self._devices), value_or(count, 0))
        self._devices += tuple(map(Device, new))
        if not self._devices:
            reason = "the NVIDIA driver sees no GPU; look into the kernel log (dmesg)"
            return Unknown(why=Absence.MISSING, reason=reason, at=at)
        for device in self._devices:
            device.identify(at)
        return None


def _utilisation_ratio(handle: Any) -> float:
    # The second rate, of memory, is 0 on a unified part, and looks like a measurement.
    return float(pynvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100)


def _power_w(handle: Any) -> float:
    return float(pynvml.nvmlDeviceGetPowerUsage(handle) / 1000)


def _power_limit_w(handle: Any) -> float:
    return _limit_w(pynvml.nvmlDeviceGetPowerManagementLimit(handle))


def _enforced_limit_w(handle: Any) -> float:
    return _limit_w(pynvml.nvmlDeviceGetEnforcedPowerLimit(handle))


def _limit_w(limit_mw: int) -> float:
    if limit_mw == 0:
        raise pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)
    return limit_mw / 1000


def _sm_clock_mhz(handle: Any) -> float:
    return float(pynvml.nvmlDeviceGetClockInfo(handle, pynvml.NVML_CLOCK_SM))


def _temperature_c(handle: Any) -> float:
    return float(pynvml.nvmlDeviceGetTemperatureV(handle, pynvml.NVML_TEMPERATURE_GPU))


def _temperature_old_c(handle: Any) -> float:
    return float(pynvml.nvmlDeviceGetTemperature(handle, pynvml.NVML_TEMPERATURE_GPU))


def _margin_c(handle: Any) -> float:
    return float(pynvml.nvmlDeviceGetMarginTemperature(handle))


def _memory_v2_bytes(handle: Any) -> tuple[int, int]:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle, version=pynvml.nvmlMemory_v2)
    return int(memory.total), int(memory.used)


def _memory_bytes(handle: Any) -> tuple[int, int]:
    memory = pynvml.nvmlDeviceGetMemoryInfo(handle)
    return int(memory.total), int(memory.used)


def _reasons(handle: Any) -> tuple[str, ...]:
    mask = pynvml.nvmlDeviceGetCurrentClocksEventReasons(handle)
    bits = {end: getattr(pynvml, f"nvmlClocksEventReason{end}") for end in _REASONS}
    return tuple(words for end, words in _REASONS.items() if mask & bits[end])


def _slowdown_counters(handle: Any) -> tuple[int, ...]:
    fields = pynvml.nvmlDeviceGetFieldValues(
        handle,
        [
            pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_SW_THERM_SLOWDOWN,
            pynvml.NVML_FI_DEV_CLOCKS_EVENT_REASON_HW_THERM_SLOWDOWN,
        ],
    )
    answered = [field for field in fields if field.nvmlReturn == pynvml.NVML_SUCCESS]
    if not answered:
        raise pynvml.NVMLError(fields[0].nvmlReturn)
    return tuple(int(field.value.ullVal) for field in answered)


def _compute_processes(handle: Any) -> tuple[tuple[int, int | None], ...]:
    return _sizes(pynvml.nvmlDeviceGetComputeRunningProcesses(handle))


def _graphics_processes(handle: Any) -> tuple[tuple[int, int | None], ...]:
    return _sizes(pynvml.nvmlDeviceGetGraphicsRunningProcesses(handle))


def _sizes(processes: Iterable[Any]) -> tuple[tuple[int, int | None], ...]:
    return tuple((process.pid, process.usedGpuMemory) for process in processes)


def binding_version() -> str:
    """Which Python binding answers, for bug reports."""
    try:
        return f"{_BINDING} {importlib.metadata.version(_BINDING)}"
    except importlib.metadata.PackageNotFoundError:
        return f"unknown binding {pynvml.__file__}"


def binding_warnings() -> tuple[str, ...]:
    """Other packages that install a module of the same name over the binding."""
    found = []
    for rival in ("nvidia-ml-py3", "pynvml"):
        try:
            version = importlib.metadata.version(rival)
        except importlib.metadata.PackageNotFoundError:
            continue
        if rival != "pynvml" or int(version.partition(".")[0]) < 12:
            found.append(
                f"{rival} {version} overwrites the NVML binding at {pynvml.__file__}; "
                f"pip uninstall {rival}, then pip install --force-reinstall {_BINDING}"
            )
    return tuple(found)


def main() -> None:
    """Answer each request until the asker closes its end."""
    die_with_parent()
    answers = own_output()
    reader = Reader()
    for request in sys.stdin:
        answers.write(encoded(reader.report(float(json.loads(request)))) + "\n")
        answers.flush()


if __name__ == "__main__":
    main()
