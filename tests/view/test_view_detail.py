"""The page of one checkpoint, and what the pane says about sums and about a restart."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from fake_box import NOW
from fake_run import checkpoint, tree
from hypothesis import given
from hypothesis import strategies as st
from rows_read import line_with, lines, roles_of, text

from tui.model.checkpoint import Checkpoint, CheckpointState, Soundness, Verification
from tui.model.reading import known
from tui.model.snapshot import Loads, SaveAdvice, Snapshot, WouldLoad
from tui.view import checkpoints, detail
from tui.view.rows import Look, Role, row_width

LOOK = Look(selected_iteration=60)
BAD = Verification(
    soundness=Soundness.DAMAGED,
    at=NOW - 780,
    seconds=31.0,
    checked_bytes=7 * 2**30,
    faults=("optimizer/__0_0.distcp: item 12: bad sum", "optimizer/__0_0.distcp: item 13: bad sum"),
)


def holding(*checkpoints_held: Checkpoint, **changes: object) -> Snapshot:
    held = replace(tree(), checkpoints=checkpoints_held)
    return fakes.running(checkpoints=known(held, NOW), **changes)


def test_the_page_tells_numbers_size_parameters_and_sums() -> None:
    each = checkpoint(60, parameter_count=596_049_920, verification=BAD)
    told = detail.rows(holding(each), 100, 40, LOOK)

    assert line_with(told, "taken after").endswith("rollout 59")
    assert "rollout 60" in line_with(told, "resumes at")
    assert "596 049 920 (0.60 B)" in text(told)
    assert "damaged, 13 min ago, 7.0 GiB in 31 s" in text(told)
    assert roles_of(told, "item 13: bad sum") == {Role.BAD}
    assert detail.title(each, LOOK) == "Checkpoint 60"


def test_what_is_not_whole_says_why_and_converts_to_nothing() -> None:
    each = checkpoint(
        60,
        state=CheckpointState.PARTIAL,
        reason="optimizer missing",
        missing=("optimizer/.metadata", "rng.pt"),
    )
    told = text(detail.rows(holding(each), 80, 40, LOOK))

    assert "optimizer/.metadata, rng.pt" in told
    assert "not before it is whole" in told
    assert "never; its bytes are taken on trust" in told


@pytest.mark.parametrize(
    ("soundness", "words", "role"),
    [
        (Soundness.SOUND, "sums ok 13 min ago", Role.GOOD),
        (Soundness.NO_SUMS, "no sums 13 min ago", Role.MUTED),
        (Soundness.NOT_FINITE, "3 values nan or inf", Role.BAD),
        (Soundness.DAMAGED, "item 12: bad sum", Role.BAD),
    ],
)
def test_the_pane_says_what_the_sums_came_to(soundness: Soundness, words: str, role: Role) -> None:
    seen = replace(BAD, soundness=soundness, non_finite=3)
    told = checkpoints.rows(holding(checkpoint(60, verification=seen)), 140, 8, LOOK)

    assert words in text(told)
    assert role in roles_of(told, words[:7]) | roles_of(told, words)


def test_the_pane_says_what_a_restart_loads_and_how_to_save_better() -> None:
    advice = SaveAdvice(
        rollout_s=140.0,
        save_s=47.0,
        between_failures_s=86400.0,
        is_between_given=True,
        most=25,
        low=14,
        high=29,
        waste_ratio=0.033,
        best_waste_ratio=0.031,
    )
    loads = WouldLoad(
        loads=Loads.NOTHING,
        best=60,
        line="a restart would begin fresh at rollout 0: no tracker file",
    )
    base = fakes.running()
    often = replace(base.story, launch=replace(base.story.launch, save_interval=5))
    verdict = replace(base.verdict, would_load=loads, save_advice=replace(advice, waste_ratio=0.08))
    told = checkpoints.rows(replace(base, story=often, verdict=verdict), 140, 10, LOOK)

    assert roles_of(told, "begin fresh at rollout 0") == {Role.BAD}
    assert "every 14–29 would lose less: 8 % → 3.1 %" in text(told)


@pytest.mark.parametrize(
    ("is_given", "source"),
    [(True, "as configured"), (False, "at worst, going by this run")],
)
def test_the_page_tells_the_advice_and_what_it_rests_on(is_given: bool, source: str) -> None:
    """The plain rule too: rollouts of five minutes, one hour to lose, every twelve at most."""
    advice = SaveAdvice(
        rollout_s=300.0,
        save_s=47.0,
        between_failures_s=86400.0,
        is_between_given=is_given,
        most=12,
        low=7,
        high=14,
        waste_ratio=0.0703,
        best_waste_ratio=0.0327,
    )
    base = fakes.running()
    told = text(
        detail.rows(replace(base, verdict=replace(base.verdict, save_advice=advice)), 120, 40, LOOK)
    )

    assert "saving        every 20 costs 7 % of the time" in told
    assert "every 7 to 14 costs least: 3.3 %" in told
    assert "at most 12, so that a crash costs no more than 1 h 00" in told
    assert f"by 5:00 a rollout, 0:47 a save, a failure every 1 d 00 h {source}" in told


def test_without_a_checkpoint_the_page_says_so() -> None:
    assert lines(detail.rows(fakes.empty(), 60, 10, Look())) == ["there is no checkpoint"]


@given(st.integers(1, 200), st.integers(0, 40))
def test_rows_fit(width: int, height: int) -> None:
    hostile = checkpoint(60, path="/ckpt/\x1b[31m\u202e数学" * 9, verification=BAD)
    told = detail.rows(holding(hostile), width, height, LOOK)

    assert len(told) <= height
    assert all(row_width(row) <= width for row in told)
    assert "\x1b" not in text(told)
