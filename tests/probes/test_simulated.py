"""The demo's GPU."""

from __future__ import annotations

import json
import pathlib

import pytest

from tui.model.events import GpusRead
from tui.model.gpu import Gpu, GpuProcess, GpuReport
from tui.model.reading import Absence, Known, Reading, Unknown, known
from tui.model.snapshot import Snapshot
from tui.probes.simulated import SimulatedGpu

WRITTEN = {
    "driver_version": "580.126.09",
    "devices": [
        {
            "index": 0,
            "name": "NVIDIA GB10",
            "unified": True,
            "utilisation_ratio": 0.96,
            "power_w": 91,
            "sm_clock_mhz": 2281,
            "temperature_c": 71,
            "temperature_margin_c": 13,
            "throttle_reasons": ["software power cap"],
            "processes": [{"pid": 4243, "name": "ray::FSDPTrainRayActor", "memory_bytes": 42}],
        }
    ],
}


def report(path: pathlib.Path, now: float) -> Reading[GpuReport]:
    probe = SimulatedGpu(path)
    (event,) = probe.read(now, Snapshot())
    probe.close()
    assert isinstance(event, GpusRead)
    return event.report


def test_reads_what_the_run_wrote(tmp_path: pathlib.Path) -> None:
    path = tmp_path / "gpu.json"
    path.write_text(json.dumps(WRITTEN))
    left_out = Unknown(why=Absence.NOT_SUPPORTED, reason="not simulated", at=5.0)
    gpu = Gpu(
        index=0,
        name="NVIDIA GB10",
        unified=True,
        utilisation_ratio=known(0.96, 5.0),
        power_w=known(91.0, 5.0),
        power_limit_w=left_out,
        sm_clock_mhz=known(2281.0, 5.0),
        temperature_c=known(71.0, 5.0),
        temperature_margin_c=known(13.0, 5.0),
        memory_total_bytes=left_out,
        memory_used_bytes=left_out,
        throttle_reasons=known(("software power cap",), 5.0),
        thermal_slowdown_ratio=left_out,
        processes=known(
            (GpuProcess(pid=4243, name="ray::FSDPTrainRayActor", memory_bytes=known(42, 5.0)),), 5.0
        ),
    )
    expected = GpuReport(driver_version="580.126.09", devices=(gpu,), library="simulated")
    assert report(path, 5.0) == Known(value=expected, at=5.0)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        (None, Absence.MISSING),
        ('{"driver_version": "5', Absence.ERROR),
        ("[]", Absence.ERROR),
        ('{"driver_version": "580", "devices": [7]}', Absence.ERROR),
        ('{"driver_version": "580", "devices": [{"index": 0}]}', Absence.ERROR),
    ],
)
def test_says_why_there_is_nothing(tmp_path: pathlib.Path, text: str | None, why: Absence) -> None:
    path = tmp_path / "gpu.json"
    if text is not None:
        path.write_text(text)
    reading = report(path, 5.0)
    assert isinstance(reading, Unknown)
    assert reading.why is why
    assert "gpu.json" in reading.reason
