"""The main screen: at every size, under every text, and no more of it repainted than changed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_box
import fake_run
import fakes
import pytest
from textual.events import MouseScrollUp
from textual.geometry import Region

from tui.app.panes.canvas import Canvas
from tui.model.progress import LineKind, LogLine
from tui.model.reading import known
from tui.model.snapshot import Snapshot
from tui.model.text import cell_width, harmless
from tui.view.layout import Pane

StageMaker = Callable[..., Any]
SIZES = ((160, 50), (120, 36), (100, 30), (80, 24), (60, 15), (40, 10), (20, 5))
STATES = dict(fakes.all_snapshots())


def with_lines(*texts: str, kind: LineKind = LineKind.PLAIN) -> Snapshot:
    lines = tuple(
        LogLine(at=fake_box.NOW - len(texts) + i, source="rollout", text=harmless(text), kind=kind)
        for i, text in enumerate(texts)
    )
    return replace(fakes.running(), lines=lines)


def numbered(count: int, *, first: int = 0) -> tuple[LogLine, ...]:
    return tuple(
        LogLine(at=fake_box.NOW - 1000 + n, source="trainer", text=f"line {n};")
        for n in range(first, first + count)
    )


class TestSizes:
    @pytest.mark.parametrize("size", SIZES, ids=str)
    @pytest.mark.parametrize("in_ascii", [False, True], ids=["unicode", "ascii"])
    async def test_the_run_its_state_and_a_key_are_always_there(
        self, stage: StageMaker, size: tuple[int, int], in_ascii: bool
    ) -> None:
        async with stage(size=size, ascii=in_ascii) as on:
            assert "RUNNING" in on.lines()[0]
            assert "? help" in on.lines()[-1]
            assert {cell_width(line) for line in on.lines()} == {size[0]}
            assert on.text().isascii() or not in_ascii

    async def test_all_panes_are_open_where_there_is_room(self, stage: StageMaker) -> None:
        async with stage(size=(160, 50)) as on:
            for title in ("1 GPU", "2 Steps", "3 Engines", "4 Checkpoints", "5 Alerts", "6 Log"):
                assert title in on.text()

    async def test_at_80_by_24_the_four_answers_stand(self, stage: StageMaker) -> None:
        async with stage(size=(80, 24)) as on:
            text = on.text()
            assert "actor_train 0:34 of ~0:41" in on.lines()[0]
            assert "96 %" in text
            assert "paused" in text
            assert "60 whole" in text
            assert "2 Steps" in text

    async def test_at_80_by_24_the_rest_is_a_key_away(self, stage: StageMaker) -> None:
        async with stage(size=(80, 24)) as on:
            for key, title in zip(
                "134562", ("GPU", "Engines", "Checkp", "Alerts", "Log", "Steps"), strict=True
            ):
                await on.press(key)
                await on.sees(f"{key} {title}")

    async def test_at_40_by_10_a_pane_takes_the_screen_and_escape_gives_it_back(
        self, stage: StageMaker
    ) -> None:
        async with stage(size=(40, 10)) as on:
            await on.press("6")
            await on.sees("6 Log")
            await on.press("escape")
            await on.until(lambda: "6 Log" not in on.text())

    async def test_a_resize_storm_ends_in_the_picture_of_the_last_size(
        self, stage: StageMaker
    ) -> None:
        async with stage(size=(160, 50)) as on:
            wanted = on.lines()
            for step in range(60):
                await on.pilot.resize_terminal(20 + (step * 37) % 150, 5 + (step * 11) % 50)
            await on.pilot.resize_terminal(160, 50)
            await on.until(lambda: on.lines() == wanted)

    @pytest.mark.parametrize("name", STATES)
    @pytest.mark.parametrize("size", [(160, 50), (80, 24)], ids=str)
    async def test_every_state_can_be_shown(
        self, stage: StageMaker, name: str, size: tuple[int, int]
    ) -> None:
        async with stage(size=size) as on:
            await on.show(STATES[name])
            await on.until(lambda: {cell_width(line) for line in on.lines()} == {size[0]})


class TestRepainting:
    @staticmethod
    def watched(monkeypatch: pytest.MonkeyPatch) -> list[Region | None]:
        """Every region repainted from now on; None stands for a whole canvas."""
        seen: list[Region | None] = []
        refresh = Canvas.refresh

        def spy(self: Canvas, *regions: Region, **options: Any) -> Canvas:
            seen.extend(regions or (None,))
            return refresh(self, *regions, **options)

        monkeypatch.setattr(Canvas, "refresh", spy)
        return seen

    async def test_the_same_snapshot_repaints_nothing(
        self, stage: StageMaker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with stage() as on:
            seen = self.watched(monkeypatch)
            await on.show(fakes.running())
            assert seen == []

    async def test_a_second_repaints_only_the_cells_that_tell_time(
        self, stage: StageMaker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with stage() as on:
            before = on.lines()
            seen = self.watched(monkeypatch)
            await on.show(replace(fakes.running(), now=fake_box.NOW + 1))
            lines = [y for y, (a, b) in enumerate(zip(before, on.lines(), strict=True)) if a != b]
            assert None not in seen
            cells = sum(region.area for region in seen if region)
            assert lines
            assert cells <= 20 * len(lines)

    async def test_a_changed_number_repaints_one_line(
        self, stage: StageMaker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with stage() as on:
            seen = self.watched(monkeypatch)
            warmer = fake_box.report(fake_box.gpu(temperature_c=known(72.0, fake_box.NOW)))
            await on.show(replace(fakes.running(), gpus=known(warmer, fake_box.NOW)))
            assert [region and region.area for region in seen] == [1]

    async def test_a_newer_snapshot_takes_the_place_of_one_that_waits(
        self, stage: StageMaker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        async with stage() as on:
            shown: list[float] = []
            show = on.app._show_everywhere

            def spy() -> None:
                shown.append(on.app._newest.now)
                show()

            monkeypatch.setattr(on.app, "_show_everywhere", spy)
            for second in range(1, 1001):
                on.source.publish(replace(fakes.running(), now=fake_box.NOW + second))
            await on.until(lambda: shown and shown[-1] == fake_box.NOW + 1000)
            assert len(shown) < 10


class TestTextFromOutside:
    async def test_markup_in_the_log_is_text(self, stage: StageMaker, data: Path) -> None:
        raw = (data / "cases" / "o27.log").read_text().splitlines()
        shown = (line.partition("text_preview=")[2] for line in raw)
        async with stage(with_lines(*shown)) as on:
            await on.press("6", "z")
            await on.sees("[/\\s] and {provider}/{type}[/{nestedType}...]/read")
            assert "[bold]done[/bold] [link=x]y[/] list[int] a[b]" in on.text()
            assert "[on click]x[/on], label=[/]" in on.text()

    async def test_a_filter_may_hold_markup(self, stage: StageMaker) -> None:
        async with stage(with_lines("a [/] b", "c")) as on:
            await on.press("/", "left_square_bracket", "slash", "right_square_bracket", "enter")
            await on.sees("filter: [/]")
            assert "a [/] b" in on.text()
            assert "rollout  c" not in on.text()

    async def test_names_and_paths_may_hold_markup(self, stage: StageMaker) -> None:
        hostile = "[/x] [bold]\x1b[31m\x07"
        attachment = fake_run.attachment(name=hostile)
        log = replace(fakes.running().log, path=hostile)
        async with stage(replace(fakes.running(), attachment=attachment, log=log)) as on:
            assert "[/x] [bold]" in on.lines()[0]
            assert "\x1b" not in on.text()
            assert "\x07" not in on.text()

    async def test_a_bad_user_theme_is_told_once_and_as_text(
        self, stage: StageMaker, tmp_path: Path
    ) -> None:
        (tmp_path / "[bold]x[].toml").write_text('name = "[/]"\n')
        async with stage(theme_folder=tmp_path) as on:
            await on.sees("Themes not loaded")
            await on.sees("[bold]x[].toml: the table")

    async def test_a_user_theme_may_be_named_in_markup(
        self, stage: StageMaker, tmp_path: Path
    ) -> None:
        night = (Path(__file__).parents[2] / "themes" / "night.toml").read_text()
        (tmp_path / "x.toml").write_text(night.replace('name = "night"', 'name = "[/b] x"'))
        async with stage(theme_folder=tmp_path, theme="mono") as on:
            await on.press("t")
            await on.sees("Theme: [/b] x")


class TestLogPane:
    async def test_scrolling_up_stops_and_new_lines_are_counted(self, stage: StageMaker) -> None:
        old = replace(fakes.running(), lines=numbered(100))
        async with stage(old) as on:
            await on.press("6", "up", "up")
            await on.sees("2 lines up")
            top = on.lines()
            await on.show(replace(old, lines=(*old.lines, *numbered(5, first=100))))
            await on.sees("7 lines up")
            assert "line 97;" in on.text()
            assert "line 98;" not in on.text()
            assert sum(a != b for a, b in zip(top, on.lines(), strict=True)) == 1

    async def test_the_place_is_kept_when_old_lines_are_dropped(self, stage: StageMaker) -> None:
        old = replace(fakes.running(), lines=numbered(100))
        async with stage(old) as on:
            await on.press("6", *["up"] * 30)
            await on.sees("30 lines up")
            await on.show(replace(old, lines=(*old.lines[40:], *numbered(40, first=100))))
            await on.sees("70 lines up")
            assert "line 69;" in on.text()

    async def test_follow_and_end_go_to_the_newest(self, stage: StageMaker) -> None:
        for key in ("f", "end"):
            async with stage(replace(fakes.running(), lines=numbered(100))) as on:
                await on.press("6", "home")
                await on.sees("line 0;")
                await on.press(key)
                await on.sees("line 99;")

    async def test_the_filter_narrows_as_it_is_typed_and_escape_drops_it(
        self, stage: StageMaker
    ) -> None:
        async with stage(replace(fakes.running(), lines=numbered(100))) as on:
            await on.press("/", "7", "7")
            await on.sees("filter: 77")
            assert "line 77;" in on.text()
            assert "line 78;" not in on.text()
            await on.press("escape")
            await on.sees("line 99;")
            assert not on.main.filter_line.display

    async def test_keys_are_letters_again_after_enter(self, stage: StageMaker) -> None:
        async with stage(replace(fakes.running(), lines=numbered(100))) as on:
            await on.press("/", "l", "enter", "z")
            await on.until(lambda: on.main.zoomed)
            assert on.main.log_pane.filter_text == "l"
            await on.press(":")
            await on.sees("Search for commands")
            await on.press("escape")
            await on.until(lambda: on.app.screen is on.main)
            await on.press("z")
            await on.until(lambda: not on.main.zoomed)

    async def test_quitting_while_typing_a_filter_needs_no_letter(self, stage: StageMaker) -> None:
        async with stage() as on:
            await on.press("/", "q", "ctrl+c")
            assert on.app._exit

    async def test_no_error_is_said(self, stage: StageMaker) -> None:
        async with stage(replace(fakes.running(), lines=numbered(5))) as on:
            await on.press("e")
            await on.sees("No error or warning")


class TestCheckpointsPane:
    async def test_the_selection_moves_and_stops_at_the_ends(self, stage: StageMaker) -> None:
        async with stage() as on:
            pane = on.main.panes[Pane.CHECKPOINTS]
            await on.press("4")
            seen = []
            for key in ("down", "down", "down", "down", "up", "home", "end"):
                await on.press(key)
                seen.append(pane.selected)
            assert seen == [60, 40, 20, 20, 40, 60, 20]

    async def test_the_selection_stays_when_a_newer_one_comes(self, stage: StageMaker) -> None:
        async with stage() as on:
            await on.press("4", "down", "down")
            tree = fake_run.tree(
                fake_run.checkpoint(80, tracked=True),
                fake_run.checkpoint(60),
                fake_run.checkpoint(40),
            )
            await on.show(replace(fakes.running(), checkpoints=known(tree, fake_box.NOW)))
            assert on.main.panes[Pane.CHECKPOINTS].selected == 40
            row = next(line for line in on.lines() if "rollout 39" in line)
            assert "▶" in row


class TestMouse:
    async def test_a_click_makes_a_pane_the_active_one(self, stage: StageMaker) -> None:
        async with stage() as on:
            await on.pilot.click("#engines")
            await on.until(lambda: on.main.active is Pane.ENGINES)

    async def test_a_click_on_a_line_opens_its_pane(self, stage: StageMaker) -> None:
        async with stage(size=(80, 24)) as on:
            await on.pilot.click("#alerts")
            await on.sees("5 Alerts")

    async def test_the_wheel_scrolls_what_is_under_it(self, stage: StageMaker) -> None:
        async with stage(replace(fakes.running(), lines=numbered(100))) as on:
            await on.pilot._post_mouse_events([MouseScrollUp], "#log", button=0)
            await on.sees("3 lines up")


class TestThemes:
    async def test_the_suited_one_is_chosen(
        self, stage: StageMaker, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        for term, no_color, theme in (
            ("xterm-256color", None, "night"),
            ("linux", None, "sixteen"),
            ("xterm-256color", "1", "mono"),
        ):
            monkeypatch.setenv("TERM", term)
            if no_color:
                monkeypatch.setenv("NO_COLOR", no_color)
            async with stage() as on:
                assert on.app.theme == theme

    async def test_every_one_paints_the_same_text(self, stage: StageMaker) -> None:
        async with stage() as on:
            wanted = [line[:90] for line in on.lines()]
            for _ in range(6):
                await on.press("t")
                await on.pilot.pause()
                assert [line[:90] for line in on.lines()] == wanted

    async def test_changing_it_repaints_everything_in_it(self, stage: StageMaker) -> None:
        async with stage() as on:
            await on.press("t")
            await on.until(lambda: on.app.theme == "day")
            strip = on.main.header.render_line(0)
            assert {segment.style.bgcolor.name for segment in strip if segment.style} == {"#eeeeee"}
