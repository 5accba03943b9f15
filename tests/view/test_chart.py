"""Charts: scale, gaps, clipped values, nan; and that they stand still."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.view.chart import Pool, bar, in_order, over_time, own_scale, slope, sparkline
from tui.view.rows import plain, row_width

HUNDRED = (0.0, 100.0)


def test_a_fixed_scale_reaches_from_bottom_to_top() -> None:
    cells = (0.0, 12.6, 50.0, 99.0, 100.0)
    assert sparkline(cells, HUNDRED) == "▁▂▅██"


def test_a_missing_sample_is_a_blank_and_not_a_zero() -> None:
    assert sparkline((50.0, None, 0.0), HUNDRED) == "▅ ▁"


def test_nan_and_what_leaves_the_scale_have_their_own_signs() -> None:
    assert sparkline((50.0, math.nan, math.inf, 101.0, -1.0), HUNDRED) == "▅××↑↓"


def test_a_constant_series_is_a_level_line() -> None:
    assert sparkline((3.0, 3.0), own_scale((3.0, 3.0))) == "▄▄"


def test_one_outlier_does_not_flatten_the_rest() -> None:
    values = (*[float(i % 5) for i in range(40)], 1e9)
    assert own_scale(values) == (0.0, 4.0)
    chart = sparkline(in_order(values, 41, Pool.MEAN), own_scale(values))
    assert chart[-1] == "↑"
    assert len(set(chart[:-1])) == 5


def test_nan_values_do_not_blank_the_scale() -> None:
    assert own_scale((1.0, math.nan, 3.0, math.inf)) == (1.0, 3.0)
    assert own_scale((math.nan,)) is None
    assert sparkline((math.nan, 1.0), None) == "××"


def test_few_values_are_all_believed() -> None:
    assert own_scale((1.0, 1.0, 1.0, 50.0)) == (1.0, 50.0)


def test_cells_share_the_values_in_order() -> None:
    assert in_order((1.0, 3.0, 5.0, 7.0), 2, Pool.MEAN) == (2.0, 6.0)
    assert in_order((1.0, 3.0, 5.0, 7.0), 2, Pool.MAX) == (3.0, 7.0)
    assert in_order((1.0, 3.0), 10, Pool.MEAN) == (1.0, 3.0)
    assert in_order((), 10, Pool.MEAN) == ()
    assert in_order((1.0,), 0, Pool.MEAN) == ()


def test_one_nan_in_a_cell_is_not_averaged_away() -> None:
    (cell,) = in_order((1.0, math.nan, 3.0), 1, Pool.MEAN)
    assert cell is not None
    assert math.isnan(cell)


def samples(until: int) -> list[tuple[float, float]]:
    return [(1000.0 + t, float(t % 7)) for t in range(until)]


def test_a_chart_over_time_leaves_out_what_was_not_sampled() -> None:
    points = [p for p in samples(100) if not 1040 <= p[0] < 1060]
    cells = over_time(points, end=1099.0, span_s=100.0, width=10, pool=Pool.MEAN)
    assert [cell is None for cell in cells] == [i in (4, 5) for i in range(10)]


def test_a_chart_over_time_changes_only_at_its_end_within_a_cell() -> None:
    def drawn(until: int) -> str:
        cells = over_time(
            samples(until), end=1000.0 + until - 1, span_s=100.0, width=10, pool=Pool.MEAN
        )
        return sparkline(cells, (0.0, 7.0))

    before, after = drawn(192), drawn(199)
    assert before[:-1] == after[:-1]


def test_slow_samples_make_wider_cells_instead_of_gaps() -> None:
    points = [(1000.0 + 30 * i, 5.0) for i in range(20)]
    cells = over_time(points, end=1570.0, span_s=600.0, width=60, pool=Pool.MEAN)
    assert None not in cells[-8:]


@pytest.mark.parametrize(
    ("end", "span_s", "width"),
    [(math.nan, 10.0, 5), (1e300, 10.0, 5), (0.0, 0.0, 5), (0.0, 1.0, 0)],
)
def test_a_chart_of_no_time_is_empty(end: float, span_s: float, width: int) -> None:
    assert over_time([(0.0, 1.0)], end=end, span_s=span_s, width=width, pool=Pool.MAX) == ()


def test_the_slope_is_that_of_the_finite_points() -> None:
    points = [(float(x), 2.0 * x + 1) for x in range(10)]
    assert slope(points) == pytest.approx(2.0)
    assert slope([*points, (10.0, math.nan)]) == pytest.approx(2.0)
    assert slope(points[:2]) is None
    assert slope([(1.0, 1.0)] * 5) is None


@pytest.mark.parametrize(
    ("ratio", "text"),
    [(0.5, "█████░░░░░"), (2.0, "██████████"), (-1.0, "░░░░░░░░░░"), (math.nan, "░░░░░░░░░░")],
)
def test_bars(ratio: float, text: str) -> None:
    assert plain(bar(ratio, 10)) == text


POINTS = st.lists(st.tuples(st.floats(), st.floats()), max_size=60)


@given(POINTS, st.floats(), st.floats(1.0, 1e6), st.integers(-2, 80), st.sampled_from(Pool))
def test_charts_are_as_wide_as_asked_or_narrower(
    points: list[tuple[float, float]], end: float, span_s: float, width: int, pool: Pool
) -> None:
    values = tuple(y for _, y in points)
    cells = over_time(points, end=end, span_s=span_s, width=width, pool=pool)
    assert len(sparkline(cells, own_scale(values))) in (0, max(0, width))
    assert len(in_order(values, width, pool)) <= max(0, width)
    assert row_width(bar(end, width)) == max(0, width)
