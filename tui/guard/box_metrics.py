"""What is told of the engines and the box: GPU, memory, disk. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tui.guard.metric import Metric, Sample, Samples, states
from tui.model.engine import EngineMetrics, EngineState
from tui.model.gpu import Gpu
from tui.model.memory import Disk, Memory
from tui.model.reading import Known, Reading, value_or
from tui.model.snapshot import Snapshot

_ENGINES, _DEVICES = 64, 64


def _memory(value: Callable[[Memory], float | None]) -> Samples:
    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        memory = value_or(snapshot.memory, None)
        if memory is not None and "memory" not in snapshot.missed:
            yield {}, value(memory)

    return samples


def _disk(value: Callable[[Disk], float]) -> Samples:
    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        disk = value_or(snapshot.disk, None)
        if disk is not None and "disk" not in snapshot.missed:
            yield {"mount": disk.mount}, value(disk)

    return samples


def _gpu(value: Callable[[Gpu], Reading[float] | Reading[int]], factor: float = 1.0) -> Samples:
    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        report = value_or(snapshot.gpus, None)
        if report is None or "gpu" in snapshot.missed:
            return
        for device in report.devices[:_DEVICES]:
            reading = value(device)
            known = reading.value * factor if isinstance(reading, Known) else None
            yield {"device": str(device.index)}, known

    return samples


def _gpu_info(snapshot: Snapshot) -> Iterator[Sample]:
    report = value_or(snapshot.gpus, None)
    for device in report.devices[:_DEVICES] if report is not None else ():
        labels = {"device": str(device.index), "name": device.name}
        yield {**labels, "driver": report.driver_version if report else ""}, 1.0


# Engines


def _engine_states(snapshot: Snapshot) -> Iterator[Sample]:
    for engine in snapshot.verdict.engines[:_ENGINES]:
        yield from states(engine.state, {"engine": engine.label})


def _engine(
    value: Callable[[EngineMetrics], float],
) -> Samples:
    """Of its own counters: an engine that does not answer has none."""

    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        counters = {track.probe.url: track.probe.metrics for track in snapshot.engines}
        for engine in snapshot.verdict.engines[:_ENGINES]:
            metrics = counters.get(engine.url)
            if isinstance(metrics, Known):
                yield {"engine": engine.label}, value(metrics.value)

    return samples


def _throughputs(snapshot: Snapshot) -> Iterator[Sample]:
    for engine in snapshot.verdict.engines[:_ENGINES]:
        # An idle one goes on reporting the throughput of its last work.
        works = engine.state is EngineState.GENERATING
        yield {"engine": engine.label}, engine.throughput_tokens_per_s if works else 0.0


def _swap_used(memory: Memory) -> float:
    return memory.swap_total_bytes - memory.swap_free_bytes


BOX: tuple[Metric, ...] = (
    Metric("engine_state", "What an engine is doing.", _engine_states),
    Metric("engine_tokens_per_second", "Tokens that an engine moves now.", _throughputs),
    Metric(
        "engine_tokens_total",
        "Tokens that an engine has processed.",
        _engine(lambda counters: counters.tokens_total),
    ),
    Metric(
        "engine_running_requests",
        "Requests that an engine works on.",
        _engine(lambda counters: counters.running_requests),
    ),
    Metric(
        "engine_queued_requests",
        "Requests that wait in an engine.",
        _engine(lambda counters: counters.queued_requests),
    ),
    Metric(
        "engine_kv_cache_usage_ratio",
        "Share of an engine's KV cache in use.",
        _engine(lambda counters: counters.token_usage_ratio),
    ),
    Metric("gpu_info", "Which GPU it is.", _gpu_info),
    Metric(
        "gpu_utilization_ratio",
        "Share of the time in which the GPU was busy.",
        _gpu(lambda device: device.utilisation_ratio),
    ),
    Metric("gpu_power_watts", "Power of the GPU.", _gpu(lambda device: device.power_w)),
    Metric(
        "gpu_temperature_celsius",
        "Temperature of the GPU.",
        _gpu(lambda device: device.temperature_c),
    ),
    Metric(
        "gpu_sm_clock_hertz",
        "Clock of the GPU's multiprocessors.",
        _gpu(lambda device: device.sm_clock_mhz, 1e6),
    ),
    Metric(
        "gpu_memory_size_bytes",
        "The GPU's own memory.",
        _gpu(lambda device: device.memory_total_bytes),
    ),
    Metric(
        "gpu_memory_used_bytes",
        "The GPU's own memory in use.",
        _gpu(lambda device: device.memory_used_bytes),
    ),
    Metric(
        "memory_size_bytes", "The memory pool of the box.", _memory(lambda pool: pool.total_bytes)
    ),
    Metric(
        "memory_available_bytes",
        "What of the pool can still be taken.",
        _memory(lambda pool: pool.available_bytes),
    ),
    Metric("memory_swap_used_bytes", "Swap in use.", _memory(_swap_used)),
    Metric(
        "memory_pressure_full_ratio",
        "Share of the last ten seconds in which every task waited for memory.",
        _memory(lambda pool: value_or(pool.pressure_full_ratio, None)),
    ),
    Metric(
        "disk_size_bytes",
        "The filesystem of the save folder.",
        _disk(lambda disk: disk.total_bytes),
    ),
    Metric(
        "disk_free_bytes",
        "Free for the run on the filesystem of its save folder.",
        _disk(lambda disk: disk.free_bytes),
    ),
)
