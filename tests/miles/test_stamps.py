"""Stamps of several programs in several zones, and how old their lines are."""

from __future__ import annotations

import logs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.miles.stamps import LogClock, seconds_of
from tui.model import events


def test_a_program_in_another_zone_does_not_tear_the_log_apart() -> None:
    """Ray's client on a host nine hours ahead, the run in a container in UTC."""
    found, _ = logs.parsed(
        [
            "2026-11-29 19:00:00,100\tSUCC cli.py:67 -- Job 'j' submitted successfully",
            logs.trainer("10:00:20", "Timer train_wait start"),
            logs.step("10:01:00", 0),
            "2026-11-29 19:01:30,100\tSUCC cli.py:67 -- Job 'j' succeeded",
        ]
    )
    times = [event.at - found[0].at for event in found]

    assert times == pytest.approx([0.0, 19.9, 59.9, 90.0])
    assert isinstance(found[-1], events.RunEnded)


def test_a_long_silence_is_no_zone() -> None:
    found, _ = logs.parsed(
        [
            "2026-11-29 09:00:00,100\tSUCC cli.py:67 -- Job 'j' submitted successfully",
            logs.trainer("09:47:10", "Timer train_wait start"),
        ]
    )

    assert found[1].at - found[0].at == pytest.approx(2829.9)


def test_ages_of_a_live_log_are_those_of_arrival_in_any_zone() -> None:
    clock = LogClock(live=True)

    for second in range(5):
        stamp = 36_000.0 + second
        assert clock.at(stamp, arrival=1e9 + second, form="miles") == pytest.approx(
            1e9 + second, abs=0.001
        )
        assert clock.at(stamp + 32_400, 1e9 + second, "ray") <= 1e9 + second


@pytest.mark.parametrize("zone_s", [0.0, 9 * 3600.0, -5 * 3600.0, 20_700.0])
@pytest.mark.parametrize("late_s", [0.0, -1.0, 40.0, 800.0])
def test_lines_without_a_stamp_after_the_newest_one_do_not_make_it_younger(
    zone_s: float, late_s: float
) -> None:
    """A bar is drawn for minutes; what was stamped before it is as old as it is."""
    clock = LogClock(live=True)
    clock.calibrate(1e9 - late_s + zone_s, written_at=1e9)

    assert clock.at(1e9 - late_s + zone_s, None) == pytest.approx(1e9 - late_s, abs=0.001)


@pytest.mark.parametrize(
    "stamp",
    ["0000-01-01 00:00:00", "2026-13-01 00:00:00", "2026-01-32 00:00:00", "2026-01-01 24:00:00"],
)
def test_what_looks_like_a_time_and_is_none(stamp: str) -> None:
    assert seconds_of(stamp) is None


@given(st.lists(st.tuples(st.floats(0, 4e9), st.sampled_from(["a", "b", "c"])), max_size=30))
def test_any_stamps_at_all(stamps: list[tuple[float, str]]) -> None:
    clock = LogClock(live=False)
    for stamp, form in stamps:
        assert clock.at(stamp, None, form) == clock.last_at
