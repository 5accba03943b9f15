"""The screen when there are several runs and none was named: which one to watch."""

from __future__ import annotations

from collections.abc import Sequence

from tui.model.launch import ListedRun
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs, runs
from tui.view.compose import Part, drawn, drawn_row, drawn_text, packed, words
from tui.view.numbers import counted, time_of_day
from tui.view.rows import Look, Role, Row, Span

_MARK = 2


def title(snapshot: Snapshot, look: Look) -> str:
    many = counted(len(snapshot.choices), "run")
    looked = time_of_day(snapshot.now, look.utc_offset_s)
    return drawn_text(f"{many} on this machine {glyphs.DOT} looked at {looked}", look)


def rows(snapshot: Snapshot, width: int, height: int, look: Look) -> tuple[Row, ...]:
    """The runs from the top, or from as far down as the selected one needs to be seen whole."""
    handles = [run.handle for run in snapshot.choices]
    selected = handles.index(look.selected_run) if look.selected_run in handles else 0
    head: list[Row] = [words("Which one do you want to watch?", Role.LABEL), ()]
    entries = [
        _entry(run, snapshot.now, width, is_selected=place == selected)
        for place, run in enumerate(snapshot.choices)
    ]
    shown = _from_where_it_fits(entries, selected, height - len(head))
    return drawn([*head, *(row for entry in shown for row in entry)], width, height, look)


def summary(snapshot: Snapshot, width: int, look: Look) -> Row:
    many = counted(len(snapshot.choices), "run")
    return drawn_row(words(f"{many} to choose from", Role.MUTED), width, look)


def _entry(run: ListedRun, now: float, width: int, *, is_selected: bool) -> list[Row]:
    role = Role.SELECTED if is_selected else Role.STRONG
    state = " ".join((run.state, runs.age_words(run, now))).strip()
    written = runs.written_words(run, now)
    parts = (
        Part(0, (words(harmless(run.attachment.name), role),)),
        Part(1, (words(harmless(state), Role.TEXT),)),
        Part(2, (words(written, Role.MUTED),) if written else ()),
    )
    mark = Span(f"{glyphs.SELECTED if is_selected else ' '} ", Role.SELECTED)
    return [(mark, *packed(parts, max(1, width - _MARK))), *runs.found_rows(run, width), ()]


def _from_where_it_fits(
    entries: Sequence[list[Row]], selected: int, height: int
) -> Sequence[list[Row]]:
    first = 0
    while first < selected and sum(map(len, entries[first : selected + 1])) > height:
        first += 1
    return entries[first:]
