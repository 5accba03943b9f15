"""Every command of the registry: its key does what it says, and the palette finds it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import fake_plans
import fakes
import pytest
from fake_box import NOW

from tui.app.command import Command
from tui.app.commands import COMMANDS
from tui.app.keys import chosen_keys
from tui.app.leaving import Leaving
from tui.app.screens.actions import ActionsScreen
from tui.app.screens.choose import ChooseScreen
from tui.app.screens.help import HelpScreen
from tui.app.screens.start import StartScreen
from tui.model.action import ActionKind
from tui.model.plan import Ask
from tui.model.progress import LineKind, LogLine
from tui.model.snapshot import Snapshot
from tui.view.confirm import At
from tui.view.layout import Pane
from tui.view.rows import Order

StageMaker = Callable[..., Any]
Check = Callable[[Any], bool]


def busy() -> Snapshot:
    """Running, with more log than fits and one error far up in it."""
    lines = tuple(
        LogLine(
            at=NOW - 200 + i,
            source="trainer",
            text=f"line {i}",
            kind=LineKind.ERROR if i == 40 else LineKind.PLAIN,
        )
        for i in range(200)
    )
    return replace(fakes.running(), lines=lines)


class Case:
    """How to come to where a command does something, and how to tell that it did."""

    def __init__(
        self,
        check: Check,
        *before: str,
        snapshot: Snapshot | None = None,
        ready: Check = lambda _: True,
    ) -> None:
        self.check, self.before, self.ready = check, before, ready
        self.snapshot = snapshot or busy()


def is_active(pane: Pane) -> Check:
    return lambda on: on.main.active is pane


def asks(kind: ActionKind, **options: Any) -> Check:
    return lambda on: on.desk.asked("plan") == [Ask(kind=kind, **options)]


def turned_over(**options: Any) -> Case:
    """A choice of the plan to kill and resume."""
    ask = Ask(kind=ActionKind.RESUME, **options)
    return Case(lambda on: on.desk.asked("plan")[1:] == [ask], "k", ready=is_confirming)


def is_confirming(on: Any) -> bool:
    return "[ Cancel ]     autopsy, then kill and resume" in on.text()


def is_at(at: At) -> Check:
    return lambda on: on.app.screen.pane.at is at


INTERRUPTED = replace(fakes.running(), actions=(fake_plans.record(),))
UNDER_WAY = replace(INTERRUPTED, action_holder=fake_plans.record().id)

CASES: dict[str, Case] = {
    "save": Case(asks(ActionKind.SAVE)),
    "kill-and-resume": Case(asks(ActionKind.RESUME)),
    "convert": Case(asks(ActionKind.CONVERT, iteration=40), "4", "down", "down"),
    "roll-back": Case(asks(ActionKind.ROLLBACK, iteration=40), "4", "down", "down"),
    "undo-roll-back": Case(asks(ActionKind.UNDO)),
    "resume": Case(asks(ActionKind.RESUME), snapshot=fakes.failed()),
    "stop": Case(asks(ActionKind.STOP, save_first=False)),
    "autopsy": Case(asks(ActionKind.AUTOPSY)),
    "actions": Case(lambda on: isinstance(on.app.screen, ActionsScreen)),
    "choice-1": turned_over(save_first=True),
    "choice-2": turned_over(take_autopsy=False),
    "choice-3": turned_over(stop_if_wrong=False),
    "next-button": Case(is_at(At.GO), "k", ready=is_confirming),
    "previous-button": Case(is_at(At.GO), "k", ready=is_confirming),
    "answer": Case(lambda on: on.app.screen is on.main, "k", ready=is_confirming),
    "finish": Case(
        lambda on: on.desk.asked("finish") == [fake_plans.record().id], "x", snapshot=INTERRUPTED
    ),
    "give-up": Case(lambda on: "Give up: kill and resume" in on.text(), "x", snapshot=INTERRUPTED),
    "leave-off": Case(lambda on: "Leave off: kill and" in on.text(), "x", snapshot=UNDER_WAY),
    **{
        f"pane-{n}": Case(is_active(pane), "2" if n == 1 else "1") for n, pane in enumerate(Pane, 1)
    },
    "next-pane": Case(is_active(Pane.GPU), "6"),
    "previous-pane": Case(is_active(Pane.LOG), "1"),
    "zoom": Case(lambda on: on.main.zoomed and "Engines" not in on.text(), "1"),
    "back": Case(lambda on: not on.main.zoomed, "z"),
    "filter": Case(lambda on: on.main.filter_line.has_focus),
    "follow": Case(lambda on: on.main.log_pane.following, "6", "up"),
    "last-error": Case(lambda on: "line 40" in on.text() and is_active(Pane.LOG)(on)),
    "up": Case(lambda on: "1 lines up" in on.text(), "6"),
    "down": Case(lambda on: on.main.panes[Pane.CHECKPOINTS].selected == 60, "4"),
    "page-up": Case(lambda on: "line 170" in on.text() and "line 199" not in on.text(), "6"),
    "page-down": Case(lambda on: on.main.log_pane.following, "6", "up", "up"),
    "first": Case(lambda on: "line 0 " in on.text(), "6"),
    "last": Case(lambda on: "line 199" in on.text(), "6", "home"),
    "demo": Case(lambda on: on.app.return_code == Leaving.DEMO_REQUESTED, snapshot=fakes.empty()),
    "choose": Case(
        lambda on: on.source.attached == fakes.several().choices[0].attachment,
        snapshot=fakes.several(),
    ),
    "inspect": Case(
        lambda on: "resumes at" in on.text() and "rollout 40" in on.text(), "4", "down", "down"
    ),
    "verify": Case(lambda on: len(on.source.verifies) == 1, "4", "down"),
    "order": Case(lambda on: on.main.checkpoints.order is Order.AGE),
    "theme": Case(lambda on: on.app.theme == "day" and "Theme: day" in on.text()),
    "pause-guard": Case(
        lambda on: on.desk.asked("pause guard") == [True] and "is paused" in on.text(),
        snapshot=fakes.guarded(),
    ),
    "palette": Case(lambda on: type(on.app.screen).__name__ == "CommandPalette"),
    "suspend": Case(lambda on: on.suspended),
    "help": Case(lambda on: isinstance(on.app.screen, HelpScreen)),
    "quit": Case(lambda on: on.app._exit and on.app.return_code == Leaving.QUIT),
}


def test_every_command_has_its_case() -> None:
    assert set(CASES) == {command.name for command in COMMANDS}


def ways() -> list[Any]:
    return [
        pytest.param(command, key, id=f"{command.name}-{key}")
        for command in COMMANDS
        for key in chosen_keys(COMMANDS, {})[command.name]
    ]


def first_found(on: Any) -> str:
    """The command that enter would run in the palette."""
    found = on.app.screen.query_one("OptionList")
    if not found.option_count or found.highlighted != 0:
        return ""
    return str(found.get_option_at_index(0).prompt).splitlines()[0].strip()


async def begin(on: Any, case: Case, monkeypatch: pytest.MonkeyPatch) -> None:
    on.suspended = False
    monkeypatch.setattr(on.app, "action_suspend_process", lambda: setattr(on, "suspended", True))
    if case.before:
        await on.press(*case.before)
    await on.until(lambda: case.ready(on))
    await on.pilot.pause()
    assert not case.check(on), "true before the command"


@pytest.mark.parametrize(("command", "key"), ways())
async def test_each_key_does_what_its_command_says(
    stage: StageMaker, command: Command, key: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[command.name]
    async with stage(case.snapshot, can_act=True) as on:
        await begin(on, case, monkeypatch)
        await on.press(key)
        await on.until(lambda: case.check(on))


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
async def test_each_command_is_found_by_the_palette(
    stage: StageMaker, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    case = CASES[command.name]
    async with stage(case.snapshot, can_act=True) as on:
        await begin(on, case, monkeypatch)
        await on.press("ctrl+p")
        await on.sees("Search for commands")
        title = command.name.replace("-", " ").capitalize()
        await on.press(*("space" if char == " " else char for char in title.lower()))
        await on.until(lambda: first_found(on) == title)
        await on.press("enter")
        await on.until(lambda: case.check(on))


async def test_the_palette_offers_only_what_works_here(stage: StageMaker) -> None:
    async with stage(fakes.empty()) as on:
        await on.press(":")
        await on.sees("Start a simulated run")
        assert "Show only the log lines" not in on.text()


async def test_the_help_tells_every_command_and_its_own_keys(stage: StageMaker) -> None:
    async with stage(keys={"zoom": "w"}, size=(160, 80), can_act=True) as on:
        await on.press("?")
        await on.sees("Give the whole screen")
        for command in COMMANDS:
            assert command.sentence in on.text()
        assert next(line for line in on.lines() if "zoom" in line).split()[1] == "w"


@pytest.mark.parametrize("key", ["?", "escape"])
async def test_the_help_closes(stage: StageMaker, key: str) -> None:
    async with stage() as on:
        await on.press("?")
        await on.until(lambda: isinstance(on.app.screen, HelpScreen))
        await on.press(key)
        await on.until(lambda: on.app.screen is on.main)


@pytest.mark.parametrize(
    ("width", "told"),
    [
        (40, "s save  k kill+resume  ? help  q quit"),
        (
            80,
            "s save  k kill+resume  c convert  b roll back  ? help  q quit  x acts  1-6 pane",
        ),
        (
            160,
            "s save now   k kill and resume   c convert   b roll back   ? help   q quit"
            "   x actions   1-6 pane   / filter   z zoom   e last error   f follow   t theme",
        ),
    ],
)
async def test_the_footer_tells_the_four_moves_first_and_what_matters_longest(
    stage: StageMaker, width: int, told: str
) -> None:
    async with stage(size=(width, 24), can_act=True) as on:
        assert on.lines()[-1].strip().startswith(told)


async def test_the_footer_without_a_desk(stage: StageMaker) -> None:
    async with stage(size=(40, 10)) as on:
        assert on.lines()[-1].split() == ["?", "help", "q", "quit", "x", "actions", "1-6", "pane"]


async def test_an_overridden_key_works_and_the_old_one_does_not(stage: StageMaker) -> None:
    async with stage(keys={"zoom": "w", "follow": "z"}) as on:
        assert "w zoom" in on.lines()[-1]
        await on.press("z")
        assert not on.main.zoomed
        await on.press("w")
        assert on.main.zoomed


DANGEROUS = [command for command in COMMANDS if command.dangerous]


@pytest.mark.parametrize("options", [{"read_only": True}, {"can_act": False}], ids=str)
async def test_read_only_or_without_a_desk_nothing_dangerous_is_bound_or_shown(
    stage: StageMaker, options: dict[str, bool]
) -> None:
    async with stage(INTERRUPTED, **{"can_act": True, **options}) as on:
        assert "s save" not in on.lines()[-1]
        for page in ("4", "x"):
            await on.press(page, *(key for command in DANGEROUS for key in command.keys))
            await on.pilot.pause()
        assert "f finish" not in on.lines()[-1]
        assert on.desk.calls == []
        assert isinstance(on.app.screen, ActionsScreen)
        await on.press("?")
        await on.sees("Show what every key does.")
        assert not [command.name for command in DANGEROUS if command.sentence in on.text()]


class TestTheStartPage:
    async def test_comes_when_there_is_nothing_to_watch(self, stage: StageMaker) -> None:
        async with stage(fakes.empty()) as on:
            assert isinstance(on.app.screen, StartScreen)
            assert "No Miles run was found" in on.text()
            assert "d demo" in on.lines()[-1]

    async def test_goes_when_something_is_found(self, stage: StageMaker) -> None:
        async with stage(fakes.empty()) as on:
            await on.show(fakes.running())
            await on.until(lambda: on.app.screen is on.main)
            assert "rollout 61" in on.text()

    async def test_has_no_keys_of_panes(self, stage: StageMaker) -> None:
        async with stage(fakes.empty()) as on:
            await on.press("z", "/", "e", "1", "up", "end")
            assert isinstance(on.app.screen, StartScreen)
            assert not on.main.zoomed


class TestTheList:
    async def test_comes_when_there_are_several_and_goes_with_the_choice(
        self, stage: StageMaker
    ) -> None:
        async with stage(fakes.several()) as on:
            assert isinstance(on.app.screen, ChooseScreen)
            for words in ("2 runs on this machine", "miles-run-b", "running for", "found by"):
                assert words in on.text()
            assert "enter watch it" in on.lines()[-1]
            await on.press("down", "enter")
            await on.until(lambda: on.source.attached is not None)
            assert on.source.attached == fakes.several().choices[1].attachment
            await on.show(fakes.running())
            await on.until(lambda: on.app.screen is on.main)

    async def test_the_selection_stays_with_its_run(self, stage: StageMaker) -> None:
        listed = fakes.several()
        async with stage(listed) as on:
            await on.press("down")
            await on.sees("▶ plain")
            await on.show(replace(listed, choices=tuple(reversed(listed.choices))))
            assert "▶ plain" in on.text()
            await on.press("up", "up")
            assert "▶ plain" in on.text()
            await on.press("end")
            await on.sees("▶ miles-run-b")
            await on.press("home")
            await on.sees("▶ plain")

    async def test_takes_turns_with_the_start_page(self, stage: StageMaker) -> None:
        async with stage(fakes.empty()) as on:
            await on.show(fakes.several())
            await on.until(lambda: isinstance(on.app.screen, ChooseScreen))
            await on.show(fakes.empty())
            await on.until(lambda: isinstance(on.app.screen, StartScreen))
            assert len(on.app.screen_stack) == 2
