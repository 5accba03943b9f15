"""The memory pool."""

from __future__ import annotations

import pathlib

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model.events import MemoryRead
from tui.model.memory import Memory
from tui.model.reading import Absence, Known, Reading, Unknown, known
from tui.model.snapshot import Snapshot
from tui.probes.memory import MemoryProbe, meminfo_fields, pool

KIB = 1024
GB10 = """\
MemTotal:       127600748 kB
MemFree:          2210044 kB
MemAvailable:    31805212 kB
Buffers:           402100 kB
Cached:          28990120 kB
SwapTotal:       16777212 kB
SwapFree:        16252924 kB
Shmem:            1048576 kB
SReclaimable:     2097152 kB
HugePages_Total:     100
HugePages_Free:       40
Hugepagesize:       2048 kB
CmaTotal:              0 kB
CmaFree:          941056 kB
"""
PRESSURE = """\
some avg10=12.50 avg60=3.10 avg300=0.71 total=5204371
full avg10=7.25 avg60=1.93 avg300=0.44 total=3303914
"""


def memory(
    tmp_path: pathlib.Path, meminfo: str, pressure: str | None = PRESSURE
) -> Reading[Memory]:
    (tmp_path / "meminfo").write_text(meminfo)
    if pressure is not None:
        (tmp_path / "pressure").write_text(pressure)
    return read(MemoryProbe(str(tmp_path / "meminfo"), str(tmp_path / "pressure")))


def read(probe: MemoryProbe) -> Reading[Memory]:
    (event,) = probe.read(9.0, Snapshot())
    probe.close()
    assert isinstance(event, MemoryRead)
    assert event.at == 9.0
    return event.memory


def test_reads_the_pool_of_a_gb10(tmp_path: pathlib.Path) -> None:
    assert memory(tmp_path, GB10) == known(
        Memory(
            total_bytes=127_600_748 * KIB,
            available_bytes=31_805_212 * KIB,
            free_bytes=2_210_044 * KIB,
            cached_bytes=(28_990_120 + 2_097_152 - 1_048_576) * KIB,
            shmem_bytes=1_048_576 * KIB,
            swap_total_bytes=16_777_212 * KIB,
            swap_free_bytes=16_252_924 * KIB,
            cma_total_bytes=0,
            cma_free_bytes=941_056 * KIB,
            huge_pages_total=100,
            huge_pages_free_bytes=40 * 2048 * KIB,
            pressure_full_ratio=known(0.0725, 9.0),
        ),
        9.0,
    )


def test_reads_this_machine() -> None:
    reading = read(MemoryProbe())
    assert isinstance(reading, Known)
    assert reading.value.total_bytes == psutil.virtual_memory().total
    assert 0 < reading.value.available_bytes <= reading.value.total_bytes


@pytest.mark.parametrize("pressure", [None, "", "some avg10=0.00 avg60=0.00 avg300=0.00 total=0\n"])
def test_a_kernel_without_pressure_still_has_a_pool(
    tmp_path: pathlib.Path, pressure: str | None
) -> None:
    reading = memory(tmp_path, GB10, pressure)
    assert isinstance(reading, Known)
    ratio = reading.value.pressure_full_ratio
    assert isinstance(ratio, Unknown)
    assert ratio.why is Absence.NOT_SUPPORTED


@pytest.mark.parametrize("missing", ["MemTotal", "MemFree", "MemAvailable"])
def test_an_essential_line_missing_is_an_error(tmp_path: pathlib.Path, missing: str) -> None:
    lines = [line for line in GB10.splitlines(keepends=True) if not line.startswith(missing)]
    reading = memory(tmp_path, "".join(lines))
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.ERROR
    assert missing in reading.reason


@pytest.mark.parametrize("text", ["MemTotal: lots kB\n", "MemTotal:\n", "\x00\x01\n"])
def test_nonsense_is_an_error(tmp_path: pathlib.Path, text: str) -> None:
    reading = memory(tmp_path, text)
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.ERROR


def test_no_meminfo_is_missing(tmp_path: pathlib.Path) -> None:
    reading = read(MemoryProbe(str(tmp_path / "meminfo")))
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.MISSING
    assert "meminfo: No such file" in reading.reason


fields = st.dictionaries(
    st.sampled_from(["Cached", "SReclaimable", "Shmem", "SwapFree", "CmaFree", "HugePages_Free"]),
    st.integers(0, 2**40),
)


@given(fields=fields)
def test_cache_is_never_negative_and_any_other_line_may_be_missing(fields: dict[str, int]) -> None:
    essential = {"MemTotal": 3, "MemAvailable": 2, "MemFree": 1}
    assert pool(fields | essential).cached_bytes >= 0


@given(names=st.dictionaries(st.from_regex(r"\A[A-Za-z_()]{1,20}\Z"), st.integers(0, 2**50)))
def test_every_line_becomes_a_field(names: dict[str, int]) -> None:
    text = "".join(f"{name}:{kib:>14} kB\n" for name, kib in names.items())
    assert meminfo_fields(text) == {name: kib * KIB for name, kib in names.items()}
