"""Numbers: units, digits, and a text for what is no number."""

from __future__ import annotations

import math

import pytest
from fake_box import HOUR, MIN, NOW
from hypothesis import given
from hypothesis import strategies as st

from tui.view import numbers

DAY = 24 * HOUR


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0, "0"),
        (0.412, "0.412"),
        (0.0029, "0.00290"),
        (-0.5, "-0.500"),
        (9.999, "10.0"),
        (512, "512"),
        (999.96, "1 000"),
        (3120.4, "3 120"),
        (1e-6, "1e-6"),
        (1.26e-9, "1.3e-9"),
        (12_345_678, "1.2e7"),
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
    ],
)
def test_a_number_has_as_many_digits_as_mean_something(value: float, text: str) -> None:
    assert numbers.number(value) == text


@pytest.mark.parametrize(("value", "text"), [(0.0469, "0.047"), (148.2, "150"), (1234.0, "1 200")])
def test_a_rough_number_has_two(value: float, text: str) -> None:
    assert numbers.rough(value) == text


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.96, "96 %"), (0.012, "1.2 %"), (0.1, "10 %"), (0, "0 %"), (math.nan, "nan %")],
)
def test_percent(ratio: float, text: str) -> None:
    assert numbers.percent(ratio) == text


@pytest.mark.parametrize(
    ("count", "text"),
    [
        (0, "0 B"),
        (999, "999 B"),
        (2048, "2.0 KiB"),
        (412 * 2**20, "412 MiB"),
        (7.1 * 2**30, "7.1 GiB"),
        (121.69 * 2**30, "122 GiB"),
        (3600 * 2**30, "3.5 TiB"),
        (-5 * 2**30, "-5.0 GiB"),
        (math.nan, "nan"),
    ],
)
def test_sizes(count: float, text: str) -> None:
    assert numbers.size(count) == text


@pytest.mark.parametrize(
    ("seconds", "duration", "age", "clock"),
    [
        (0.23, "0.2 s", "0 s", "0:00"),
        (34, "0:34", "34 s", "0:34"),
        (141, "2:21", "2 min", "2:21"),
        (14 * MIN + 2, "14 min", "14 min", "14:02"),
        (HOUR + MIN + 5, "1 h 01", "1 h 01", "1:01:05"),
        (DAY + 4 * HOUR + 8 * MIN, "1 d 04 h", "1 d 04 h", "28:08:00"),
        (-7, "0.0 s", "0 s", "0:00"),
        (math.nan, "?", "?", "?"),
        (1e300, "?", "?", "?"),
    ],
)
def test_spans_of_time(seconds: float, duration: str, age: str, clock: str) -> None:
    assert numbers.duration(seconds) == duration
    assert numbers.age(seconds) == age
    assert numbers.clock(seconds) == clock


@pytest.mark.parametrize(
    ("offset_s", "text"), [(0, "14:02:11"), (7200, "16:02:11"), (-54_000, "23:02:11")]
)
def test_the_clock_is_local(offset_s: int, text: str) -> None:
    assert numbers.time_of_day(NOW, offset_s) == text


@pytest.mark.parametrize(
    ("ahead_s", "offset_s", "text"),
    [
        (2 * HOUR, 0, "16:02"),
        (28 * HOUR + 8 * MIN, 0, "Tue 18:10"),
        (9 * HOUR, 0, "23:02"),
        (9 * HOUR, 7200, "Tue 01:02"),
        (6 * DAY, 0, "Sun 14:02"),
        (10 * DAY, 0, "3 Dec 14:02"),
        (400 * DAY, 0, "28 Dec 2027 14:02"),
        (-DAY, 0, "Sun 14:02"),
        (math.inf, 0, "--:--"),
        (-9e10, 0, "22:02"),
    ],
)
def test_a_moment_is_named_as_one_says_it_today(ahead_s: float, offset_s: int, text: str) -> None:
    assert numbers.day_and_time(NOW + ahead_s, NOW, offset_s) == text


def test_counts_agree_with_their_word() -> None:
    assert numbers.counted(1, "rollout") == "1 rollout"
    assert numbers.counted(6, "rollout") == "6 rollouts"
    assert numbers.counted(0, "rollout") == "0 rollouts"


@given(st.floats())
def test_every_number_has_a_short_text(value: float) -> None:
    for say in (
        numbers.number,
        numbers.rough,
        numbers.percent,
        numbers.size,
        numbers.gib,
        numbers.grouped,
        numbers.clock,
        numbers.duration,
        numbers.ago,
    ):
        assert 0 < len(say(value)) <= 24


@given(st.floats(1e-3, 9e6))
def test_a_text_read_back_is_the_number_within_a_percent(value: float) -> None:
    assert float(numbers.number(value).replace(" ", "")) == pytest.approx(value, rel=0.01)
