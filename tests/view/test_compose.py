"""Rows out of parts: what stays, what goes, what is cut; and the ASCII twins."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rows_read import lines

from tui.model.reading import Absence, Unknown
from tui.model.text import cell_width, harmless
from tui.view import glyphs
from tui.view.compose import Part, drawn, joined, packed, spread, why_not, words, wrapped
from tui.view.glyphs import ascii_twin
from tui.view.rows import Look, Role, Row, Span, plain, row_width


def said(*texts: str) -> tuple[Row, ...]:
    return tuple(words(text) for text in texts)


PARTS = (
    Part(9, said("name"), filler=True),
    Part(0, said("STATE")),
    Part(2, said("phase 0:34 of 0:41", "phase")),
    Part(1, said("rollout 61", "61")),
    Part(3, ()),
)


@pytest.mark.parametrize(
    ("width", "text"),
    [
        (80, "name STATE phase 0:34 of 0:41 rollout 61"),
        (36, "STATE phase 0:34 of 0:41 rollout 61"),
        (34, "name STATE phase rollout 61"),
        (22, "STATE phase rollout 61"),
        (14, "STATE phase 61"),
        (10, "STATE 61"),
        (3, "STATE"),
    ],
)
def test_parts_of_high_rank_go_first_and_come_back_last(width: int, text: str) -> None:
    assert plain(packed(PARTS, width, " ")) == text


@given(
    st.lists(
        st.builds(
            Part,
            st.integers(0, 4),
            st.lists(st.text("ab", min_size=1, max_size=9).map(words), max_size=3).map(tuple),
            st.booleans(),
        ),
        max_size=6,
    ),
    st.integers(0, 40),
)
def test_packed_parts_fit_unless_there_is_but_one(parts: list[Part], width: int) -> None:
    row = packed(parts, width, "  ")
    assert row_width(row) <= width or "  " not in plain(row)


def test_both_ends_of_a_row_or_the_left_one() -> None:
    assert plain(spread(words("left"), words("right"), 12)) == "left   right"
    assert plain(spread(words("left"), words("right"), 10)) == "left"
    assert plain(spread((), words("right"), 7)) == "  right"


def test_empty_rows_leave_no_gap() -> None:
    assert plain(joined((words("a"), (), words("b")), "-")) == "a-b"


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("one two three", 8, ("one two", "three")),
        ("unbreakable", 4, ("unbr", "eaka", "ble")),
        ("回答は四十二", 5, ("回答", "は四", "十二")),
        ("", 5, ()),
        ("x", 0, ()),
    ],
)
def test_wrapping(text: str, width: int, expected: tuple[str, ...]) -> None:
    assert wrapped(text, width) == expected


@given(st.text().map(harmless), st.integers(2, 30))
def test_wrapping_loses_nothing_but_blanks(text: str, width: int) -> None:
    pieces = wrapped(text, width)
    assert "".join("".join(pieces).split()) == "".join(text.split())
    assert all(cell_width(piece) <= width for piece in pieces)


def test_why_there_is_no_value() -> None:
    assert why_not(Unknown(why=Absence.NOT_SUPPORTED)) == "not supported"
    assert why_not(Unknown(why=Absence.ERROR, reason="NVML 999\x1b[31m")) == "NVML 999"


def test_rows_are_cut_to_the_room() -> None:
    rows = (words("abcdef"), words("回答は"), words("c"))
    assert lines(drawn(rows, 4, 2, Look())) == ["abc…", "回…"]
    assert drawn(rows, 4, 0, Look()) == ()


def test_every_sign_has_an_ascii_twin_of_its_own_width() -> None:
    signs = [v for k, v in vars(glyphs).items() if k.isupper() and isinstance(v, str)]
    for sign in "".join(signs):
        twin = ascii_twin(sign)
        assert twin.isascii()
        assert len(twin) == cell_width(sign)
    assert len(set(map(ascii_twin, "●◐○▲✖?"))) == 6
    assert len(set(map(ascii_twin, glyphs.LEVELS))) == 8
    assert len(set(map(ascii_twin, "█▓░┊"))) == 4


def test_what_has_no_twin_keeps_its_width() -> None:
    row: Row = (Span("回 é 71 °C", Role.VALUE),)
    assert lines(drawn((row,), 40, 1, Look(ascii=True))) == ["?? ? 71  C"]
