"""The checkpoints pane: what the keys of its verify and of its order do."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fakes
import pytest
from fake_box import NOW
from fake_run import checkpoint, tree

from tui.app.screens.detail import DetailScreen
from tui.model.checkpoint import CheckpointState, Verifying
from tui.model.reading import Absence, Unknown, known
from tui.model.snapshot import Snapshot
from tui.view.layout import Pane

StageMaker = Callable[..., Any]
SIXTY, FORTY = checkpoint(60, tracked=True), checkpoint(40)
GIB = 2**30


def at_work(path: str = FORTY.path, **changes: Any) -> Snapshot:
    verifying = Verifying(
        path=path, asked_at=NOW - 4, done_bytes=GIB, total_bytes=4 * GIB, seconds=2.0
    )
    return fakes.running(verifying=replace(verifying, **changes))


@pytest.mark.parametrize("read_only", [True, False])
async def test_it_asks_for_the_one_under_the_cursor(stage: StageMaker, read_only: bool) -> None:
    async with stage(read_only=read_only) as on:
        await on.press("4", "down", "down", "v")
        assert on.source.verifies == [FORTY.path]


async def test_without_a_cursor_it_is_the_newest_and_the_cursor_goes_there(
    stage: StageMaker,
) -> None:
    async with stage() as on:
        await on.press("6", "v")
        assert on.source.verifies == [SIXTY.path]
        assert on.main.active is Pane.CHECKPOINTS
        await on.sees("▶    ")
        assert on.main.selected_iteration == 60


@pytest.mark.parametrize("size", [(160, 50), (80, 24)], ids=str)
async def test_the_row_tells_how_far_it_is(stage: StageMaker, size: tuple[int, int]) -> None:
    async with stage(at_work(), size=size) as on:
        await on.press("4")
        await on.sees("◐ 25 %, 6 s left")


async def test_at_80_by_24_the_folded_pane_tells_it_too(stage: StageMaker) -> None:
    async with stage(at_work(), size=(80, 24)) as on:
        await on.press("2")
        await on.sees("14 min old  ◐ 25 %  a crash now costs")


async def test_the_page_tells_amount_rate_and_what_is_left(stage: StageMaker) -> None:
    async with stage(at_work()) as on:
        await on.press("4", "down", "down", "i")
        await on.sees("◐ 25 %, 1.0 GiB of 4.0 GiB, 512 MiB/s, 6 s left")


async def test_the_same_key_stops_it(stage: StageMaker) -> None:
    async with stage(at_work()) as on:
        await on.press("4", "down", "down", "v")
        assert on.source.verifies == [None]


async def test_on_the_page_the_key_works_too_and_escape_only_leaves_it(stage: StageMaker) -> None:
    async with stage() as on:
        await on.press("4", "down", "down", "i")
        await on.until(lambda: isinstance(on.app.screen, DetailScreen))
        assert "v verify" in on.lines()[-1]
        await on.press("v")
        assert on.source.verifies == [FORTY.path]
        await on.show(at_work())
        await on.press("v")
        assert on.source.verifies == [FORTY.path, None]
        await on.press("escape")
        await on.until(lambda: on.app.screen is on.main)
        assert on.source.verifies == [FORTY.path, None]


async def test_escape_stops_it_once_nothing_else_is_open(stage: StageMaker) -> None:
    async with stage(at_work()) as on:
        await on.press("z", "escape")
        await on.until(lambda: not on.main.zoomed)
        assert on.source.verifies == []
        await on.press("escape")
        await on.until(lambda: on.source.verifies == [None])


async def test_escape_with_nothing_under_way_asks_for_nothing(stage: StageMaker) -> None:
    async with stage() as on:
        await on.press("escape")
        await on.pilot.pause()
        assert on.source.verifies == []


async def test_another_one_has_to_wait(stage: StageMaker) -> None:
    """What was read so far is not thrown away by a key pressed one row too far."""
    async with stage(at_work(SIXTY.path)) as on:
        await on.press("4", "down", "down", "v")
        await on.sees("Another is being verified: esc stops that.")
        assert on.source.verifies == []


async def test_after_one_without_a_result_it_can_be_asked_for_again(stage: StageMaker) -> None:
    async with stage(at_work(fault="rng.pt: Permission denied")) as on:
        await on.press("4")
        await on.sees("? not verified")
        await on.sees("rng.pt: Permission")
        await on.press("down", "down", "v")
        assert on.source.verifies == [FORTY.path]


async def test_what_is_being_written_is_not_read(stage: StageMaker) -> None:
    saving = tree(checkpoint(80, state=CheckpointState.SAVING), SIXTY)
    async with stage(fakes.running(checkpoints=known(saving, NOW))) as on:
        await on.press("4", "v")
        await on.sees("80 is being written: wait for the end.")
        assert on.source.verifies == []


async def test_without_a_checkpoint_it_says_so(stage: StageMaker) -> None:
    none = Unknown(why=Absence.MISSING, reason="nothing saved yet")
    async with stage(fakes.running(checkpoints=none)) as on:
        await on.press("4", "v")
        await on.sees("There is no checkpoint to verify.")
        assert on.source.verifies == []


def table(on: Any) -> list[str]:
    """The rows of the table, in the pane that is active."""
    return [
        line.split("┃")[1].strip() for line in on.lines() if "┃" in line and "  rollout" in line
    ]


async def test_the_selection_follows_the_checkpoint_not_the_row(stage: StageMaker) -> None:
    listed = tree(checkpoint(60, size_bytes=1), checkpoint(40, size_bytes=3), checkpoint(20))
    async with stage(fakes.running(checkpoints=known(listed, NOW))) as on:
        await on.press("4", "end")
        for marked, place in (("age↓", 0), ("size↓", 0), ("state↓", 2), ("checked↓", 2)):
            await on.press("o")
            await on.sees(marked)
            assert table(on)[place].startswith("▶     20")
        await on.press("o")
        await on.sees("iter↓")
        await on.press("up")
        assert table(on)[1].startswith("▶     40")


async def test_moving_follows_the_order(stage: StageMaker) -> None:
    listed = tree(checkpoint(60, size_bytes=1), checkpoint(40, size_bytes=3))
    async with stage(fakes.running(checkpoints=known(listed, NOW))) as on:
        await on.press("o", "o", "home")
        assert on.main.selected_iteration == 40
        await on.press("down")
        assert on.main.selected_iteration == 60
