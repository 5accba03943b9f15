"""A storm is told in part; what is critical is not drowned by what is not."""

from __future__ import annotations

from tui.guard.flood import MOST, WINDOW_S, Flood
from tui.model.snapshot import Level

NOW = 1_795_956_000.0


def test_so_many_are_told_in_a_while_and_then_a_count() -> None:
    flood = Flood()
    told = [flood.lets(Level.WARNING, NOW + number) for number in range(MOST + 7)]

    assert told == [True] * MOST + [False] * 7
    assert flood.held_back(NOW + 60.0) == 0
    assert flood.held_back(NOW + WINDOW_S) == 7
    assert flood.held_back(NOW + WINDOW_S) == 0


def test_a_storm_of_warnings_holds_back_nothing_critical() -> None:
    flood = Flood()
    for _ in range(3 * MOST):
        flood.lets(Level.INFO, NOW)

    assert flood.lets(Level.CRITICAL, NOW)


def test_a_clock_that_is_set_back_ends_a_storm() -> None:
    flood = Flood()
    for _ in range(2 * MOST):
        flood.lets(Level.WARNING, NOW)

    assert flood.lets(Level.WARNING, NOW - 3600.0)


def test_a_storm_that_does_not_end_is_counted_once_in_a_while() -> None:
    flood = Flood()
    counts = []
    for second in range(3 * int(WINDOW_S)):
        flood.lets(Level.WARNING, float(second))
        if count := flood.held_back(float(second)):
            counts.append(count)

    assert len(counts) == 2
    assert min(counts) > WINDOW_S - 2 * MOST
