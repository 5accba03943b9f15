"""`p`: a person at the screen outranks the guard."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import fakes
import pytest

from tui.model.guard import GuardState
from tui.model.snapshot import Snapshot

StageMaker = Callable[..., Any]
PAUSED = fakes.guarded(paused="a person at the screen")


@pytest.mark.parametrize(
    ("snapshot", "paused", "told"),
    [
        (fakes.guarded(), True, "The guard is paused"),
        (PAUSED, False, "The guard may act again."),
        (fakes.guarded(state=GuardState.DEAD), True, "The guard is paused"),
    ],
)
async def test_it_turns_the_pause_over(
    stage: StageMaker, snapshot: Snapshot, paused: bool, told: str
) -> None:
    async with stage(snapshot, can_act=True) as on:
        await on.press("p")
        await on.sees(told)
        assert on.desk.asked("pause guard") == [paused]


@pytest.mark.parametrize("snapshot", [fakes.running(), fakes.guarded(state=GuardState.OFF)])
async def test_where_none_watches_it_says_so(stage: StageMaker, snapshot: Snapshot) -> None:
    async with stage(snapshot, can_act=True) as on:
        await on.press("p")
        await on.sees("No guard watches this run")
        assert on.desk.calls == []


async def test_read_only_has_the_key_too_and_a_refusal_is_told(stage: StageMaker) -> None:
    async with stage(PAUSED, can_act=True, read_only=True) as on:
        on.desk.why_not = "milepost is read-only: `milepost guard --unpause` lets the guard act"
        await on.press("p")
        await on.sees("milepost guard --unpause")
        assert on.desk.asked("pause guard") == [False]


async def test_the_header_follows(stage: StageMaker) -> None:
    async with stage(fakes.guarded()) as on:
        await on.sees("guard on: resume since 14:00")
        await on.show(PAUSED)
        await on.sees("guard paused: resume")
        await on.show(fakes.guarded(state=GuardState.DEAD))
        await on.sees("guard died 2 s ago")
