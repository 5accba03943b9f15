"""What the table and the page say of a verify: how far it is, and what it came to."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from fake_box import NOW
from fake_run import checkpoint, tree
from hypothesis import given
from hypothesis import strategies as st
from rows_read import line_with, roles_of, text

from tui.model.checkpoint import Soundness, Verification, Verifying
from tui.model.reading import known
from tui.model.snapshot import Snapshot
from tui.view import checkpoints, detail
from tui.view.rows import Look, Role, plain, row_width

GIB = 2**30
SIXTY = checkpoint(60, tracked=True)
LOOK = Look(selected_iteration=60)
HALF = Verifying(
    path=SIXTY.path, asked_at=NOW - 4, done_bytes=3 * GIB, total_bytes=7 * GIB, seconds=2.0
)


def snapshot(current: Verifying | None, seen: Verification | None = None) -> Snapshot:
    listed = tree(replace(SIXTY, verification=seen), checkpoint(40))
    return fakes.running(checkpoints=known(listed, NOW), verifying=current)


def row(width: int, current: Verifying | None, seen: Verification | None = None) -> str:
    return line_with(checkpoints.rows(snapshot(current, seen), width, 8, LOOK), " 60 ")


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (140, "◐ 42 %, 2 s left      resumes at rollout 60  3.0 GiB of 7.0 GiB, 1.5 GiB/s"),
        (100, "◐ 42 %, 2 s left      resumes at rollout 60"),
        (80, "resumes  ◐ 42 %"),
        (48, "resumes  ◐ 42 %"),
    ],
)
def test_a_row_tells_as_much_as_it_has_room_for(width: int, told: str) -> None:
    assert row(width, HALF).endswith(told)


def test_before_there_is_a_number_it_has_begun() -> None:
    begun = Verifying(path=SIXTY.path, asked_at=NOW)
    assert "◐ begins" in row(100, begun)
    assert "verify        ◐ begins" in text(detail.rows(snapshot(begun), 80, 40, LOOK))


def test_what_is_read_again_shows_how_far_it_is_and_not_what_was() -> None:
    sound = Verification(soundness=Soundness.SOUND, at=NOW - 60)
    assert "sums ok" in row(100, None, sound)
    assert "sums ok" not in row(100, HALF, sound)
    page = text(detail.rows(snapshot(HALF, sound), 80, 40, LOOK))
    assert "42 %, 3.0 GiB of 7.0 GiB, 1.5 GiB/s, 2 s left" in page
    assert "sound, 60 s ago" in page


def test_another_row_tells_nothing_of_it() -> None:
    told = checkpoints.rows(snapshot(HALF), 100, 8, LOOK)
    assert "◐" not in line_with(told, " 40 ")


def test_one_without_a_result_says_why() -> None:
    failed = replace(HALF, fault="rng.pt: Permission denied")
    told = checkpoints.rows(snapshot(failed), 140, 8, LOOK)
    assert roles_of(told, "? not verified") == {Role.WARNING}
    assert "rng.pt: Permission denied" in text(told)
    page = text(detail.rows(snapshot(failed), 80, 40, LOOK))
    assert "? no result: rng.pt: Permission denied" in page


def test_it_never_says_all_before_all_is_read() -> None:
    nearly = replace(HALF, done_bytes=7 * GIB - 1)
    assert "◐ 99 %" in row(100, nearly)


@pytest.mark.parametrize(
    ("width", "told"), [(120, "◐ 42 % of iter_0000060 verified"), (79, "14 min old  ◐ 42 %")]
)
def test_the_answer_in_a_line_tells_of_it(width: int, told: str) -> None:
    assert told in plain(checkpoints.summary(snapshot(HALF), width, LOOK))


@given(
    st.builds(
        Verifying,
        path=st.just(SIXTY.path),
        asked_at=st.just(NOW),
        done_bytes=st.integers(0, 2**60),
        total_bytes=st.integers(0, 2**60),
        seconds=st.floats(allow_nan=True, allow_infinity=True),
        fault=st.just("") | st.text(),
    ),
    st.integers(1, 200),
)
def test_rows_fit_whatever_is_told(current: Verifying, width: int) -> None:
    for rows in (
        checkpoints.rows(snapshot(current), width, 8, LOOK),
        detail.rows(snapshot(current), width, 40, LOOK),
        (checkpoints.summary(snapshot(current), width, LOOK),),
    ):
        assert all(row_width(each) <= width for each in rows)
