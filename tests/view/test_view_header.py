"""The header: what the eye lands on first, at every width."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from fake_box import NOW
from fake_run import attachment, story, verdict
from rows_read import lines, roles_of, text

from tui.model.progress import PhaseClock
from tui.model.snapshot import Forecast, RunState, Snapshot
from tui.view import header
from tui.view.rows import Look, Role, row_width

LOOK = Look()


def read(snapshot: Snapshot, width: int, look: Look = LOOK) -> list[str]:
    return lines(header.rows(snapshot, width, 2, look))


def test_a_healthy_run_at_160() -> None:
    first, second = read(fakes.running(), 160)
    assert first.split("   ")[:5] == [
        " milepost",
        "run-a",
        "● RUNNING",
        "rollout 61 of 200",
        "actor_train 0:34 of ~0:41",
    ]
    assert "ETA 1 d 04 h, Tue 18:10" in first
    assert first.endswith("14:02:11")
    assert "last progress 3 s ago: actor_train 27/32" in second
    assert "container miles-run-a  pid 4100  log runs/plain.log" in second


def test_at_80_the_phase_and_the_eta_are_still_there() -> None:
    (first,) = lines(header.rows(fakes.running(), 80, 1, LOOK))
    assert first == (
        " run-a  ● RUNNING  61/200  actor_train 0:34 of ~0:41  ETA 1 d 04 h     14:02:11"
    )


@pytest.mark.parametrize(
    ("snapshot", "state"),
    [
        (fakes.running(), "● RUNNING"),
        (fakes.stalled(), "✖ STALLED"),
        (fakes.failed(), "✖ FAILED"),
        (fakes.starting(), "◐ STARTING"),
        (fakes.finished(), "● FINISHED"),
        (fakes.empty(), "? UNKNOWN"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
@pytest.mark.parametrize("width", [40, 80, 120, 200])
def test_every_state_has_its_glyph_and_word_at_every_width(
    snapshot: Snapshot, state: str, width: int
) -> None:
    assert state in read(snapshot, width)[0]


@pytest.mark.parametrize("make", [fakes.running, fakes.degraded, fakes.stalled, fakes.failed])
def test_at_40_the_rollout_is_still_told(make: object) -> None:
    assert callable(make)
    assert "61/200" in read(make(), 40)[0]


def test_a_degraded_run_is_marked_with_its_reasons_or_at_least_marked() -> None:
    assert "● RUNNING ▲   degraded: checkpoint-partial" in read(fakes.degraded(), 160)[0]
    assert "● RUNNING ▲" in read(fakes.degraded(), 40)[0]
    assert "▲" not in read(fakes.running(), 160)[0]


def test_a_stall_says_where_for_how_long_and_why() -> None:
    first, second = read(fakes.stalled(), 120)
    assert "✖ STALLED   for 14 min in actor_train" in first
    assert "ETA" not in first
    assert second.startswith(" stalled in actor_train for 14 min (usual 0:41)")
    assert Role.BAD in roles_of(header.rows(fakes.stalled(), 120, 2, LOOK), "STALLED")


def test_a_failed_run_says_its_cause_and_when() -> None:
    first, second = read(fakes.failed(), 120)
    assert "✖ FAILED   5 min ago" in first
    assert second.startswith(" disk full while saving iter 80")


def test_the_clock_of_a_phase_warns_past_all_it_took_before() -> None:
    def role_after(seconds: float) -> set[Role]:
        slow = fakes.running(story=story(phase=PhaseClock(name="actor_train", since=NOW - seconds)))
        return roles_of(header.rows(slow, 160, 1, LOOK), f"{int(seconds // 60)}:")

    assert Role.WARNING in role_after(70.0)
    assert Role.WARNING not in role_after(45.0)


def test_times_of_day_are_local() -> None:
    first = read(fakes.running(), 160, Look(utc_offset_s=7 * 3600))[0]
    assert "Wed 01:10" in first
    assert first.endswith("21:02:11")


def test_an_eta_today_names_no_day() -> None:
    soon = Forecast(remaining_rollouts=2, seconds=282.0, usual_rollout_s=141.0, basis="")
    first = read(fakes.running(verdict=verdict(forecast=soon)), 160)[0]
    assert "ETA 4:42, 14:06" in first


def test_demo_read_only_and_a_dead_log_are_marked() -> None:
    snapshot = fakes.running(attachment=attachment(demo=True, read_only=True), live=False)
    assert read(snapshot, 160)[0].endswith("demo  read-only  not live  14:02:11")


def test_a_total_that_is_not_known_is_left_out() -> None:
    bare = replace(fakes.empty(), story=replace(fakes.empty().story, rollout=3))
    assert "rollout 3" in read(bare, 80)[0]
    assert " of " not in read(bare, 80)[0].split("rollout 3")[1]


def test_a_name_from_outside_is_harmless() -> None:
    snapshot = fakes.running(attachment=attachment(name="run\x1b[31m\u202e[bold]a"))
    assert "run<202E>[bold]a" in text(header.rows(snapshot, 160, 2, LOOK))


def test_nothing_is_said_twice_in_a_state_that_explains_itself() -> None:
    assert "degraded" not in text(header.rows(fakes.stalled(), 200, 2, LOOK))


def test_the_second_row_gives_way_on_one_line() -> None:
    assert len(header.rows(fakes.running(), 80, 1, LOOK)) == 1
    assert header.rows(fakes.running(), 80, 0, LOOK) == ()


def test_a_state_without_progress_is_not_timed_from_nothing() -> None:
    unknown = fakes.empty()
    assert unknown.verdict.state is RunState.UNKNOWN
    assert "for" not in read(unknown, 80)[0]


def test_a_long_name_is_cut_before_the_state() -> None:
    snapshot = fakes.running(attachment=attachment(name="n" * 100))
    (row,) = header.rows(snapshot, 40, 1, LOOK)
    assert "● RUNNING" in lines((row,))[0]
    assert row_width(row) <= 40
