"""Rows on their way to the screen: boxed, compared, painted."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from tui.app.paint import Paint
from tui.app.panes.difference import changed
from tui.app.panes.frame import box, framed, parted
from tui.app.themes import all_themes
from tui.model.text import cell_width, harmless
from tui.view.rows import Role, Row, Span, plain, row_width

THEMES = all_themes(None)
HOSTILE = (
    "\x1b[31mred\x1b[0m",
    "\x1b]52;c;aGFja2Vk\x07",
    "\x9b2J\x9d0;title\x9c",
    "bell\x07 back\x08 null\x00 del\x7f",
    "\u202eevil\u202c \u2066x\u2069 \u200b",
    "[bold]not markup[/bold] [/] [@click=app.quit]x[/]",
    "two\nlines\rreturn\ttab",
    "\ud800 lone surrogate",
)

texts = st.one_of(st.text(max_size=12), st.sampled_from(("回答", "e\u0301x", "👩", "ab", " ")))
spans = st.builds(Span, texts.map(harmless), st.sampled_from(Role))
rows: st.SearchStrategy[Row] = st.lists(spans, max_size=4).map(tuple)


def cells(row: Row) -> list[tuple[str, Role]]:
    """What each cell shows, written down otherwise than the program does it."""
    shown: list[tuple[str, Role]] = []
    for span in row:
        for char in span.text:
            width = cell_width(char)
            if width == 0 and shown:
                shown[-1] = (shown[-1][0] + char, shown[-1][1])
            shown.extend([(char, span.role)] * width)
    return shown


class TestDifference:
    @given(st.lists(rows, max_size=3), st.lists(rows, max_size=3))
    def test_covers_every_cell_that_differs(self, before: list[Row], after: list[Row]) -> None:
        regions = {region.y: region for region in changed(before, after)}
        for y in range(max(len(before), len(after))):
            old = cells(before[y]) if y < len(before) else []
            new = cells(after[y]) if y < len(after) else []
            for x in range(max(len(old), len(new))):
                was = old[x] if x < len(old) else (" ", Role.TEXT)
                now = new[x] if x < len(new) else (" ", Role.TEXT)
                inside = y in regions and regions[y].x <= x < regions[y].right
                assert inside or was[0] == now[0]

    @given(st.lists(rows, max_size=3))
    def test_of_the_same_rows_is_nothing(self, same: list[Row]) -> None:
        assert list(changed(same, list(same))) == []

    def test_of_one_digit_is_one_cell(self) -> None:
        (region,) = changed([(Span("age 3 s ago"),)], [(Span("age 4 s ago"),)])
        assert tuple(region) == (4, 0, 1, 1)

    def test_sees_that_only_the_role_changed(self) -> None:
        (region,) = changed([(Span("ab"), Span("cd"))], [(Span("ab"), Span("cd", Role.BAD))])
        assert tuple(region) == (2, 0, 2, 1)

    def test_sees_that_only_a_combining_mark_changed(self) -> None:
        (region,) = changed([(Span("xe\u0301"),)], [(Span("xe\u0300"),)])
        assert tuple(region) == (1, 0, 1, 1)


class TestFrame:
    @given(rows, st.integers(4, 60), st.integers(2, 6), st.booleans(), st.booleans())
    def test_every_line_is_as_wide_as_the_pane(
        self, row: Row, width: int, height: int, active: bool, in_ascii: bool
    ) -> None:
        title = parted("Steps · 3 s ago", in_ascii=False)
        out = framed(title, (row,), width, height, box(active=active, in_ascii=in_ascii), "2")
        assert len(out) == height
        assert {row_width(line) for line in out} == {width}

    def test_the_name_stands_left_and_the_rest_right(self) -> None:
        title = parted("Steps · step 60 · 3 s ago", in_ascii=False)
        out = framed(title, (), 40, 2, box(active=False, in_ascii=False), "2")
        assert (
            plain(out[0]) == "┌─ 2 Steps ─────────── step 60 · 3 s ago ─┐"[:7] + plain(out[0])[7:]
        )
        assert plain(out[0]).startswith("┌─ 2 Steps ─")
        assert plain(out[0]).endswith("─ step 60 · 3 s ago ─┐")

    def test_the_rest_gives_way_to_the_name(self) -> None:
        title = parted("Checkpoints · a crash now costs 6 rollouts", in_ascii=False)
        (head, _) = framed(title, (), 22, 2, box(active=False, in_ascii=False), "4")
        assert plain(head) == "┌─ 4 Checkpoints ────┐"

    def test_the_active_pane_is_told_by_shape_too(self) -> None:
        for in_ascii in (False, True):
            quiet, active = (box(active=a, in_ascii=in_ascii) for a in (False, True))
            assert quiet.across != active.across
            assert (quiet.corners + active.corners + quiet.across).isascii() is in_ascii


class TestPaint:
    night = Paint(THEMES.by_name["night"], in_ascii=False)

    @given(rows, st.integers(1, 40))
    def test_a_strip_is_as_wide_as_asked(self, row: Row, width: int) -> None:
        assert self.night.strip(row, width).cell_length == width

    @given(rows)
    def test_text_is_kept_whole_and_in_order(self, row: Row) -> None:
        painted = self.night.strip(row, max(1, row_width(row) + 20)).text
        assert painted.rstrip() == plain(row).rstrip()

    @pytest.mark.parametrize("text", HOSTILE)
    @pytest.mark.parametrize("in_ascii", [False, True])
    def test_nothing_but_printable_text_leaves(self, text: str, in_ascii: bool) -> None:
        paint = Paint(THEMES.by_name["night"], in_ascii=in_ascii)
        painted = paint.strip((Span(text),), 200).text
        assert painted.isprintable()
        assert painted.isascii() or not in_ascii

    @given(st.text())
    def test_no_text_brings_a_control_character(self, text: str) -> None:
        painted = self.night.strip((Span(text),), 500).text
        assert not [c for c in painted if unicodedata.category(c) in ("Cc", "Cf", "Cs", "Zl", "Zp")]

    def test_markup_is_text(self) -> None:
        text = "[/] [bold]x[/bold] [link=y]z[/]"
        assert self.night.strip((Span(text),), 40).text.rstrip() == text

    def test_blanks_do_not_cost_a_change_of_colour(self) -> None:
        row = (Span("a", Role.GOOD), Span("  "), Span("b", Role.GOOD), Span("c", Role.GOOD))
        assert len(list(self.night.strip(row, 5))) == 1

    def test_blanks_that_can_be_seen_keep_their_colour(self) -> None:
        mono = Paint(THEMES.by_name["mono"], in_ascii=False)
        assert len(list(mono.strip((Span("a"), Span("  ", Role.BAD)), 3))) == 2


@pytest.mark.parametrize(
    "text", ["回答は 42", "👍", "e\u0301", "ｆｕｌｌ", "한국어", "naïve", "▲●✖▓░┊"]
)
def test_widths_agree_with_textual(text: str) -> None:
    assert cell_width(text) == cell_len(text)
