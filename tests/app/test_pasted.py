"""A paste however it is cut: its escapes go, all else stays."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.app.pasted import BEGIN, END, PasteGuard

PIECES = st.sampled_from(("a", "?", "\x1b", "[", "\x1b[A", "\x1b[31m", "\x1b]52;c;x\x07", "201~"))
INSIDE = st.lists(PIECES, max_size=8).map("".join).filter(lambda text: END not in text)


def fed(*pieces: str) -> str:
    guard = PasteGuard()
    return "".join(map(guard.feed, pieces))


@given(inside=INSIDE, cuts=st.lists(st.integers(0, 60), max_size=6))
def test_escapes_leave_a_paste_and_nothing_else_does(inside: str, cuts: list[int]) -> None:
    text = f"{inside.rstrip(chr(27))}{END}\x1b[Bq"
    places = sorted({min(cut, len(text)) for cut in cuts})
    pieces = [text[a:b] for a, b in zip([0, *places], [*places, len(text)], strict=True)]
    plain = inside.rstrip("\x1b").replace("\x1b", "")
    assert fed(f"\x1b[A{BEGIN}", *pieces) == f"\x1b[A{BEGIN}{plain}{END}\x1b[Bq"


def test_what_is_typed_passes_at_once() -> None:
    assert fed("\x1b") == "\x1b"
    assert fed("q", "\x1b[", "A") == "q\x1b[A"


def test_two_pastes() -> None:
    assert fed(f"{BEGIN}a\x1b{END}\x1b[A{BEGIN}\x1bb{END}") == f"{BEGIN}a{END}\x1b[A{BEGIN}b{END}"
