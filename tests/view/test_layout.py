"""Where panes go: nothing overlaps, nothing leaves the terminal, the four answers always stand."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.view.layout import Layout, Pane, Region, Shape, arranged

FOUR_ANSWERS = {Pane.GPU, Pane.ENGINES, Pane.CHECKPOINTS, Pane.ALERTS}


def places(layout: Layout, width: int) -> list[Region]:
    rows = [Region(x=0, y=y, width=width, height=1) for _, y in layout.summaries]
    footer = [layout.footer] if layout.footer else []
    return [layout.header, *footer, *(region for _, region in layout.panes), *rows]


def cells(region: Region) -> set[tuple[int, int]]:
    return {
        (x, y)
        for x in range(region.x, region.x + region.width)
        for y in range(region.y, region.y + region.height)
    }


@given(
    st.integers(1, 220),
    st.integers(1, 70),
    st.none() | st.sampled_from(Pane),
    st.none() | st.sampled_from(Pane),
)
def test_regions_share_no_cell_and_stay_inside(
    width: int, height: int, opened: Pane | None, zoomed: Pane | None
) -> None:
    layout = arranged(width, height, open_pane=opened, zoomed=zoomed)
    screen = cells(Region(x=0, y=0, width=width, height=height))
    taken: set[tuple[int, int]] = set()
    for region in places(layout, width):
        mine = cells(region)
        assert mine <= screen
        assert mine
        assert not mine & taken
        taken |= mine
    assert all(region.height >= 3 for _, region in layout.panes)
    named = [pane for pane, _ in (*layout.panes, *layout.summaries)]
    assert len(named) == len(set(named))


@pytest.mark.parametrize(
    ("width", "height", "shape"),
    [
        (160, 50, Shape.WIDE),
        (120, 36, Shape.WIDE),
        (119, 36, Shape.MEDIUM),
        (100, 30, Shape.MEDIUM),
        (80, 50, Shape.MEDIUM),
        (80, 24, Shape.NARROW),
        (200, 20, Shape.NARROW),
        (50, 14, Shape.NARROW),
        (40, 10, Shape.TINY),
        (200, 8, Shape.TINY),
        (1, 1, Shape.TINY),
    ],
)
def test_the_shape_suits_the_terminal(width: int, height: int, shape: Shape) -> None:
    assert arranged(width, height).shape is shape


def test_all_panes_are_open_where_there_is_room() -> None:
    layout = arranged(160, 50)
    assert {pane for pane, _ in layout.panes} == set(Pane)
    assert not layout.summaries
    log = layout.region(Pane.LOG)
    assert log is not None
    assert log.height >= 15


def test_at_80x24_the_answers_stand_and_one_pane_is_open() -> None:
    layout = arranged(80, 24)
    assert layout.open_pane is Pane.STEPS
    assert [pane for pane, _ in layout.summaries] == [
        Pane.GPU,
        Pane.ENGINES,
        Pane.CHECKPOINTS,
        Pane.ALERTS,
    ]
    assert [y for _, y in layout.summaries] == [1, 2, 3, 4]
    assert layout.region(Pane.STEPS) == Region(x=0, y=5, width=80, height=18)
    assert layout.region(Pane.GPU) is None


@pytest.mark.parametrize("pane", Pane)
@pytest.mark.parametrize(("width", "height"), [(80, 24), (80, 50), (100, 30)])
def test_the_pane_asked_for_is_open_and_no_answer_is_lost(
    pane: Pane, width: int, height: int
) -> None:
    layout = arranged(width, height, open_pane=pane)
    assert layout.region(pane) is not None
    shown = {name for name, _ in (*layout.panes, *layout.summaries)}
    assert shown >= FOUR_ANSWERS | {Pane.STEPS}


def test_at_40x10_the_answers_and_the_keys_remain() -> None:
    layout = arranged(40, 10)
    assert {pane for pane, _ in layout.summaries} >= FOUR_ANSWERS
    assert layout.footer is not None
    assert not layout.panes


@pytest.mark.parametrize("height", range(5, 12))
def test_a_small_terminal_keeps_the_first_lines(height: int) -> None:
    layout = arranged(40, height)
    assert layout.header.height >= 1
    kept = [pane for pane, _ in layout.summaries]
    assert (
        kept[: height - 2][:4]
        == [Pane.GPU, Pane.ENGINES, Pane.CHECKPOINTS, Pane.ALERTS][: height - 2]
    )


@pytest.mark.parametrize(("width", "height"), [(160, 50), (80, 24), (40, 10)])
def test_a_zoomed_pane_has_all_but_header_and_keys(width: int, height: int) -> None:
    layout = arranged(width, height, zoomed=Pane.LOG)
    assert layout.panes == ((Pane.LOG, Region(x=0, y=1, width=width, height=height - 2)),)


def test_too_low_to_zoom_falls_back_to_lines() -> None:
    assert arranged(40, 4, zoomed=Pane.LOG).shape is Shape.TINY
