"""What the keys of actions come to: a plan that is shown, confirmed once, and seen afterwards."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fake_plans
import fakes
import pytest
from fake_box import NOW

from tui.app.screens.actions import ActionsScreen
from tui.app.screens.confirm import ConfirmScreen
from tui.app.screens.help import HelpScreen
from tui.app.screens.question import QuestionScreen
from tui.app.themes import all_themes
from tui.model.action import ActionKind
from tui.model.plan import ActionPlan, Ask, Refusal
from tui.model.snapshot import Snapshot
from tui.view.confirm import At

StageMaker = Callable[..., Any]
CANCEL_FIRST = "[ Cancel ]     autopsy, then kill and resume"
GO_FIRST = "Cancel     [ autopsy, then kill and resume ]"
SIZES = ((160, 50), (80, 24), (40, 10))


@pytest.fixture
def acting(stage: StageMaker) -> Callable[..., Any]:
    """A stage of a run that hangs, with a desk."""

    def make(snapshot: Snapshot | None = None, **options: Any) -> Any:
        return stage(snapshot or fakes.stalled(), can_act=True, **options)

    return make


async def confirming(on: Any, key: str = "k") -> None:
    """The plan of that key stands on the screen."""
    await on.press(key)
    await on.until(lambda: isinstance(on.app.screen, ConfirmScreen) and question(on).go)
    await on.pilot.pause()


def question(on: Any) -> Any:
    return on.app.screen.question


def is_gone(on: Any) -> bool:
    return on.app.screen is on.main


def is_at(on: Any, at: At) -> bool:
    return bool(on.app.screen.pane.at is at)


async def click(on: Any, text: str, *, into: int = 2) -> None:
    """Press the mouse on a text of the screen."""
    y, line = next((y, line) for y, line in enumerate(on.lines()) if text in line)
    assert await on.pilot.click(offset=(line.index(text) + into, y))


class TestThePlan:
    async def test_is_looked_for_beside_the_loop_while_the_screen_goes_on(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            on.desk.gate.clear()
            await on.press("k")
            await on.sees("looking…")
            await on.show(replace(fakes.stalled(), now=NOW + 61))
            assert "14:03:12" in on.lines()[0], "the main screen goes on behind it"
            on.desk.gate.set()
            await on.sees(CANCEL_FIRST)
            assert threading.main_thread() not in on.desk.threads
            assert all(thread.daemon for thread in on.desk.threads)

    @pytest.mark.parametrize("key", ["escape", "enter"])
    async def test_need_not_be_waited_for(self, acting: StageMaker, key: str) -> None:
        async with acting() as on:
            on.desk.gate.clear()
            await on.press("k")
            await on.sees("looking…")
            await on.press(key)
            await on.until(lambda: is_gone(on))
            on.desk.gate.set()
            await on.until(lambda: not any(thread.is_alive() for thread in on.desk.threads))
            await on.pilot.pause()
            assert is_gone(on)
            assert on.desk.asked("launch") == []

    @pytest.mark.parametrize("size", SIZES, ids=str)
    @pytest.mark.parametrize("in_ascii", [False, True], ids=["unicode", "ascii"])
    async def test_can_be_read_to_its_end_at_any_size(
        self, acting: StageMaker, size: tuple[int, int], in_ascii: bool
    ) -> None:
        async with acting(size=size, ascii=in_ascii) as on:
            await confirming(on)
            assert "[ Cancel ]" in on.text()
            assert "autopsy, then kill and resume" in on.text()
            assert "Why" in on.text()
            await on.press("end")
            await on.sees("stop it if it starts wrong")
            assert "[ Cancel ]" in on.text()
            assert on.text().isascii() or not in_ascii
            await on.press("home")
            await on.sees("Why")

    async def test_says_when_there_is_more_below(self, acting: StageMaker) -> None:
        async with acting(size=(40, 10)) as on:
            await confirming(on)
            assert "more lines" in on.text()
            await on.press("end")
            await on.until(lambda: "more line" not in on.text())

    async def test_a_refusal_says_why_and_what_to_do_and_can_only_be_closed(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            on.desk.answer = lambda _: fake_plans.REFUSED
            await on.press("s")
            await on.sees("▲ nothing can be saved")
            assert "the next resume switches it on" in on.text()
            assert "[ Close ]" in on.text()
            await on.press("tab", "enter")
            await on.until(lambda: is_gone(on))
            assert on.desk.asked("launch") == []

    async def test_a_fault_of_ours_is_a_refusal(self, acting: StageMaker) -> None:
        def broken(_: Ask) -> ActionPlan | Refusal:
            raise KeyError("recipe")

        async with acting() as on:
            on.desk.answer = broken
            await on.press("s")
            await on.sees("KeyError: 'recipe'")
            assert "[ Close ]" in on.text()

    async def test_leaves_the_rest_of_the_screen_as_it_was(self, acting: StageMaker) -> None:
        async with acting() as on:
            before = on.lines()
            await confirming(on)
            during = on.lines()
            assert during[0] == before[0]
            assert during[24][:20] == before[24][:20]
            await on.press("escape")
            await on.until(lambda: is_gone(on))
            assert on.lines() == before

    async def test_follows_a_new_size(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on)
            await on.pilot.resize_terminal(60, 15)
            await on.until(lambda: len(on.lines()) == 15 and "[ Cancel ]" in on.text())
            await on.press("escape")
            await on.until(lambda: is_gone(on) and "1 GPU" not in on.text())


class TestConfirming:
    async def test_cancel_is_under_the_keys_first(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on)
            assert CANCEL_FIRST in on.text()
            await on.press("enter")
            await on.until(lambda: is_gone(on))
            assert on.desk.asked("launch") == []

    @pytest.mark.parametrize("keys", [("tab",), ("right",), ("left",), ("tab", "tab", "tab")])
    async def test_one_key_leads_to_the_other_button_and_enter_presses_it(
        self, acting: StageMaker, keys: tuple[str, ...]
    ) -> None:
        async with acting() as on:
            await confirming(on)
            await on.press(*keys)
            await on.sees(GO_FIRST)
            await on.press("enter")
            await on.sees("Begun: Kill and resume run-a")
            assert is_gone(on)
            assert [plan.kind for plan in on.desk.asked("launch")] == [ActionKind.RESUME]

    async def test_what_is_launched_is_the_very_plan_that_was_shown(
        self, acting: StageMaker
    ) -> None:
        made: list[ActionPlan] = []

        def remembered(ask: Ask) -> ActionPlan | Refusal:
            made.append(fake_plans.kill_and_resume(ask))
            return made[-1]

        async with acting() as on:
            on.desk.answer = remembered
            await confirming(on)
            await on.press("2")
            await on.until(lambda: len(made) == 2 and not question(on).is_waiting)
            await on.press("tab", "enter")
            await on.until(lambda: on.desk.asked("launch"))
            assert on.desk.asked("launch")[0] is made[1]

    async def test_however_often_it_is_pressed_it_is_done_once(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on)
            on.desk.gate.clear()
            await on.press("tab", *["enter"] * 9, "tab", "enter", "k", "enter")
            await on.sees("beginning…")
            assert "[ " not in on.text()
            on.desk.gate.set()
            await on.until(lambda: is_gone(on))
            assert len(on.desk.asked("launch")) == 1

    @pytest.mark.parametrize("key", ["y", "k", "space", "s", "c"])
    async def test_no_letter_confirms(self, acting: StageMaker, key: str) -> None:
        async with acting() as on:
            await confirming(on)
            await on.press("tab", key)
            await on.pilot.pause()
            assert GO_FIRST in on.text()
            assert on.desk.asked("launch") == []

    async def test_keys_that_come_before_the_plan_do_not_confirm_it(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            on.desk.gate.clear()
            await on.press("k", "tab", "right")
            await on.sees("looking…")
            on.desk.gate.set()
            await on.sees(CANCEL_FIRST)

    async def test_what_does_not_begin_says_why(self, acting: StageMaker) -> None:
        async with acting() as on:
            on.desk.why_not = "Convert run-a is under way"
            await confirming(on)
            await on.press("tab", "enter")
            await on.sees("▲ Convert run-a is under way")
            assert "[ Close ]" in on.text()
            await on.press("enter")
            await on.until(lambda: is_gone(on))

    async def test_closed_while_it_begins_it_still_says_what_became_of_it(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            on.desk.why_not = "the disk is full"
            await confirming(on)
            on.desk.gate.clear()
            await on.press("tab", "enter", "escape")
            await on.until(lambda: is_gone(on))
            on.desk.gate.set()
            await on.sees("Kill and resume run-a: the disk is full")

    async def test_begun_under_the_help_it_can_be_closed_later(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on)
            on.desk.gate.clear()
            await on.press("tab", "enter", "?")
            await on.until(lambda: isinstance(on.app.screen, HelpScreen))
            on.desk.gate.set()
            await on.until(lambda: not any(thread.is_alive() for thread in on.desk.threads))
            await on.press("escape")
            await on.sees("It has begun.")
            await on.press("enter")
            await on.until(lambda: is_gone(on))

    async def test_the_mouse_can_do_it_all(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on)
            await click(on, "3 [x] stop it if it starts wrong")
            await on.until(lambda: len(on.desk.asked("plan")) == 2)
            await on.sees("3 [ ] stop it if it starts wrong")
            await click(on, "autopsy, then kill and resume")
            await on.until(lambda: on.desk.asked("launch"))

    async def test_a_click_on_cancel_cancels_and_one_beside_it_does_nothing(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            await confirming(on)
            await click(on, "You lose")
            await click(on, CANCEL_FIRST, into=-6)
            assert not is_gone(on)
            await click(on, "[ Cancel ]")
            await on.until(lambda: is_gone(on))
            assert on.desk.asked("launch") == []

    async def test_the_wheel_scrolls(self, acting: StageMaker) -> None:
        async with acting(size=(40, 10)) as on:
            await confirming(on)
            on.app.screen.pane.on_mouse_scroll_down(wheel_down(on))
            await on.until(lambda: "Why" not in on.text())


def wheel_down(on: Any) -> Any:
    from textual.events import MouseScrollDown

    return MouseScrollDown(on.app.screen, 1, 1, 0, 1, 0, False, False, False)


class TestChoices:
    async def test_turning_one_over_asks_anew_and_goes_back_to_cancel(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            await confirming(on)
            await on.press("tab", "2")
            await on.sees("2 [ ] take an autopsy")
            assert "[ Cancel ]     kill and resume" in on.text()

    async def test_nothing_can_be_confirmed_while_it_is_looked_at_again(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            await confirming(on)
            on.desk.gate.clear()
            await on.press("2", "3", "tab")
            await on.sees("looking again…")
            assert is_at(on, At.STAY)
            on.desk.gate.set()
            await on.sees("2 [ ] take an autopsy")
            assert len(on.desk.asked("plan")) == 2

    async def test_one_that_cannot_be_had_keeps_the_plan(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on)
            on.desk.answer = lambda _: fake_plans.REFUSED
            await on.press("1")
            await on.sees("▲ nothing can be saved")
            assert "1 [ ] save first" in on.text()
            await on.press("tab", "enter")
            await on.until(lambda: on.desk.asked("launch"))

    async def test_a_key_without_a_choice_does_nothing(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on, "s")
            await on.press("1", "2", "3")
            await on.pilot.pause()
            assert len(on.desk.asked("plan")) == 1


class TestTypingTheName:
    async def test_stopping_without_a_save_needs_the_runs_name(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on, "K")
            assert "type its name: run-a" in on.text()
            await on.press("enter", "tab", "tab", "enter")  # past cancel, and back to the name
            assert on.desk.asked("launch") == []
            assert not is_gone(on)
            await on.press(*"run", "minus", "b", "enter")
            assert is_at(on, At.NAME)
            await on.press("backspace", "a", "enter")
            await on.sees("[ stop without saving ]")
            assert on.desk.asked("launch") == []
            await on.press("enter")
            await on.until(lambda: on.desk.asked("launch"))

    async def test_letters_are_text_there_and_escape_is_not(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on, "K")
            await on.press("q", "1", "t", "question_mark")
            assert on.app.screen.name_line.value == "q1t?"
            assert len(on.desk.asked("plan")) == 1
            await on.press("escape")
            await on.until(lambda: is_gone(on))

    async def test_a_name_that_is_changed_again_takes_the_button_away(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            await confirming(on, "K")
            await on.press(*"run", "minus", "a", "tab", "tab")
            assert is_at(on, At.GO)
            await on.press("tab", "x", "tab", "tab")
            assert is_at(on, At.NAME)

    async def test_saving_first_needs_no_name(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on, "K")
            await on.press("tab", "1")
            await on.sees("[ Cancel ]     save, then stop")
            assert not on.app.screen.name_line.display

    async def test_the_mouse_moves_between_name_and_buttons(self, acting: StageMaker) -> None:
        async with acting() as on:
            await confirming(on, "K")
            await on.press("tab")
            assert is_at(on, At.STAY)
            await on.pilot.click("#name")
            await on.until(lambda: is_at(on, At.NAME))
            await click(on, "stop without saving  ")
            assert on.desk.asked("launch") == []
            await on.press(*"run", "minus", "a")
            await click(on, "stop without saving  ")
            await on.until(lambda: on.desk.asked("launch"))


class TestWhatIsAskedFor:
    async def test_a_roll_back_needs_a_checkpoint(self, acting: StageMaker) -> None:
        async with acting() as on:
            await on.press("b")
            await on.sees("Select the checkpoint to go back to first.")
            assert on.desk.calls == []

    async def test_a_run_that_is_alive_is_not_just_resumed(self, acting: StageMaker) -> None:
        async with acting(fakes.running()) as on:
            await on.press("r")
            await on.sees("run-a is alive: this needs kill and resume.")
            assert on.desk.calls == []

    @pytest.mark.parametrize(
        ("keys", "iteration"), [(("i",), 60), (("4", "down", "down", "i"), 40)], ids=str
    )
    async def test_on_the_page_of_a_checkpoint_it_is_about_that_one(
        self, acting: StageMaker, keys: tuple[str, ...], iteration: int
    ) -> None:
        async with acting() as on:
            await on.press(*keys)
            await on.pilot.pause()
            await on.press("b")
            await on.until(lambda: on.desk.asked("plan"))
            assert on.desk.asked("plan") == [Ask(kind=ActionKind.ROLLBACK, iteration=iteration)]
            await on.sees(f"Roll back run-a to {iteration}")
            await on.press("escape")
            await on.sees("resumes at")

    async def test_on_the_start_page_nothing_is(self, stage: StageMaker) -> None:
        async with stage(fakes.empty(), can_act=True) as on:
            await on.press("s", "k", "K", "r", "b", "u", "c", "a", "x")
            await on.pilot.pause()
            assert on.desk.calls == []
            assert "No Miles run was found" in on.text()


class TestTheActionsPage:
    @staticmethod
    def interrupted() -> Snapshot:
        return replace(fakes.stalled(), actions=(fake_plans.resumed(id="1"), fake_plans.record()))

    def under_way(self) -> Snapshot:
        return replace(self.interrupted(), action_holder=fake_plans.record().id)

    @pytest.mark.parametrize("size", SIZES, ids=str)
    async def test_the_main_screen_tells_of_it_at_any_size(
        self, acting: StageMaker, size: tuple[int, int]
    ) -> None:
        async with acting(self.under_way(), size=size) as on:
            assert "step 3 of 5" in on.lines()[0]
            assert "stop the run 0:12" in on.text() or "waiting for memory" in on.text()

    async def test_it_goes_on_while_it_is_looked_at(self, acting: StageMaker) -> None:
        async with acting(self.under_way()) as on:
            await on.press("x")
            await on.sees("under way, 1:32")
            await on.show(replace(self.under_way(), now=NOW + 5))
            await on.sees("under way, 1:37")
            ended = replace(self.under_way(), actions=(fake_plans.resumed(),), action_holder="")
            await on.show(ended)
            await on.sees("done, 5:00")
            await on.press("escape")
            await on.until(lambda: is_gone(on))

    async def test_what_was_interrupted_is_finished_by_one_key(self, acting: StageMaker) -> None:
        async with acting(self.interrupted()) as on:
            await on.press("x", "f")
            await on.sees("It goes on.")
            assert on.desk.calls == [("finish", fake_plans.record().id)]
            assert threading.main_thread() not in on.desk.threads

    async def test_one_that_cannot_be_finished_says_why(self, acting: StageMaker) -> None:
        async with acting(self.interrupted()) as on:
            on.desk.why_not = "its plan cannot be read"
            await on.press("x", "f")
            await on.sees("its plan cannot be read")

    @pytest.mark.parametrize(
        ("key", "held", "asked", "go"),
        [("g", False, "give up", "give it up"), ("c", True, "cancel", "leave off")],
        ids=["give up", "leave off"],
    )
    async def test_closing_one_is_asked_for_and_can_be_refused(
        self, acting: StageMaker, key: str, held: bool, asked: str, go: str
    ) -> None:
        async with acting(self.under_way() if held else self.interrupted()) as on:
            await on.press("x", key)
            await on.until(lambda: isinstance(on.app.screen, QuestionScreen))
            await on.press("enter")
            await on.until(lambda: isinstance(on.app.screen, ActionsScreen))
            assert on.desk.calls == []
            await on.press(key, "tab")
            await on.sees(f"[ {go} ]")
            await on.press("enter")
            await on.until(lambda: on.desk.calls == [(asked, fake_plans.record().id)])
            await on.until(lambda: isinstance(on.app.screen, ActionsScreen))

    @pytest.mark.parametrize(
        ("key", "held", "told"),
        [
            ("f", True, "It is under way."),
            ("g", True, "It is under way."),
            ("c", False, "It is interrupted: finish it or give it up."),
        ],
    )
    async def test_what_does_not_fit_its_state_says_so(
        self, acting: StageMaker, key: str, held: bool, told: str
    ) -> None:
        async with acting(self.under_way() if held else self.interrupted()) as on:
            await on.press("x", key)
            await on.sees(told)
            assert on.desk.calls == []

    async def test_without_an_open_action_there_is_nothing_to_finish(
        self, acting: StageMaker
    ) -> None:
        async with acting() as on:
            await on.press("x")
            await on.sees("nothing was done to this run")
            await on.press("f")
            await on.sees("No action is open.")


@pytest.mark.parametrize("theme", all_themes(None).by_name)
async def test_every_theme_shows_it(acting: StageMaker, theme: str) -> None:
    async with acting(theme=theme) as on:
        behind = on.lines()[0]
        await confirming(on, "K")
        await on.press(*"run", "minus", "a")
        assert "run-a" in on.text()
        assert on.lines()[0] == behind
        await on.press("enter")
        await on.sees("[ stop without saving ]")
