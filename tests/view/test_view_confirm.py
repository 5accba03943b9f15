"""The confirm, as rows: what it says, what can be chosen, and where its buttons are."""

from __future__ import annotations

from itertools import pairwise

import fake_plans
import pytest
from anything import anything
from fake_box import NOW
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from rows_read import line_with, lines, roles_of, text

from tui.model.action import ActionKind, ActionRecord
from tui.model.plan import ActionPlan, Ask, Refusal, Row
from tui.model.snapshot import Level
from tui.model.text import harmless
from tui.view import confirm, question
from tui.view.confirm import At
from tui.view.question import Question
from tui.view.rows import Look, Role, plain, row_width

LOOK = Look()
RESUME = Ask(kind=ActionKind.RESUME)
KEYS = ("1", "2", "3")


def kill_and_resume(ask: Ask = RESUME) -> Question:
    return question.of_plan(fake_plans.kill_and_resume(ask), ask)


def buttons(asked: Question, width: int, *, at: At = At.STAY, is_ready: bool = True) -> list[str]:
    return lines(confirm.button_rows(asked, width, LOOK, at=at, is_ready=is_ready))


class TestRows:
    def test_labels_stand_in_a_column_and_are_said_once(self) -> None:
        told = lines(confirm.rows(kill_and_resume(), 96, LOOK))
        assert told[1].startswith("You lose   6 rollouts, 14 min, since checkpoint 60")
        at = next(i for i, line in enumerate(told) if line.startswith("Will start"))
        assert told[at + 2] == "           changes: + --save-trigger-sentinel /ckpt/run-a.save-now"
        assert sum(line.startswith("Will start") for line in told) == 1

    def test_a_warning_has_its_sign_and_its_ink(self) -> None:
        rows = confirm.rows(kill_and_resume(), 96, LOOK)
        assert "           ▲ 2.1 GiB held by pid 1881 (jupyter)" in lines(rows)
        assert roles_of(rows, "2.1 GiB held") == {Role.WARNING}
        grave = Question(title="", rows=(Row(label="a", text="b", level=Level.CRITICAL),))
        assert roles_of(confirm.rows(grave, 40, LOOK), "b") == {Role.BAD}

    @pytest.mark.parametrize("width", [16, 36, 76, 96])
    def test_every_word_is_there_at_every_width(self, width: int) -> None:
        rows = confirm.rows(kill_and_resume(), width, LOOK)
        told = "".join(text(rows).split())
        for row in kill_and_resume().rows:
            assert "".join(row.text.split()) in told
        assert max(map(row_width, rows)) <= width

    def test_below_a_certain_width_labels_have_lines_of_their_own(self) -> None:
        told = lines(confirm.rows(kill_and_resume(), 24, LOOK))
        assert told[0] == "Why"
        assert told[1].startswith("stalled in")

    def test_lines_of_a_text_stay_lines(self) -> None:
        asked = Question(title="", rows=(Row(label="Why", text="one\ntwo"),))
        assert lines(confirm.rows(asked, 40, LOOK)) == ["Why one", "    two"]

    def test_an_empty_text_is_a_row(self) -> None:
        asked = Question(title="", rows=(Row(label="Why", text=""),))
        assert lines(confirm.rows(asked, 40, LOOK)) == ["Why"]

    def test_the_title_tells_how_old_the_look_is(self) -> None:
        told = confirm.title(kill_and_resume(), NOW + 12, LOOK)
        assert told == "Kill and resume run-a · looked 12 s ago"
        assert confirm.title(question.looking("Save run-a"), NOW, LOOK) == "Save run-a"


class TestChoices:
    def test_each_has_its_key_and_its_state(self) -> None:
        rows = confirm.choice_rows(kill_and_resume(), KEYS, 60, LOOK)
        assert [text(each) for each in rows] == [
            "1 [ ] save first, then stop",
            "2 [x] take an autopsy before the stop",
            "3 [x] stop it if it starts wrong",
        ]
        assert {key for each in rows for key in KEYS if Role.KEY in roles_of(each, key)} == set(
            KEYS
        )

    def test_long_ones_wrap_under_themselves(self) -> None:
        (rows, *_) = confirm.choice_rows(kill_and_resume(), KEYS, 22, LOOK)
        assert lines(rows) == ["1 [ ] save first, then", "      stop"]

    def test_turning_one_over_asks_for_the_other_way(self) -> None:
        save, dump, stop = kill_and_resume().choices
        assert save.ask == Ask(kind=ActionKind.RESUME, save_first=True)
        assert dump.ask == Ask(kind=ActionKind.RESUME, take_autopsy=False)
        assert stop.ask == Ask(kind=ActionKind.RESUME, stop_if_wrong=False)
        both = kill_and_resume(dump.ask).choices
        assert both[1].ask == Ask(kind=ActionKind.RESUME, take_autopsy=True)
        assert both[2].ask.take_autopsy is False, "what was chosen before is kept"

    @pytest.mark.parametrize("plan", [fake_plans.save_now(), fake_plans.convert(40)])
    def test_what_stops_nothing_has_none(self, plan: ActionPlan) -> None:
        assert question.of_plan(plan, Ask(kind=plan.kind)).choices == ()


class TestButtons:
    def test_side_by_side_in_the_middle(self) -> None:
        (told,) = buttons(kill_and_resume(), 96)
        assert told.strip() == "[ Cancel ]     autopsy, then kill and resume"
        (told,) = buttons(kill_and_resume(), 96, at=At.GO)
        assert told.strip() == "Cancel     [ autopsy, then kill and resume ]"

    def test_one_above_the_other_where_that_is_too_wide(self) -> None:
        assert buttons(kill_and_resume(), 36) == [
            "[ Cancel ]",
            "  autopsy, then kill and resume",
        ]

    def test_they_do_not_move_with_the_focus(self) -> None:
        columns = {
            (told.index("Cancel"), told.index("autopsy"))
            for at in At
            for told in buttons(kill_and_resume(), 96, at=at)
        }
        assert len(columns) == 1

    def test_one_that_is_not_ready_is_muted(self) -> None:
        rows = confirm.button_rows(kill_and_resume(), 96, LOOK, at=At.STAY, is_ready=False)
        assert roles_of(rows, "autopsy") == {Role.MUTED}

    def test_a_refusal_has_one_and_a_beginning_none(self) -> None:
        refused = question.refused("Save run-a", fake_plans.REFUSED)
        assert buttons(refused, 40)[0].strip() == "[ Close ]"
        assert buttons(question.beginning(kill_and_resume()), 96) == [""]


class TestReadiness:
    def test_a_plan_can_be_confirmed_at_once(self) -> None:
        assert kill_and_resume().is_ready("")

    def test_a_name_has_to_be_typed_whole(self) -> None:
        ask = Ask(kind=ActionKind.STOP, save_first=False)
        asked = question.of_plan(fake_plans.stop_unsaved(ask), ask)
        assert asked.is_ready("run-a")
        assert asked.is_ready("run-a ")
        for typed in ("", "run-", "run-ab", "RUN-A"):
            assert not asked.is_ready(typed)
        assert "type its name: run-a" in text(confirm.note_rows(asked, 60, LOOK))

    @pytest.mark.parametrize(
        "asked",
        [
            question.looking("Save run-a"),
            question.waiting(kill_and_resume(), "looking again…"),
            question.beginning(kill_and_resume()),
            question.refused("Save run-a", fake_plans.REFUSED),
            question.begun("Save run-a"),
        ],
        ids=["looking", "looking again", "beginning", "refused", "begun"],
    )
    def test_nothing_else_can_be(self, asked: Question) -> None:
        assert not asked.is_ready("")


class TestNotes:
    def test_a_refusal_gives_reason_and_remedy(self) -> None:
        rows = confirm.rows(question.refused("Save run-a", fake_plans.REFUSED), 96, LOOK)
        assert line_with(rows, "Not done").startswith("Not done ▲ nothing can be saved")
        assert "the next resume switches it on" in line_with(rows, "Instead")
        bare = question.refused("Save run-a", Refusal(reason="no"))
        assert lines(confirm.rows(bare, 96, LOOK)) == ["Not done ▲ no"]

    def test_a_choice_that_cannot_be_had_keeps_the_plan_and_says_why(self) -> None:
        asked = question.kept(kill_and_resume(), fake_plans.REFUSED)
        assert asked.is_ready("")
        assert "→ the next resume switches it on" in " ".join(
            text(confirm.note_rows(asked, 60, LOOK)).split()
        )

    def test_waiting_is_said(self) -> None:
        rows = confirm.note_rows(question.looking("Save run-a"), 60, LOOK)
        assert lines(rows) == ["◐ looking…"]
        assert roles_of(rows, "looking") == {Role.BUSY}

    def test_that_there_is_more_below_is_said(self) -> None:
        assert plain(confirm.more_row(3, 60, LOOK)) == "↓ 3 more lines"
        assert plain(confirm.more_row(0, 60, LOOK)) == ""

    def test_giving_up_lists_what_is_done_and_what_is_not(self) -> None:
        asked = question.giving_up("kill and resume", fake_plans.record())
        told = lines(confirm.rows(asked, 80, LOOK))
        assert told[0] == "Done     saved iteration 62 in 0:47"
        assert told[2:5] == ["Not done stop the run", "         start it again",
                             "         prove what it loaded"]  # fmt: skip


ASKED = st.one_of(
    st.builds(question.of_plan, anything(ActionPlan), anything(Ask)),
    st.builds(question.refused, st.text(max_size=9), anything(Refusal)),
    st.builds(question.giving_up, st.text(max_size=9), anything(ActionRecord)),
    st.builds(question.leaving_off, st.text(max_size=9), anything(ActionRecord)),
    st.builds(question.beginning, st.builds(question.of_plan, anything(ActionPlan), anything(Ask))),
)


@settings(
    max_examples=100,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(
    asked=ASKED,
    width=st.integers(1, 200),
    look=st.builds(Look, ascii=st.booleans()),
    at=st.sampled_from(At),
)
def test_any_plan_has_rows_that_fit(asked: Question, width: int, look: Look, at: At) -> None:
    drawn = (
        *confirm.rows(asked, width, look),
        *(row for rows in confirm.choice_rows(asked, KEYS, width, look) for row in rows),
        *confirm.note_rows(asked, width, look),
        *confirm.button_rows(asked, width, look, at=at, is_ready=asked.is_ready("")),
        confirm.more_row(5, width, look),
    )
    for row in drawn:
        told = plain(row)
        assert row_width(row) <= width, told
        assert harmless(told) == told
        assert told.isascii() or not look.ascii
    title = confirm.title(asked, NOW, look)
    assert harmless(title) == title
    places = confirm.buttons(asked, width)
    for one, other in pairwise(places):
        assert one.y < other.y or one.x + one.width < other.x
