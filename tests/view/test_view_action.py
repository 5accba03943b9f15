"""What we do to the run, as rows: under way, interrupted, ended, and all before."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import fake_plans
import fakes
import pytest
from fake_box import MIN, NOW
from rows_read import lines, roles_of, text

from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.snapshot import Snapshot
from tui.view import action, alerts, header
from tui.view.rows import Look, Role, plain

LOOK = Look()


def with_actions(*records: ActionRecord, holder: str = "", **changes: Any) -> Snapshot:
    return fakes.running(actions=records, action_holder=holder, **changes)


def under_way(**changes: Any) -> Snapshot:
    record = fake_plans.record(**changes)
    return with_actions(record, holder=record.id)


def page(snapshot: Snapshot, width: int = 100) -> list[str]:
    return lines(action.rows(snapshot, width, 60, LOOK))


class TestThePage:
    def test_under_way_tells_each_step_and_how_long_the_present_one_takes(self) -> None:
        told = page(under_way())
        assert told[0].startswith("◐ Kill and resume run-a")
        assert told[0].endswith("under way, 1:32")
        assert "  ✓ 1 save                  saved iteration 62 in 0:47" in told
        assert (
            "  ◐ 3 stop the run          waiting for memory: 2.1 GiB held by pid 1881 "
            "(jupyter) 0:12" in told
        )
        assert "  · 4 start it again" in told

    def test_a_step_that_said_nothing_yet_shows_its_clock_and_not_the_word_of_the_one_before(
        self,
    ) -> None:
        record = fake_plans.record(step_began_at=NOW - 12, changed_at=NOW - 12, line="autopsy done")
        told = page(with_actions(record, holder=record.id))
        assert "  ◐ 3 stop the run          0:12" in told
        assert "autopsy done" not in "\n".join(told)

    def test_interrupted_is_a_warning_at_its_step(self) -> None:
        rows = action.rows(with_actions(fake_plans.record()), 100, 60, LOOK)
        assert "  ▲ 3 stop the run          interrupted" in lines(rows)
        assert roles_of(rows, "interrupted") == {Role.WARNING}

    def test_the_lock_of_another_action_does_not_make_this_one_live(self) -> None:
        told = page(with_actions(fake_plans.record(), holder="some other"))
        assert told[0].endswith("interrupted, 1:32")

    def test_done_tells_what_it_came_to(self) -> None:
        rows = action.rows(with_actions(fake_plans.resumed()), 100, 60, LOOK)
        assert lines(rows)[:2] == [
            f"{'● Kill and resume run-a':<90}done, 5:00",
            "  resumed at step 62",
        ]
        assert roles_of(rows, "resumed at step 62") >= {Role.GOOD}
        assert not [line for line in lines(rows) if "·" in line]

    def test_failed_tells_where_and_what_to_do(self) -> None:
        rows = action.rows(with_actions(fake_plans.failed()), 100, 60, LOOK)
        assert "  started fresh: stopped before its first save" in lines(rows)
        assert "  ✖ 5 prove what it loaded  failed" in lines(rows)
        assert lines(rows)[-1] == "  → look at --load, then resume again"
        assert roles_of(rows, "started fresh") == {Role.BAD}

    def test_given_up_says_how_far_it_came(self) -> None:
        given_up = fake_plans.record(state=ActionState.GIVEN_UP)
        assert "  given up at step 3 of 5" in page(with_actions(given_up))

    def test_those_before_stand_below_the_newest_first(self) -> None:
        old = fake_plans.failed(
            id="1", title="Convert checkpoint 40 of run-a", changed_at=NOW - 7200
        )
        new = fake_plans.resumed(id="2", changed_at=NOW - 3600)
        told = page(with_actions(old, new, fake_plans.record()))
        at = told.index("before")
        assert told[at + 1].startswith("● kill and resume: resumed at step 62")
        assert told[at + 1].endswith("1 h 00 ago")
        assert told[at + 2].startswith("✖ convert checkpoint 40: started fresh")

    def test_one_left_open_is_shown_before_newer_ones_that_ended(self) -> None:
        newer = fake_plans.resumed(id="9", title="Save now run-a")
        assert page(with_actions(fake_plans.record(), newer))[0].startswith("▲ Kill and resume")

    def test_an_action_without_steps_and_one_of_unknown_steps(self) -> None:
        bare = fake_plans.record(steps=(), done=(), step=None, line="")
        assert page(with_actions(bare))[0].startswith("▲ Kill and resume")
        odd = fake_plans.record(steps=("dig\x1b[2J",), done=(), step=0)
        assert "dig" in "\n".join(page(with_actions(odd)))

    def test_nothing_done_yet_says_so(self) -> None:
        assert page(fakes.running()) == ["nothing was done to this run by milepost yet"]

    @pytest.mark.parametrize("width", [36, 50, 76, 120])
    def test_every_word_is_there_at_every_width(self, width: int) -> None:
        rows = action.rows(with_actions(fake_plans.failed(), fake_plans.record()), width, 99, LOOK)
        told = " ".join(text(rows).split())
        for part in ("saved iteration 62", "runs/plain-autopsy-140127", "prove", "look at --load"):
            assert part in told
        assert not any(line.endswith("…") for line in lines(rows))

    def test_in_ascii_nothing_is_lost(self) -> None:
        rows = action.rows(under_way(), 100, 60, Look(ascii=True))
        assert "  + 1 save                  saved iteration 62 in 0:47" in lines(rows)
        assert text(rows).isascii()

    def test_the_title_tells_the_state(self) -> None:
        assert action.title(under_way(), LOOK) == "Actions · under way"
        assert action.title(with_actions(fake_plans.resumed()), LOOK) == "Actions · 1 action"


class TestTheMainScreen:
    def test_the_alerts_begin_with_the_action_under_way(self) -> None:
        rows = alerts.rows(under_way(line="waiting for memory"), 120, 5, LOOK)
        assert lines(rows) == [
            "◐ kill and resume: step 3 of 5, waiting for memory 0:12",
        ]
        assert roles_of(rows, "kill and resume") == {Role.BUSY}

    def test_an_interrupted_one_says_what_can_be_done(self) -> None:
        told = text(alerts.rows(with_actions(fake_plans.record()), 120, 5, LOOK))
        assert "▲ kill and resume was interrupted at step 3 of 5, stop the run" in told
        assert "it can be finished or given up" in told

    @pytest.mark.parametrize(
        ("record", "told_s"),
        [(fake_plans.resumed(), action.OUTCOME_S), (fake_plans.failed(), action.FAILURE_S)],
        ids=["done", "failed"],
    )
    def test_an_end_is_told_for_a_while(self, record: ActionRecord, told_s: float) -> None:
        word = record.line.partition("\n")[0]
        for ago_s, is_told in ((told_s - 1, True), (told_s + 1, False)):
            ended = replace(record, changed_at=NOW - ago_s)
            rows = alerts.rows(with_actions(ended), 120, 5, LOOK)
            assert (word in text(rows)) is is_told

    def test_a_bad_end_is_told_with_its_remedy(self) -> None:
        rows = alerts.rows(with_actions(fake_plans.failed()), 120, 5, LOOK)
        assert lines(rows)[0].startswith("✖ kill and resume: started fresh: stopped before its")
        assert lines(rows)[0].endswith("3 min ago")
        assert lines(rows)[1] == "  → look at --load, then resume again"

    def test_what_was_given_up_is_not_told(self) -> None:
        given_up = fake_plans.record(state=ActionState.GIVEN_UP)
        assert text(alerts.rows(with_actions(given_up), 120, 5, LOOK)) == "nothing to report"

    @pytest.mark.parametrize(
        ("width", "told"),
        [
            (120, "◐ kill and resume: step 3 of 5, waiting 0:12"),
            (40, "◐ stop the run 0:12"),
            (24, "◐ step 3 of 5"),
        ],
    )
    def test_the_summary_shrinks(self, width: int, told: str) -> None:
        row = alerts.summary(under_way(line="waiting"), width, LOOK)
        assert plain(row) == f"Alerts  {told}"

    def test_the_summary_still_counts_the_alerts(self) -> None:
        snapshot = replace(fakes.stalled(), actions=(fake_plans.record(),), action_holder="")
        assert plain(alerts.summary(snapshot, 80, LOOK)).endswith("✖ 1")

    @pytest.mark.parametrize(
        ("width", "told"),
        [(160, "◐ kill and resume: step 3 of 5"), (80, "◐ step 3 of 5"), (40, "◐ step 3 of 5")],
    )
    def test_the_header_says_that_something_is_being_done(self, width: int, told: str) -> None:
        assert told in lines(header.rows(under_way(), width, 1, LOOK))[0]

    def test_the_header_says_that_something_was_left_half_done(self) -> None:
        rows = header.rows(with_actions(fake_plans.record()), 160, 1, LOOK)
        assert "▲ kill and resume interrupted" in lines(rows)[0]

    def test_the_header_is_silent_about_what_has_ended(self) -> None:
        assert (
            "resume" not in lines(header.rows(with_actions(fake_plans.resumed()), 160, 1, LOOK))[0]
        )

    def test_an_action_without_a_title_goes_by_its_kind(self) -> None:
        record = fake_plans.record(title="", kind=ActionKind.CONVERT, began_at=NOW - MIN)
        assert action.short_title(under_way(), record) == "convert"
