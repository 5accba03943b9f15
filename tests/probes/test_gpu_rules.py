"""What NVML's answers mean, without NVML."""

from __future__ import annotations

import pathlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model.gpu import Gpu, GpuProcess, GpuReport
from tui.model.reading import Absence, Known, Reading, Unknown, known
from tui.probes.gpu_processes import TITLE_LENGTH, merged, process_title
from tui.probes.gpu_rules import SlowdownMeter, fault_meaning, shares_pool
from tui.probes.gpu_wire import DECODING_ERRORS, VALUES, decoded, encoded

GIB = 2**30
NOT_SUPPORTED = Unknown(why=Absence.NOT_SUPPORTED)


class TestSharesPool:
    @pytest.mark.parametrize("name", ["NVIDIA GB10", "NVIDIA N1X", "NVIDIA Thor", "Orin (nvgpu)"])
    @pytest.mark.parametrize("total", [0, 8128 * 2**20, 60 * GIB, 122 * GIB])
    def test_a_part_known_to_share_it_does_so_whatever_it_tells(
        self, name: str, total: int
    ) -> None:
        assert shares_pool(name, known((total, 0), 1.0)) is True

    @pytest.mark.parametrize(
        "name",
        [
            "NVIDIA GeForce RTX 5090",
            "NVIDIA RTX PRO 6000 Blackwell Workstation Edition",
            "NVIDIA H100 80GB HBM3",
            "NVIDIA A100-SXM4-40GB",
            "Tesla T4",
            "NVIDIA GB100 HBM",
        ],
    )
    @pytest.mark.parametrize(
        "memory", [NOT_SUPPORTED, known((0, 0), 1.0), known((122 * GIB, 0), 1.0)]
    )
    def test_a_card_never_does(self, name: str, memory: Known[tuple[int, int]] | Unknown) -> None:
        assert shares_pool(name, memory) is False

    def test_an_unknown_part_does_when_it_tells_of_no_memory(self) -> None:
        assert shares_pool("NVIDIA X", NOT_SUPPORTED) is True
        assert shares_pool("NVIDIA X", known((0, 0), 1.0)) is True
        assert shares_pool("NVIDIA X", known((16 * GIB, 0), 1.0)) is False

    @pytest.mark.parametrize("code", [4, 10, 15, 18, 999])
    def test_an_error_proves_nothing(self, code: int) -> None:
        assert shares_pool("NVIDIA GB10", fault_meaning("Error", code, "GPU 0", 1.0)) is None


class TestFaultMeaning:
    def test_names_subject_and_code(self) -> None:
        fault = fault_meaning("NVMLError_GpuIsLost", 15, "GPU 3", 7.0)
        assert fault.why is Absence.ERROR
        assert fault.at == 7.0
        assert fault.reason.startswith("GPU 3 is lost: it fell off the bus")
        assert fault.reason.endswith("(NVMLError_GpuIsLost, 15)")

    @given(code=st.integers(0, 2000))
    def test_every_code_means_something(self, code: int) -> None:
        fault = fault_meaning("Error", code, "GPU 0", 1.0)
        assert "{" not in fault.reason
        assert str(code) in fault.reason


class TestSlowdownMeter:
    def test_standstill_needs_no_unit(self) -> None:
        meter = SlowdownMeter()
        assert meter.ratio(0.0, (5, 5)) is None
        assert meter.ratio(1.0, (5, 5)) == 0.0

    def test_the_larger_counter_counts(self) -> None:
        meter = SlowdownMeter()
        meter.ratio(0.0, (0, 0))
        assert meter.ratio(1.0, (10**8, 8 * 10**8)) == pytest.approx(0.8)

    def test_nanoseconds_once_proved_stay(self) -> None:
        meter = SlowdownMeter()
        meter.ratio(0.0, (0,))
        meter.ratio(1.0, (10**9,))
        assert meter.ratio(2.0, (10**9 + 1000,)) == pytest.approx(1e-6)

    def test_microseconds_are_given_up_when_they_prove_impossible(self) -> None:
        meter = SlowdownMeter()
        for second in range(5):
            meter.ratio(float(second), (1000 * second,))
        assert meter.ratio(5.0, (5000,)) == pytest.approx(0.001)
        assert meter.ratio(6.0, (5000 + 10**9,)) == 1.0

    @pytest.mark.parametrize(
        ("at", "counters"), [(1.0, (4,)), (0.5, (9,)), (0.0, (9,)), (1.0, (9, 9))]
    )
    def test_a_step_back_or_another_set_starts_anew(
        self, at: float, counters: tuple[int, ...]
    ) -> None:
        meter = SlowdownMeter()
        meter.ratio(0.5, (5,))
        assert meter.ratio(at, counters) is None
        assert meter.ratio(at + 1.0, counters) == 0.0

    @given(
        steps=st.lists(
            st.tuples(
                st.floats(0.001, 1000.0), st.lists(st.integers(0, 2**64), min_size=2, max_size=2)
            )
        )
    )
    def test_is_a_share_or_untold(self, steps: list[tuple[float, list[int]]]) -> None:
        meter, at = SlowdownMeter(), 0.0
        for elapsed_s, counters in steps:
            at += elapsed_s
            ratio = meter.ratio(at, tuple(counters))
            assert ratio is None or 0.0 <= ratio <= 1.0


class TestMerged:
    def test_largest_first_then_by_pid(self) -> None:
        listed = [(999_993, 1), (999_991, None), (999_992, 7), (999_990, 1), (999_991, None)]
        assert [(process.pid, size(process)) for process in merged(listed, 1.0)] == [
            (999_992, 7),
            (999_990, 1),
            (999_993, 1),
            (999_991, None),
        ]

    def test_a_told_size_wins_over_an_untold(self) -> None:
        (process,) = merged([(999_990, None), (999_990, 3), (999_990, None)], 1.0)
        assert process.memory_bytes == known(3, 1.0)


def size(process: GpuProcess) -> int | None:
    return process.memory_bytes.value if isinstance(process.memory_bytes, Known) else None


class TestProcessTitle:
    @pytest.mark.parametrize(
        ("cmdline", "title"),
        [
            (b"ray::FSDPTrainRayActor.train\0\0\0\0", "ray::FSDPTrainRayActor.train"),
            (b"sglang::scheduler_TP0", "sglang::scheduler_TP0"),
            (b"/usr/lib/xorg/Xorg\0:0\0-auth\0/run/key\0", "Xorg"),
            (b"/usr/bin/ollama\0", "ollama"),
            (b"/venv/bin/python3\0train.py\0--wandb-key\0hush\0", "python3 train.py"),
            (b"python\0-m\0sglang.launch_server\0--api-key\0hush\0", "python sglang.launch_server"),
            (b"python3.12\0-c\0key = 'hush'\0", "python3.12"),
            (b"server\0--api-key\0hush\0", "server"),
            (b"\xff\xfe", "\ufffd\ufffd"),
            (b"", "kernel thread"),
            (b"x" * 5000, "x" * TITLE_LENGTH),
        ],
    )
    def test_says_what_it_is_and_no_secret(
        self, tmp_path: pathlib.Path, cmdline: bytes, title: str
    ) -> None:
        (tmp_path / "7").mkdir()
        (tmp_path / "7" / "cmdline").write_bytes(cmdline)
        (tmp_path / "7" / "comm").write_text("kernel thread\n")
        assert process_title(7, tmp_path) == title

    def test_is_empty_for_a_process_out_of_sight(self, tmp_path: pathlib.Path) -> None:
        assert process_title(7, tmp_path) == ""


unknowns = st.builds(
    Unknown, why=st.sampled_from(Absence), reason=st.text(), at=st.floats(0.0, 2e9)
)


def readings(values: st.SearchStrategy[object]) -> st.SearchStrategy[object]:
    return unknowns | st.builds(Known, value=values, at=st.floats(0.0, 2e9))


values: dict[object, st.SearchStrategy[object]] = {
    float: st.floats(allow_nan=False, allow_infinity=False),
    int: st.integers(0, 2**64),
    tuple: st.lists(st.text()).map(tuple),
}
processes = st.builds(
    GpuProcess, pid=st.integers(0), name=st.text(), memory_bytes=readings(values[int])
)
gpus = st.builds(
    Gpu,
    index=st.integers(0, 8),
    name=st.text(),
    uuid=st.text(),
    unified=st.booleans(),
    processes=readings(st.lists(processes, max_size=3).map(tuple)),
    **{field: readings(values[kind]) for field, kind in VALUES.items()},
)
reports = st.builds(
    GpuReport,
    driver_version=st.text(),
    devices=st.lists(gpus, max_size=2).map(tuple),
    library=st.text(),
    warnings=st.lists(st.text(), max_size=2).map(tuple),
)


class TestWire:
    @given(report=unknowns | st.builds(Known, value=reports, at=st.floats(0.0, 2e9)))
    def test_what_is_sent_is_what_arrives(self, report: Reading[GpuReport]) -> None:
        line = encoded(report)
        assert "\n" not in line
        assert decoded(line) == report

    @pytest.mark.parametrize(
        "line", ["", "{", "[]", "7", "{}", '{"value": {}, "at": 1}', '{"why": "?"}', b"\xff"]
    )
    def test_another_line_is_refused(self, line: str | bytes) -> None:
        with pytest.raises(DECODING_ERRORS):
            decoded(line)
