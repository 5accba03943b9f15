"""The GPU pane: fixed scales, three numbers of memory, and what is not known."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from fake_box import NO_GPU, NOT_SUPPORTED, NOW, discrete_gpu, gpu, history, memory, report
from rows_read import line_with, lines, roles_of, text

from tui.model.gpu import GpuProcess, GpuReport
from tui.model.memory import GIB
from tui.model.reading import Absence, Unknown, known
from tui.model.series import Series
from tui.model.snapshot import Snapshot
from tui.view import gpu as view
from tui.view.rows import Look, Role, Row, plain

LOOK = Look()


def rows(snapshot: Snapshot, width: int = 80, height: int = 12) -> tuple[Row, ...]:
    return view.rows(snapshot, width, height, LOOK)


def with_gpu(**changes: object) -> Snapshot:
    return fakes.running(gpus=known(report(gpu(**changes)), NOW))


@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_a_gb10_says_its_readings_with_units(width: int) -> None:
    told = lines(rows(fakes.running(), width))
    assert told[0].startswith("util        96 %  ")
    assert told[1].startswith("power       91 W  ")
    assert told[2].startswith("clock  2 281 MHz  ")
    assert told[3].startswith("temp       71 °C  13 below limit")
    assert told[4].startswith("memory 84.2 of 121.7 GiB   left 37.5")


def test_what_a_gb10_does_not_have_is_not_shown() -> None:
    told = text(rows(fakes.running(), 120))
    for absent in ("?", "not supported", "fan", "limit W", "0 / 0", "128"):
        assert absent not in told


def test_three_numbers_of_memory_stay_apart() -> None:
    told = text(rows(fakes.running()))
    assert "84.2 of 121.7 GiB" in told
    assert "GPU processes 58.1" in told
    assert "page cache 11.0" in told


def test_the_bar_shows_used_cache_and_both_limits() -> None:
    bar = lines(rows(fakes.running(), 100))[5]
    assert len(bar) == 100
    assert bar.count("█") == 69
    assert bar.count("▓") == 9
    assert [i for i, sign in enumerate(bar) if sign == "┊"] == [87, 95]
    told = lines(rows(fakes.running(), 100))[6]
    assert "┊ floor 16" in told
    assert "┊ Ray 95 %" in told


def test_a_limit_that_is_passed_warns_on_the_bar() -> None:
    full = fakes.running(memory=known(memory(available_bytes=int(3 * GIB)), NOW))
    (bar,) = [row for row in rows(full) if "┊" in plain(row) and "█" in plain(row)]
    assert [span.role for span in bar if span.text == "┊"] == [Role.WARNING, Role.WARNING]


@pytest.mark.parametrize(
    ("left_gib", "role"), [(37.5, Role.STRONG), (12.0, Role.WARNING), (5.0, Role.BAD)]
)
def test_what_is_left_warns_by_the_floor(left_gib: float, role: Role) -> None:
    snapshot = fakes.running(memory=known(memory(available_bytes=int(left_gib * GIB)), NOW))
    assert roles_of(rows(snapshot), f"{left_gib:.1f}") == {role}


@pytest.mark.parametrize(
    ("per_minute", "told"), [(-0.2, "↓ 0.2/min"), (3.0, "↑ 3.0/min"), (0.01, "→ steady")]
)
def test_the_slope_of_the_pool(per_minute: float, told: str) -> None:
    points = tuple((NOW - 60 + t, (37.5 + per_minute * t / 60) * GIB) for t in range(61))
    snapshot = fakes.running(history={"memory.available_bytes": Series(points=points)})
    assert told in text(rows(snapshot))


def test_processes_are_named_and_ordered_by_what_they_hold() -> None:
    told = text(rows(fakes.running(), 50))
    assert told.index("4243 FSDPTrain    39.2 GiB") < told.index("4242 sglang       18.9 GiB")


def test_processes_that_a_container_hides_are_not_none() -> None:
    hidden = with_gpu(processes=known((), NOW))
    assert "? hidden by container" in text(rows(hidden, 100))
    idle = with_gpu(processes=known((), NOW), utilisation_ratio=known(0.0, NOW))
    assert "GPU processes none" in text(rows(idle, 100))


def test_a_process_list_that_cannot_be_read_says_why() -> None:
    denied = with_gpu(processes=Unknown(why=Absence.ERROR, reason="NVML error 999"))
    assert "GPU processes ? NVML error 999" in text(rows(denied, 120))


def test_a_process_whose_memory_is_unknown_is_not_counted_as_zero() -> None:
    mixed = (GpuProcess(pid=7, name="a", memory_bytes=NOT_SUPPORTED),)
    told = line_with(rows(with_gpu(processes=known(mixed, NOW))), "7 a")
    assert told.endswith("?")


def test_an_unknown_reading_says_why_and_leaves_the_others() -> None:
    denied = Unknown(why=Absence.NO_PERMISSION, reason="not permitted", at=NOW)
    told = rows(with_gpu(power_w=denied))
    assert line_with(told, "power").split() == ["power", "?", "not", "permitted"]
    assert "96 %" in text(told)


def test_a_reading_older_than_the_rest_shows_its_age() -> None:
    told = rows(with_gpu(temperature_c=known(70.0, NOW - 12)))
    assert "12 s ago" in line_with(told, "temp")
    assert roles_of(told, "70 °C") == {Role.MUTED}


def test_a_report_that_is_late_says_so_in_the_title() -> None:
    late = fakes.running(gpus=known(report(), NOW - 12))
    assert view.title(late, LOOK) == "GPU · NVIDIA GB10 · last 10 min · read 12 s ago"
    assert view.title(fakes.running(), LOOK) == "GPU · NVIDIA GB10 · last 10 min"
    assert "12 s ago" in plain(view.summary(late, 80, LOOK))


def test_a_reader_that_did_not_answer_is_told() -> None:
    hung = fakes.running(missed={"gpu": Unknown(why=Absence.TIMED_OUT, reason="no answer in 2 s")})
    assert "▲ no fresh reading: no answer in 2 s" in text(rows(hung))


@pytest.mark.parametrize(
    ("margin", "told", "role"),
    [
        (13.0, "13 below limit", Role.STRONG),
        (4.0, "4 below limit", Role.WARNING),
        (-2.0, "2 over limit", Role.BAD),
    ],
)
def test_temperature_goes_by_its_margin(margin: float, told: str, role: Role) -> None:
    shown = rows(with_gpu(temperature_margin_c=known(margin, NOW)))
    assert told in text(shown)
    assert roles_of(shown, "71 °C") == {role}


def test_a_margin_that_cannot_be_is_left_out() -> None:
    assert "limit" not in line_with(rows(with_gpu(temperature_margin_c=known(-50.0, NOW))), "temp")


def test_what_slows_the_clock_is_named() -> None:
    hot = with_gpu(
        throttle_reasons=known(("SW thermal",), NOW), thermal_slowdown_ratio=known(0.12, NOW)
    )
    assert "▲ SW thermal, slowed by heat 12 %" in line_with(rows(hot, 100), "clock")


def test_an_idle_device_is_never_drawn_full() -> None:
    points = tuple((NOW - 600 + t, 11.0) for t in range(601))
    idle = replace(
        with_gpu(power_w=known(11.0, NOW)), history={"gpu0.power_w": Series(points=points)}
    )
    chart = line_with(rows(idle), "power").split("W", 1)[1]
    assert set(chart.strip()) == {"▂"}


def test_a_gap_in_the_samples_is_a_gap_in_the_chart() -> None:
    whole = history()["gpu0.utilisation_ratio"]
    holed = Series(points=tuple(p for p in whole.points if not NOW - 300 < p[0] < NOW - 200))
    told = line_with(rows(fakes.running(history={"gpu0.utilisation_ratio": holed}), 100), "util")
    assert "     " in told[18:]


def test_charts_have_the_same_time_in_the_same_column() -> None:
    jump = Series(points=tuple((NOW - 600 + t, 90.0 if t < 300 else 20.0) for t in range(601)))
    told = rows(fakes.running(history={"gpu0.power_w": jump, "gpu0.temperature_c": jump}), 100)
    power, temp = line_with(told, "power"), line_with(told, "temp")
    assert len(power) == len(temp) == 100
    assert power.rindex("█") == temp.rindex("▇" if "▇" in temp else "█")


def test_without_a_gpu_the_reason_and_the_pool_are_shown() -> None:
    told = text(rows(fakes.no_gpu()))
    assert told.startswith("? no NVIDIA driver: libnvidia-ml.so.1 not found")
    assert "memory 84.2 of 121.7 GiB" in told
    assert "GPU processes ?" in told
    assert view.title(fakes.no_gpu(), LOOK) == "GPU"


def test_a_driver_without_devices_is_not_an_error() -> None:
    none = fakes.running(gpus=known(GpuReport(driver_version="580", devices=()), NOW))
    assert "no GPU in this box" in text(rows(none))
    assert "none in this box" in view.title(none, LOOK)
    assert "none in this box" in plain(view.summary(none, 80, LOOK))


def test_memory_that_cannot_be_read_says_why() -> None:
    blind = fakes.running(memory=Unknown(why=Absence.MISSING, reason="no /proc/meminfo"))
    assert "memory ? no /proc/meminfo" in text(rows(blind))


def test_a_card_shows_its_own_memory_beside_the_box() -> None:
    card = fakes.running(gpus=known(report(discrete_gpu()), NOW))
    told = text(rows(card, 100, 14))
    assert "memory 101.4 of 139.8 GiB" in told
    assert "box memory 84.2 of 121.7 GiB" in told
    assert "of 700 W" in told
    assert "GPU processes" not in told
    assert "page cache 11.0" in told


def test_a_card_whose_memory_is_unknown() -> None:
    card = discrete_gpu(memory_used_bytes=Unknown(why=Absence.ERROR, reason="NVML error 999"))
    told = text(rows(fakes.running(gpus=known(report(card), NOW)), 100, 14))
    assert "memory ? NVML error 999" in told


def test_several_cards_have_a_row_each() -> None:
    told = lines(rows(fakes.many_gpus(8), 100, 11))
    assert [line[0] for line in told[:8]] == list("01234567")
    assert all("°C" in line and "of 139.8 GiB" in line for line in told[:8])
    assert told[8].startswith("box memory")
    assert view.title(fakes.many_gpus(8), LOOK).startswith("GPU · 8 × NVIDIA H200")


def test_cards_that_do_not_fit_are_counted() -> None:
    told = lines(rows(fakes.many_gpus(8), 80, 7))
    assert told[3] == "… 5 more, not shown"


def test_a_card_and_an_integrated_part_together() -> None:
    both = fakes.running(gpus=known(report(discrete_gpu(0), replace(gpu(), index=1)), NOW))
    told = lines(rows(both, 100, 12))
    assert "101.4 of 139.8 GiB" in told[0]
    assert "shares the box's" in told[1]
    assert "2 devices" in view.title(both, LOOK)


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (78, "GPU     96 %  91 W  71 °C  left 37.5 of 121.7 GiB"),
        (38, "GPU     96 %  71 °C  left 37.5 GiB"),
    ],
)
def test_the_answer_in_a_line(width: int, told: str) -> None:
    assert plain(view.summary(fakes.running(), width, LOOK)) == told


def test_the_answer_in_a_line_without_a_gpu() -> None:
    told = plain(view.summary(fakes.running(gpus=NO_GPU), 78, LOOK))
    assert told.startswith("GPU     ? no NVIDIA driver")
    assert told.endswith("left 37.5 GiB")


def test_swap_and_pressure_are_told_when_there_is_any() -> None:
    busy = memory(swap_free_bytes=14 * GIB, pressure_full_ratio=known(0.4, NOW))
    told = text(rows(fakes.running(memory=known(busy, NOW - 8)), 120))
    assert "swap 2.0 GiB" in told
    assert "all wait for memory 40 %" in told
    assert "8 s ago" in told
