"""A GB10 box as values with defaults: devices, memory, disk, container, processes, engines."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from tui.model.engine import (
    EngineMetrics,
    EngineProbe,
    EngineState,
    EngineTrack,
    EngineVerdict,
    RouterProbe,
)
from tui.model.gpu import Gpu, GpuProcess, GpuReport
from tui.model.launch import Container, Process, ProcessTree
from tui.model.memory import GIB, Disk, Memory
from tui.model.reading import Absence, Unknown, known
from tui.model.series import Series

NOW = 1_795_442_531.0
MIN, HOUR = 60.0, 3600.0
ENGINE_URL = "http://192.0.2.2:15000"
ROUTER_URL = "http://192.0.2.2:3912"
SAVE_ROOT = "/ckpt/run-a"
NO_GPU = Unknown(
    why=Absence.MISSING, reason="no NVIDIA driver: libnvidia-ml.so.1 not found", at=NOW
)
NOT_SUPPORTED = Unknown(why=Absence.NOT_SUPPORTED, reason="not supported", at=NOW)


def wave(
    count: int, low: float, high: float, *, last_x: float, step_x: float = 1.0, turns: float = 3.0
) -> Series:
    """`count` points between low and high that end at `last_x`, the same ones every time."""
    middle, half = (low + high) / 2, (high - low) / 2
    return Series(
        points=tuple(
            (
                last_x - (count - 1 - i) * step_x,
                middle + half * math.sin(i * turns * math.tau / count),
            )
            for i in range(count)
        )
    )


def ramp(count: int, low: float, high: float, *, last_x: float, step_x: float = 1.0) -> Series:
    """`count` points that climb from low to high with a little noise, the same every time."""
    width = high - low
    return Series(
        points=tuple(
            (
                last_x - (count - 1 - i) * step_x,
                low + width * i / max(1, count - 1) + width * 0.06 * math.sin(i * 2.3),
            )
            for i in range(count)
        )
    )


def container(**changes: Any) -> Container:
    return replace(
        Container(
            id="9f3c0a7d11b2",
            name="miles-run-a",
            image="miles:latest",
            status="running",
            auto_remove=True,
            started_at=NOW - 52 * HOUR,
            mounts=(("/data/ckpt", "/ckpt"),),
        ),
        **changes,
    )


def processes() -> ProcessTree:
    roles = (
        ("driver", "python3 train.py", 0.02, 0.6),
        ("trainer", "ray::FSDPTrainRayActor.train", 1.0, 6.1),
        ("rollout manager", "ray::RolloutManager", 0.1, 1.4),
        ("engine", "sglang::scheduler", 0.4, 4.8),
    )
    return ProcessTree(
        processes=tuple(
            Process(
                pid=4100 + i,
                started_at=NOW - 52 * HOUR + i,
                role=role,
                title=title,
                cpu_ratio=cpu,
                rss_bytes=int(rss * GIB),
            )
            for i, (role, title, cpu, rss) in enumerate(roles)
        )
    )


def gpu(**changes: Any) -> Gpu:
    """A GB10 under load: no memory of its own, no power limit."""
    return replace(
        Gpu(
            index=0,
            name="NVIDIA GB10",
            uuid="GPU-1",
            unified=True,
            utilisation_ratio=known(0.96, NOW),
            power_w=known(91.2, NOW),
            power_limit_w=NOT_SUPPORTED,
            sm_clock_mhz=known(2281.0, NOW),
            temperature_c=known(71.0, NOW),
            temperature_margin_c=known(13.0, NOW),
            memory_total_bytes=NOT_SUPPORTED,
            memory_used_bytes=NOT_SUPPORTED,
            throttle_reasons=known((), NOW),
            thermal_slowdown_ratio=known(0.0, NOW),
            processes=known(
                (
                    GpuProcess(
                        pid=4243, name="FSDPTrain", memory_bytes=known(int(39.2 * GIB), NOW)
                    ),
                    GpuProcess(pid=4242, name="sglang", memory_bytes=known(int(18.9 * GIB), NOW)),
                ),
                NOW,
            ),
        ),
        **changes,
    )


def discrete_gpu(index: int = 0, **changes: Any) -> Gpu:
    """A card with memory of its own."""
    return replace(
        gpu(
            index=index,
            name="NVIDIA H200",
            unified=False,
            uuid=f"GPU-h200-{index}",
            power_w=known(612.0, NOW),
            power_limit_w=known(700.0, NOW),
            sm_clock_mhz=known(1980.0, NOW),
            memory_total_bytes=known(int(139.8 * GIB), NOW),
            memory_used_bytes=known(int((101.4 + index) * GIB), NOW),
        ),
        **changes,
    )


def report(*devices: Gpu, **changes: Any) -> GpuReport:
    return replace(
        GpuReport(driver_version="580.126.09", devices=devices or (gpu(),), library="13.595"),
        **changes,
    )


def memory(**changes: Any) -> Memory:
    return replace(
        Memory(
            total_bytes=127_600_748 * 1024,
            available_bytes=int(37.5 * GIB),
            free_bytes=int(25.1 * GIB),
            cached_bytes=int(11.0 * GIB),
            swap_total_bytes=16 * GIB,
            swap_free_bytes=16 * GIB,
            pressure_full_ratio=known(0.0, NOW),
        ),
        **changes,
    )


def disk(**changes: Any) -> Disk:
    return replace(
        Disk(
            path=SAVE_ROOT,
            mount="/data",
            filesystem="ext4",
            total_bytes=3_600 * GIB,
            free_bytes=412 * GIB,
            inodes_free_ratio=0.97,
        ),
        **changes,
    )


def engine_verdict(**changes: Any) -> EngineVerdict:
    return replace(
        EngineVerdict(
            label="0",
            url=ENGINE_URL,
            state=EngineState.PAUSED,
            since=NOW - 41,
            reason="offloaded while training",
            throughput_tokens_per_s=3120.0,
            token_usage_ratio=0.0,
            cache_hit_ratio=0.61,
            tokens_moved_at=NOW - 43,
            weight_version="60",
        ),
        **changes,
    )


def generating_engine(**changes: Any) -> EngineVerdict:
    return replace(
        engine_verdict(
            state=EngineState.GENERATING,
            since=NOW - 62,
            reason="tokens move",
            running_requests=48.0,
            queued_requests=12.0,
            token_usage_ratio=0.72,
            tokens_moved_at=NOW - 1,
        ),
        **changes,
    )


def engine_track(**changes: Any) -> EngineTrack:
    return replace(
        EngineTrack(
            probe=EngineProbe(
                url=ENGINE_URL,
                reachable=known(True, NOW - 2),
                health_status=known(200, NOW - 2),
                metrics=known(
                    EngineMetrics(throughput_tokens_per_s=3120.0, generation_tokens_total=9.1e7),
                    NOW - 2,
                ),
                weight_version=known("60", NOW - 20),
            ),
            first_seen_at=NOW - 52 * HOUR,
            tokens_moved_at=NOW - 43,
            answered_at=NOW - 2,
        ),
        **changes,
    )


def router(**changes: Any) -> RouterProbe:
    return replace(RouterProbe(url=ROUTER_URL, workers=known((ENGINE_URL,), NOW - 2)), **changes)


def history() -> dict[str, Series]:
    """Ten minutes of one reading a second, shaped like generation and training in turn."""
    return {
        "gpu0.utilisation_ratio": wave(600, 0.15, 0.99, last_x=NOW, turns=4),
        "gpu0.power_w": wave(600, 22, 94, last_x=NOW, turns=4),
        "gpu0.sm_clock_mhz": wave(600, 2180, 2405, last_x=NOW, turns=4),
        "gpu0.temperature_c": wave(600, 58, 72, last_x=NOW, turns=2),
        "memory.available_bytes": ramp(600, 39.4 * GIB, 37.5 * GIB, last_x=NOW),
    }
