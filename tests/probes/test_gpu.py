"""The GPU probe: the real pynvml in the real child process, on a fake library."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress

import psutil
import pytest
from nvml.build import SONAME, build, compiler

from tui.model.events import GpusRead, ProbeMissed
from tui.model.gpu import Gpu, GpuReport
from tui.model.reading import Absence, Known, Reading, Unknown
from tui.model.snapshot import Snapshot
from tui.probes.gpu import STUCK_S, GpuProbe
from tui.probes.gpu_reader import Tick

GIB = 2**30
NOW = 1_000_000.0
PATIENCE_S = 200.0

GB10 = {
    "driver": "580.126.09",
    "count": "1",
    "0.name": "NVIDIA GB10",
    "0.uuid": "GPU-fa4e0001",
    "0.utilisation": "96",
    "0.power": "91500",
    "0.sm_clock": "2281",
    "0.temperature": "71",
    "0.margin": "13",
    "0.reasons": "0x1",
    "0.slowdown": "0 0",
    "0.compute": "",
    "0.graphics": "",
}
CARD = {
    **GB10,
    "0.name": "NVIDIA GeForce RTX 5090",
    "0.memory": f"{32 * GIB} {7 * GIB}",
    "0.power_limit": "575000",
}


class FakeNvml:
    """What the library answers, and what it was asked."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._answers, self._log = folder / "answers", folder / "calls"

    def answer(self, answers: Mapping[str, str]) -> None:
        new = self._answers.with_suffix(".new")
        new.write_text("".join(f"{key} = {value}\n" for key, value in answers.items()))
        new.replace(self._answers)

    def asked(self, key: str) -> int:
        return self._log.read_text().splitlines().count(key) if self._log.exists() else 0


@pytest.fixture(scope="session")
def library(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    if compiler() is None:
        pytest.skip("needs gcc to compile the fake NVML library")
    return build(tmp_path_factory.mktemp("nvml"))


@pytest.fixture
def nvml(
    library: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> FakeNvml:
    monkeypatch.setenv("LD_LIBRARY_PATH", str(library.parent))
    monkeypatch.setenv("FAKE_NVML", str(tmp_path / "answers"))
    monkeypatch.setenv("FAKE_NVML_LOG", str(tmp_path / "calls"))
    return FakeNvml(tmp_path)


@pytest.fixture
def probe() -> Iterator[GpuProbe]:
    probe = GpuProbe(deadline_s=PATIENCE_S)
    yield probe
    probe.close()


def tick(probe: GpuProbe, now: float) -> tuple[Reading[GpuReport], Unknown | None]:
    read, *missed = probe.read(now, Snapshot())
    assert isinstance(read, GpusRead)
    assert read.at == now
    for event in missed:
        assert isinstance(event, ProbeMissed)
        assert event.probe == "gpu"
        return read.report, event.fault
    return read.report, None


def report(probe: GpuProbe, now: float = NOW) -> GpuReport:
    reading, fault = tick(probe, now)
    assert fault is None
    assert isinstance(reading, Known), reading
    assert reading.at == now
    return reading.value


def device(probe: GpuProbe, now: float = NOW) -> Gpu:
    (gpu,) = report(probe, now).devices
    return gpu


def reason(reading: object) -> str:
    assert isinstance(reading, Unknown), reading
    return reading.reason


def why(reading: object) -> Absence:
    assert isinstance(reading, Unknown), reading
    return reading.why


def readers(of: psutil.Process | None = None) -> list[psutil.Process]:
    found = []
    for child in (of or psutil.Process()).children():
        with suppress(psutil.ZombieProcess):  # of another test of this worker
            if "tui.probes.gpu_reader" in child.cmdline():
                found.append(child)
    return found


def wait_for(condition: Callable[[], bool]) -> None:
    until = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < until, "waited in vain"
        time.sleep(0.01)


def is_gone(process: psutil.Process) -> bool:
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


class TestGb10:
    def test_every_reading_of_the_table(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer(GB10)
        told = report(probe)
        (gpu,) = told.devices
        assert told.driver_version == "580.126.09"
        assert told.library.startswith("nvidia-ml-py ")
        assert told.warnings == ()
        assert (gpu.index, gpu.name, gpu.uuid) == (0, "NVIDIA GB10", "GPU-fa4e0001")
        assert gpu.unified
        assert gpu.utilisation_ratio == Known(value=0.96, at=NOW)
        assert gpu.power_w == Known(value=91.5, at=NOW)
        assert gpu.sm_clock_mhz == Known(value=2281.0, at=NOW)
        assert gpu.temperature_c == Known(value=71.0, at=NOW)
        assert gpu.temperature_margin_c == Known(value=13.0, at=NOW)
        assert gpu.throttle_reasons == Known(value=(), at=NOW)
        assert gpu.processes == Known(value=(), at=NOW)
        for missing in (gpu.memory_total_bytes, gpu.memory_used_bytes, gpu.power_limit_w):
            assert why(missing) is Absence.NOT_SUPPORTED

    @pytest.mark.parametrize(
        ("name", "memory"),
        [
            pytest.param("NVIDIA GB10", "0 0", id="total 0"),
            pytest.param("NVIDIA GB10", f"{127_600_748 * 1024} {40 * GIB}", id="shim"),
            pytest.param("NVIDIA N1X", f"{8128 * 2**20} {199 * 2**20}", id="N1X"),
            pytest.param("NVIDIA Thor", "!3", id="Thor"),
            pytest.param("NVIDIA Something New", "!3", id="unknown part without memory"),
            pytest.param("NVIDIA Something New", "0 0", id="unknown part with total 0"),
        ],
    )
    def test_is_unified_in_all_shapes_seen(
        self, nvml: FakeNvml, probe: GpuProbe, name: str, memory: str
    ) -> None:
        nvml.answer({**GB10, "0.name": name, "0.memory": memory})
        gpu = device(probe)
        assert gpu.unified
        assert why(gpu.memory_total_bytes) is Absence.NOT_SUPPORTED
        assert why(gpu.memory_used_bytes) is Absence.NOT_SUPPORTED

    def test_names_reasons_and_leaves_out_idle(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "0.reasons": str(0x1 | 0x2 | 0x4 | 0x20 | 0x40)})
        assert device(probe).throttle_reasons == Known(
            value=(
                "software power cap",
                "software thermal slowdown",
                "hardware thermal slowdown",
            ),
            at=NOW,
        )

    @pytest.mark.parametrize("margin", [-5, 0, 40])
    def test_margin_may_be_a_little_negative(
        self, nvml: FakeNvml, probe: GpuProbe, margin: int
    ) -> None:
        nvml.answer({**GB10, "0.margin": str(margin)})
        assert device(probe).temperature_margin_c == Known(value=float(margin), at=NOW)

    def test_margin_far_below_zero_is_no_measurement(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "0.margin": "-40"})
        assert "-40 °C" in reason(device(probe).temperature_margin_c)

    def test_newer_temperature_call_comes_first(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "0.temperature_v": "72"})
        assert device(probe).temperature_c == Known(value=72.0, at=NOW)

    def test_older_temperature_call_serves_at_every_tick(
        self, nvml: FakeNvml, probe: GpuProbe
    ) -> None:
        nvml.answer({**GB10, "0.temperature_v": "!13"})
        for now in (NOW, NOW + 1):
            assert device(probe, now).temperature_c == Known(value=71.0, at=now)

    @pytest.mark.parametrize("limits", [{}, {"0.power_limit": "0", "0.enforced_power_limit": "0"}])
    def test_power_limit_is_absent_or_zero(
        self, nvml: FakeNvml, probe: GpuProbe, limits: dict[str, str]
    ) -> None:
        nvml.answer({**GB10, **limits})
        assert why(device(probe).power_limit_w) is Absence.NOT_SUPPORTED


class TestCard:
    def test_memory_is_its_own(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer(CARD)
        gpu = device(probe)
        assert not gpu.unified
        assert gpu.memory_total_bytes == Known(value=32 * GIB, at=NOW)
        assert gpu.memory_used_bytes == Known(value=7 * GIB, at=NOW)
        assert gpu.power_limit_w == Known(value=575.0, at=NOW)

    def test_first_version_of_the_memory_call_serves_an_old_driver(
        self, nvml: FakeNvml, probe: GpuProbe
    ) -> None:
        nvml.answer({**CARD, "0.memory_v2": "!13"})
        for now in (NOW, NOW + 1):
            assert device(probe, now).memory_total_bytes == Known(value=32 * GIB, at=now)

    @pytest.mark.parametrize("total", [psutil.virtual_memory().total, 8128 * 2**20, 64 * 2**20])
    def test_odd_totals_are_still_its_own(
        self, nvml: FakeNvml, probe: GpuProbe, total: int
    ) -> None:
        nvml.answer({**CARD, "0.memory": f"{total} 4096"})
        gpu = device(probe)
        assert not gpu.unified
        assert gpu.memory_total_bytes == Known(value=total, at=NOW)

    @pytest.mark.parametrize("memory", ["!3", "0 0"])
    def test_never_unified_even_without_memory(
        self, nvml: FakeNvml, probe: GpuProbe, memory: str
    ) -> None:
        nvml.answer({**CARD, "0.memory": memory})
        gpu = device(probe)
        assert not gpu.unified
        assert why(gpu.memory_total_bytes) is Absence.NOT_SUPPORTED

    def test_beside_an_integrated_part(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        second = {key.replace("0.", "1.", 1): value for key, value in GB10.items() if "0." in key}
        nvml.answer({**CARD, **second, "driver": "580.1", "count": "2"})
        card, part = report(probe).devices
        assert (card.index, card.unified, part.index, part.unified) == (0, False, 1, True)
        assert card.memory_total_bytes == Known(value=32 * GIB, at=NOW)
        assert why(part.memory_total_bytes) is Absence.NOT_SUPPORTED
        assert part.utilisation_ratio == Known(value=0.96, at=NOW)


class TestProcesses:
    def test_one_entry_a_pid_with_the_larger_size(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        pid = os.getpid()
        nvml.answer({**GB10, "0.compute": f"{pid}:2048 999999:na", "0.graphics": f"{pid}:4096"})
        processes = device(probe).processes
        assert isinstance(processes, Known)
        ours, gone = processes.value
        assert (ours.pid, ours.memory_bytes) == (pid, Known(value=4096, at=NOW))
        assert ours.name
        assert (gone.pid, gone.name) == (999999, "")
        assert why(gone.memory_bytes) is Absence.NOT_SUPPORTED

    def test_listed_every_five_seconds_only(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "0.compute": "999999:1"})
        measured = [device(probe, NOW + second).processes for second in range(11)]
        assert [reading.at - NOW for reading in measured] == [0] * 5 + [5] * 5 + [10]
        # Twice a list: once for its length.
        assert nvml.asked("0.compute") == 2 * 3

    def test_a_failing_list_is_no_empty_list(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "0.graphics": "!999"})
        assert why(device(probe).processes) is Absence.ERROR

    def test_unsupported_graphics_list_leaves_compute(
        self, nvml: FakeNvml, probe: GpuProbe
    ) -> None:
        nvml.answer({**GB10, "0.compute": "999999:7", "0.graphics": "!3"})
        processes = device(probe).processes
        assert isinstance(processes, Known)
        assert [process.pid for process in processes.value] == [999999]

    def test_driver_older_than_the_binding(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "0.compute": "!13", "0.graphics": "!13"})
        gpu = device(probe)
        assert "NVMLLibraryMismatchError" in reason(gpu.processes)
        assert isinstance(gpu.power_w, Known)


class TestSlowdown:
    SPAN_S = 100.0
    """Long against the time a call takes."""

    def ratios(self, nvml: FakeNvml, probe: GpuProbe, per_s: int) -> list[Reading[float]]:
        readings = []
        for count in range(5):
            counter = int(count * self.SPAN_S * per_s)
            nvml.answer({**GB10, "0.slowdown": f"{counter} na"})
            readings.append(device(probe, NOW + count * self.SPAN_S).thermal_slowdown_ratio)
        return readings

    def test_counters_in_nanoseconds(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        first, *rest = self.ratios(nvml, probe, per_s=500_000_000)
        assert why(first) is Absence.NOT_ASKED
        values = [ratio.value for ratio in rest if isinstance(ratio, Known)]
        assert values == pytest.approx([0.5] * 4, rel=0.2)

    def test_counters_in_microseconds(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        *unsure, third, fourth = self.ratios(nvml, probe, per_s=500_000)
        assert [why(ratio) for ratio in unsure] == [Absence.NOT_ASKED] * 3
        assert isinstance(third, Known)
        assert isinstance(fourth, Known)
        assert [third.value, fourth.value] == pytest.approx([0.5] * 2, rel=0.2)

    def test_counters_not_there(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "0.slowdown": "na na"})
        assert why(device(probe).thermal_slowdown_ratio) is Absence.NOT_SUPPORTED


class TestFaults:
    def test_one_failing_call_drops_nothing_else(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "0.power": "!999"})
        gpu = device(probe)
        assert why(gpu.power_w) is Absence.ERROR
        assert "999" in reason(gpu.power_w)
        assert gpu.utilisation_ratio == Known(value=0.96, at=NOW)
        nvml.answer(GB10)
        assert device(probe, NOW + 1).power_w == Known(value=91.5, at=NOW + 1)

    @pytest.mark.parametrize("key", ["count", "0.handle", "driver", "0.name"])
    def test_a_failure_to_find_them_again_leaves_what_was_found(
        self, nvml: FakeNvml, probe: GpuProbe, key: str
    ) -> None:
        nvml.answer(GB10)
        before = report(probe)
        nvml.answer({**GB10, key: "!999"})
        after = report(probe, NOW + 200)
        assert after.driver_version == before.driver_version
        (gpu,) = after.devices
        assert gpu.name == "NVIDIA GB10"
        assert gpu.power_w == Known(value=91.5, at=NOW + 200)

    def test_a_count_that_fails_at_first_is_told(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "count": "!999"})
        reading, _ = tick(probe, NOW)
        assert why(reading) is Absence.ERROR

    def test_a_gpu_that_comes_later_is_found(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "count": "0"})
        tick(probe, NOW)
        nvml.answer(GB10)
        assert device(probe, NOW + 200).name == "NVIDIA GB10"

    def test_no_permission(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**CARD, "0.memory": "!4"})
        assert why(device(probe).memory_used_bytes) is Absence.NO_PERMISSION

    def test_unsupported_values_are_asked_again_rarely(
        self, nvml: FakeNvml, probe: GpuProbe
    ) -> None:
        nvml.answer({**GB10, "0.margin": "!3"})
        for second in range(4):
            device(probe, NOW + second)
        assert nvml.asked("0.margin") == 1
        nvml.answer(GB10)
        assert device(probe, NOW + 200).temperature_margin_c == Known(value=13.0, at=NOW + 200)

    def test_initialised_once_and_pcie_never_asked(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer(GB10)
        for now in (NOW, NOW + 1, NOW + 200, NOW + 400):
            device(probe, now)
        assert nvml.asked("init") == 1
        assert nvml.asked("0.utilisation") == 4
        assert nvml.asked("0.name") == 3
        assert nvml.asked("0.pcie_throughput") == 0

    @pytest.mark.parametrize("answers", [GB10, CARD])
    def test_lost_after_some_calls(
        self, nvml: FakeNvml, probe: GpuProbe, answers: dict[str, str]
    ) -> None:
        nvml.answer({**answers, "0.lost_after": "30"})
        before = device(probe)
        after = device(probe, NOW + 5)
        for now in range(10, 25, 5):
            after = device(probe, NOW + now)
        assert isinstance(before.utilisation_ratio, Known)
        assert "GPU 0 is lost: it fell off the bus" in reason(after.utilisation_ratio)
        assert after.name == before.name
        assert after.unified == before.unified
        assert why(after.processes) is Absence.ERROR

    def test_card_lost_from_the_start_is_not_unified(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        second = {"count": "2", "1.handle": "!15"}
        nvml.answer({**CARD, **second})
        card, lost = report(probe).devices
        assert isinstance(card.power_w, Known)
        assert (lost.name, lost.unified) == ("GPU 1", False)
        assert "GPU 1 is lost" in reason(lost.power_w)
        assert "GPU 1 is lost" in reason(lost.memory_total_bytes)

    @pytest.mark.parametrize(
        ("code", "absence", "words"),
        [
            (9, Absence.MISSING, "not loaded"),
            (4, Absence.NO_PERMISSION, "/dev/nvidia"),
            (18, Absence.ERROR, "reboot at the next checkpoint"),
            (999, Absence.ERROR, "dmesg"),
        ],
    )
    def test_failed_start_is_told_and_tried_again_rarely(
        self, nvml: FakeNvml, probe: GpuProbe, code: int, absence: Absence, words: str
    ) -> None:
        nvml.answer({**GB10, "init": f"!{code}"})
        for second in range(4):
            reading, fault = tick(probe, NOW + second)
            assert fault is None
            assert why(reading) is absence
            assert words in reason(reading)
            assert str(code) in reason(reading)
        assert nvml.asked("init") == 1
        nvml.answer(GB10)
        assert device(probe, NOW + 200).unified

    def test_driver_without_a_gpu(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "count": "0"})
        reading, _ = tick(probe, NOW)
        assert why(reading) is Absence.MISSING
        assert "sees no GPU" in reason(reading)

    def test_no_library(
        self, tmp_path: pathlib.Path, probe: GpuProbe, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        # A file that cannot be loaded hides the library of a machine that has one.
        (tmp_path / SONAME).write_text("no library")
        monkeypatch.setenv("LD_LIBRARY_PATH", str(tmp_path))
        reading, fault = tick(probe, NOW)
        assert fault is None
        assert why(reading) is Absence.MISSING
        assert reason(reading).startswith("no NVIDIA driver on this machine")

    @pytest.mark.parametrize(
        ("rival", "version", "warned"),
        [
            ("nvidia_ml_py3", "7.352.0", True),
            ("pynvml", "11.5.3", True),
            ("pynvml", "13.0.1", False),
        ],
    )
    def test_rival_binding_is_warned_about(
        self,
        nvml: FakeNvml,
        probe: GpuProbe,
        tmp_path: pathlib.Path,
        monkeypatch: pytest.MonkeyPatch,
        rival: str,
        version: str,
        warned: bool,
    ) -> None:
        metadata = tmp_path / f"{rival}-{version}.dist-info" / "METADATA"
        metadata.parent.mkdir()
        metadata.write_text(f"Metadata-Version: 2.1\nName: {rival}\nVersion: {version}\n")
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        nvml.answer(GB10)
        warnings = report(probe).warnings
        assert len(warnings) == warned
        assert all(version in warning and "pip uninstall" in warning for warning in warnings)


class TestReader:
    """The process, rather than what it says."""

    def test_carries_the_clock_of_the_request_on(self) -> None:
        assert Tick(at=50.0, began=time.monotonic() - 100.0).now() >= 150.0

    def test_a_hanging_call_leaves_the_last_values(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer(GB10)
        last = report(probe)
        nvml.answer({**GB10, "0.utilisation": "hang"})
        probe.deadline_s = 0.2
        for silent_s in (0, 1, 29):
            reading, fault = tick(probe, NOW + 1 + silent_s)
            assert reading == Known(value=last, at=NOW)
            assert fault is not None
            assert fault.why is Absence.TIMED_OUT
            assert f" {silent_s} s" in fault.reason
        assert len(readers()) == 1

    def test_a_hanging_start_has_no_values(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "init": "hang"})
        probe.deadline_s = 0.2
        reading, fault = tick(probe, NOW)
        assert fault is not None
        assert reading == fault
        assert why(reading) is Absence.TIMED_OUT

    def test_a_call_that_comes_back_brings_values_of_now(
        self, nvml: FakeNvml, probe: GpuProbe
    ) -> None:
        nvml.answer(GB10)
        report(probe)
        nvml.answer({**GB10, "0.utilisation": "hang"})
        probe.deadline_s = 0.2
        _, fault = tick(probe, NOW + 1)
        assert fault is not None
        nvml.answer({**GB10, "0.utilisation": "12"})
        probe.deadline_s = PATIENCE_S
        assert device(probe, NOW + 600).utilisation_ratio == Known(value=0.12, at=NOW + 600)
        assert nvml.asked("init") == 1

    def test_close_ends_a_hanging_reader(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "init": "hang"})
        probe.deadline_s = 0.2
        tick(probe, NOW)
        (reader,) = readers()
        wait_for(lambda: nvml.asked("init") == 1)
        probe.close()
        assert is_gone(reader)
        probe.close()

    def test_a_reader_stuck_for_too_long_is_replaced(self, nvml: FakeNvml, probe: GpuProbe) -> None:
        nvml.answer({**GB10, "init": "hang"})
        probe.deadline_s = 0.2
        tick(probe, NOW)
        (stuck,) = readers()
        _, fault = tick(probe, NOW + STUCK_S)
        assert fault is not None
        assert fault.why is Absence.TIMED_OUT
        assert not is_gone(stuck)
        _, fault = tick(probe, NOW + STUCK_S + 1)
        assert fault is not None
        assert fault.why is Absence.ERROR
        assert is_gone(stuck)
        nvml.answer(GB10)
        probe.deadline_s = PATIENCE_S
        assert device(probe, NOW + STUCK_S + 10).unified

    def test_a_crashing_driver_is_started_anew_with_pauses(
        self, nvml: FakeNvml, probe: GpuProbe
    ) -> None:
        nvml.answer(GB10)
        last = report(probe)
        nvml.answer({**GB10, "0.utilisation": "crash"})
        starts = []
        for second in range(1, 21):
            reading, fault = tick(probe, NOW + second)
            assert fault is not None
            assert "SIGSEGV" in fault.reason
            assert reading == Known(value=last, at=NOW)
            starts.append(nvml.asked("init"))
        # Pauses of 1, 2, 4 and 8 s.
        assert [start - 1 for start in starts] == [0, 1, 1, 2, 2, 2, 2, *[3] * 8, *[4] * 5]
        nvml.answer(GB10)
        assert device(probe, NOW + 100).unified

    @pytest.mark.parametrize(
        ("command", "words"),
        [
            (("/no/such/program",), "No such file"),
            ((sys.executable, "-c", "raise SystemExit('no module')"), "exit code 1: no module"),
            ((sys.executable, "-c", "print('{}', flush=True); input(); input()"), "version"),
        ],
    )
    def test_a_reader_that_is_none(self, command: tuple[str, ...], words: str) -> None:
        probe = GpuProbe(command=command, deadline_s=PATIENCE_S)
        try:
            reading, fault = tick(probe, NOW)
        finally:
            probe.close()
        assert reading == fault
        assert why(reading) is Absence.ERROR
        assert words in reason(reading)

    @pytest.mark.parametrize(
        ("error", "absence"), [("NVMLError", Absence.MISSING), ("OSError(5, 'x')", Absence.ERROR)]
    )
    def test_what_a_library_prints_is_no_answer(
        self,
        probe: GpuProbe,
        tmp_path: pathlib.Path,
        monkeypatch: pytest.MonkeyPatch,
        error: str,
        absence: Absence,
    ) -> None:
        # A binding of the earliest kind: without most of the calls and with one error class only.
        (tmp_path / "pynvml.py").write_text(
            "import os\n"
            "class NVMLError(Exception):\n"
            "    value = 12\n"
            "def nvmlInit():\n"
            "    os.write(1, b'a banner without an end')\n"
            f"    raise {error}\n"
        )
        monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
        reading, fault = tick(probe, NOW)
        assert fault is None
        assert why(reading) is absence

    @pytest.mark.parametrize("hangs", [False, True])
    def test_dies_with_its_parent(self, nvml: FakeNvml, hangs: bool) -> None:
        nvml.answer({**GB10, "0.utilisation": "hang" if hangs else "1"})
        script = (
            "from tui.probes.gpu import GpuProbe\n"
            "from tui.model.snapshot import Snapshot\n"
            f"probe = GpuProbe(deadline_s={0.5 if hangs else PATIENCE_S})\n"
            "probe.read(1.0, Snapshot())\n"
            "print('ready', flush=True)\n"
            "input()\n"
        )
        with subprocess.Popen(
            [sys.executable, "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE
        ) as parent:
            assert parent.stdout is not None
            assert parent.stdout.readline() == b"ready\n"
            (reader,) = readers(psutil.Process(parent.pid))
            wait_for(lambda: nvml.asked("0.utilisation") == 1)
            parent.send_signal(signal.SIGKILL)
        wait_for(lambda: is_gone(reader))
