"""The checkpoints pane: what a crash costs, what a resume loads, what the disk still takes."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from fake_box import HOUR, NOW, disk
from fake_run import checkpoint, risk, tree, verdict
from rows_read import line_with, lines, roles_of, text

from tui.model.checkpoint import CheckpointState, CheckpointTree
from tui.model.memory import GIB
from tui.model.reading import Absence, Unknown, known
from tui.model.snapshot import Snapshot
from tui.view import checkpoints
from tui.view.rows import Look, Role, Row, plain

LOOK = Look(selected_iteration=40)


def rows(
    snapshot: Snapshot, width: int = 100, height: int = 8, look: Look = LOOK
) -> tuple[Row, ...]:
    return checkpoints.rows(snapshot, width, height, look)


def holding(found: CheckpointTree, **changes: object) -> Snapshot:
    return fakes.running(checkpoints=known(found, NOW), **changes)


@pytest.mark.parametrize("width", [80, 120, 200])
def test_a_row_for_each_newest_first(width: int) -> None:
    told = lines(rows(fakes.running(), width))
    names = ["iter↓", "after", "age", "size", "state"]
    assert told[0].split() == (names if width == 80 else [*names, "checked"])
    assert told[1].split()[:8] == ["60", "rollout", "59", "14", "min", "7.1", "GiB", "●"]
    assert "● whole" in told[1]
    assert "resumes" in told[1]
    assert told[2].startswith("▶     40  rollout 39")
    assert "▲ partial" in told[3]
    assert "save ended early" in told[3] or width == 80


def test_columns_stand_under_their_heads() -> None:
    head, *table = lines(rows(fakes.running()))[:4]
    for row in table:
        assert row[head.index("after") :].startswith("rollout")
        assert row[: head.index("size") + 4].endswith("GiB")
        assert row[head.index("state")] in "●▲"


def test_a_narrow_table_keeps_iteration_age_and_state() -> None:
    told = lines(rows(fakes.running(), 40))
    assert told[1] == "      60     14 min  ● whole    resumes"
    assert all(len(line) <= 40 for line in told)


def test_only_the_selected_row_is_marked() -> None:
    assert [line[0] for line in lines(rows(fakes.running()))[1:4]] == [" ", "▶", " "]
    assert "▶" not in text(rows(fakes.running(), look=Look()))


def test_the_list_scrolls_to_the_selected_one() -> None:
    many = holding(tree(*(checkpoint(i, tracked=i == 60) for i in range(60, 0, -2))))
    told = lines(rows(many, look=Look(selected_iteration=20)))
    assert told[-2].startswith("▶     20")
    top = lines(rows(many, look=Look(selected_iteration=60)))
    assert top[1].startswith("▶     60")


@pytest.mark.parametrize(
    ("state", "word"),
    [
        (CheckpointState.WHOLE, "● whole"),
        (CheckpointState.PARTIAL, "▲ partial"),
        (CheckpointState.SAVING, "◐ saving"),
        (CheckpointState.DAMAGED, "✖ damaged"),
    ],
)
def test_every_state_has_glyph_and_word(state: CheckpointState, word: str) -> None:
    assert word in text(rows(holding(tree(checkpoint(60, state=state)))))


def test_a_tracked_checkpoint_that_is_not_whole_is_what_a_resume_would_load() -> None:
    told = rows(holding(tree(checkpoint(60, tracked=True, state=CheckpointState.PARTIAL))))
    assert roles_of(told, "a resume loads it") == {Role.BAD}


def test_a_checkpoint_without_its_data_position_says_so() -> None:
    told = rows(holding(tree(checkpoint(60, has_data_state=False))))
    assert "no data position" in line_with(told, "60")


def test_the_foot_says_interval_next_save_and_disk() -> None:
    assert lines(rows(fakes.running()))[-1] == (
        "saves every 20   next after rollout 79   disk 412 GiB free, full in 58 saves, 1 d 21 h   "
        "46 s a save"
    )


@pytest.mark.parametrize(("rollout", "following"), [(0, 19), (19, 19), (20, 39), (61, 79)])
def test_the_next_save_comes_after_a_whole_interval(rollout: int, following: int) -> None:
    told = fakes.running(story=replace(fakes.running().story, rollout=rollout))
    assert f"next after rollout {following} " in text(rows(told))


def test_a_disk_that_is_nearly_full_or_read_only_warns() -> None:
    short = rows(fakes.running(disk=known(disk(free_bytes=15 * GIB), NOW)))
    assert "full in 2 saves" in text(short)
    assert roles_of(short, "full in 2 saves") == {Role.WARNING}
    locked = rows(fakes.running(disk=known(disk(read_only=True), NOW)))
    assert roles_of(locked, "disk is read-only") == {Role.BAD}
    gone = fakes.running(disk=Unknown(why=Absence.MISSING, reason="no such folder"))
    assert "disk ? no such folder" in text(rows(gone))


def test_without_a_whole_checkpoint_nothing_is_said_of_saves_left() -> None:
    told = text(rows(holding(tree(checkpoint(20, state=CheckpointState.PARTIAL)))))
    assert "disk 412 GiB free" in told
    assert "full in" not in told


def test_the_title_says_what_a_crash_costs_now() -> None:
    assert checkpoints.title(fakes.running(), LOOK) == (
        "Checkpoints · a crash now costs 6 rollouts, 14 min · limit 1 h"
    )
    assert checkpoints.title(fakes.finished(), LOOK) == "Checkpoints · a resume loads 60"
    assert checkpoints.title(Snapshot(), LOOK) == "Checkpoints"


def test_past_the_limit_a_row_warns() -> None:
    late = fakes.running(verdict=verdict(risk=risk(seconds=2 * HOUR)))
    assert lines(rows(late))[0] == "▲ no whole checkpoint within the limit of 1 h"
    assert "limit" not in text(rows(fakes.running()))


def test_a_fact_about_the_whole_folder_is_told() -> None:
    told = text(rows(holding(tree(note="checkpoints lie one level deeper, in run-a/run-a"))))
    assert "▲ checkpoints lie one level deeper" in told


def test_no_checkpoint_yet_and_no_folder() -> None:
    none = holding(CheckpointTree(root="/ckpt/run-a"))
    assert lines(rows(none))[0] == "none yet in /ckpt/run-a"
    gone = fakes.running(
        checkpoints=Unknown(why=Absence.MISSING, reason="/ckpt/run-a does not exist")
    )
    assert lines(rows(gone))[0] == "? /ckpt/run-a does not exist"


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (79, "Ckpt    ● 60 whole, 14 min old  a crash now costs 6 rollouts, 14 min"),
        (38, "Ckpt    ● 60 whole, 14 min old"),
    ],
)
def test_the_answer_in_a_line(width: int, told: str) -> None:
    assert plain(checkpoints.summary(fakes.running(), width, LOOK)) == told


def test_the_answer_in_a_line_without_a_whole_one() -> None:
    broken = holding(tree(checkpoint(20, state=CheckpointState.PARTIAL)))
    assert "none whole" in plain(checkpoints.summary(broken, 79, LOOK))
    assert "none yet" in plain(checkpoints.summary(holding(CheckpointTree(root="/c")), 79, LOOK))
    assert "? not asked yet" in plain(checkpoints.summary(Snapshot(), 79, LOOK))


def test_a_megatron_checkpoint_resumes_one_later() -> None:
    megatron = checkpoint(59, tracked=True, after_rollout=59, resumes_at=60)
    told = line_with(rows(holding(tree(megatron))), "59")
    assert "rollout 59" in told
    assert "resumes at rollout 60" in told


@pytest.mark.parametrize("known_before", [True, False])
def test_a_disk_that_does_not_answer_is_told(known_before: bool) -> None:
    silence = Unknown(why=Absence.TIMED_OUT, reason="no answer for 14 s", at=NOW)
    nothing = Unknown(why=Absence.MISSING, reason="nothing saved yet", at=NOW)
    snapshot = replace(fakes.running(), missed={"checkpoints": silence})
    if not known_before:
        snapshot = replace(snapshot, checkpoints=nothing)
    assert "no fresh look: no answer for 14 s" in text(rows(snapshot))
