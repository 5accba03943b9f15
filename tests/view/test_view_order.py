"""The orders of the table of checkpoints, and how its head tells them."""

from __future__ import annotations

import fakes
import pytest
from fake_box import NOW
from fake_run import checkpoint, tree
from hypothesis import given
from hypothesis import strategies as st
from rows_read import lines

from tui.model.checkpoint import Checkpoint, CheckpointState, Soundness, Verification
from tui.model.reading import known
from tui.view import checkpoints
from tui.view.order import next_order, ordered
from tui.view.rows import Look, Order


def seen(soundness: Soundness, minutes_ago: float) -> Verification:
    return Verification(soundness=soundness, at=NOW - 60 * minutes_ago)


LISTED = (
    checkpoint(50, size_bytes=5, taken_at=NOW - 10, verification=seen(Soundness.SOUND, 9)),
    checkpoint(40, size_bytes=9, taken_at=NOW - 90, state=CheckpointState.PARTIAL),
    checkpoint(30, size_bytes=5, taken_at=NOW - 30, verification=seen(Soundness.DAMAGED, 1)),
    checkpoint(20, size_bytes=1, taken_at=NOW - 40, verification=seen(Soundness.SOUND, 99)),
    checkpoint(10, size_bytes=7, taken_at=NOW - 50, state=CheckpointState.DAMAGED),
)


@pytest.mark.parametrize(
    ("order", "iterations"),
    [
        (Order.ITERATION, [50, 40, 30, 20, 10]),
        (Order.AGE, [40, 10, 20, 30, 50]),
        (Order.SIZE, [40, 10, 50, 30, 20]),
        (Order.STATE, [10, 40, 50, 30, 20]),
        (Order.CHECKED, [30, 40, 10, 20, 50]),
    ],
)
def test_the_largest_or_worst_comes_first(order: Order, iterations: list[int]) -> None:
    assert [each.iteration for each in ordered(LISTED, order)] == iterations


def test_every_order_has_its_turn() -> None:
    order, had = Order.ITERATION, []
    for _ in Order:
        had.append(order)
        order = next_order(order)

    assert had == list(Order)
    assert order is Order.ITERATION


EACH = st.builds(
    checkpoint,
    st.integers(0, 9),
    size_bytes=st.integers(0, 3),
    taken_at=st.floats(0.0, 9.0),
    state=st.sampled_from(CheckpointState),
    verification=st.none() | st.builds(seen, st.sampled_from(Soundness), st.floats(0.0, 9.0)),
)


@given(st.lists(EACH), st.sampled_from(Order))
def test_nothing_is_lost_and_what_is_ordered_stays_so(
    listed: list[Checkpoint], order: Order
) -> None:
    once = ordered(listed, order)

    assert sorted(map(repr, once)) == sorted(map(repr, listed))
    assert ordered(once, order) == once


@pytest.mark.parametrize("width", [40, 80, 120])
@pytest.mark.parametrize("order", Order)
def test_the_head_marks_the_column_at_any_width_that_has_it(width: int, order: Order) -> None:
    snapshot = fakes.running(checkpoints=known(tree(*LISTED), NOW))
    head, *rows = lines(checkpoints.rows(snapshot, width, 12, Look(order=order)))
    marked = [name for name in head.split() if name.endswith("↓")]

    if width == 40 and order is Order.SIZE:
        assert marked == []
    else:
        assert marked == [f"{order.value}↓"]
    first = str(ordered(LISTED, order)[0].iteration)
    assert rows[0].split()[0] == first
    ascii_head = lines(checkpoints.rows(snapshot, width, 12, Look(order=order, ascii=True)))[0]
    assert ascii_head == head.replace("↓", "v")
