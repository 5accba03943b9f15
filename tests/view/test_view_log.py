"""The log pane: columns, filter, scroll, repeats, wide characters."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from fake_box import NOW
from fake_run import lines as log_lines
from rows_read import line_with, lines, roles_of, text

from tui.model.progress import LineKind, LogLine
from tui.model.reading import Absence, Unknown
from tui.model.snapshot import LogStatus, Snapshot
from tui.model.text import cell_width
from tui.view import log
from tui.view.rows import Look, Role, plain

LOOK = Look()


def made(count: int) -> tuple[LogLine, ...]:
    return tuple(
        LogLine(at=NOW + i, source="trainer", text=f"line {i}", kind=LineKind.PLAIN)
        for i in range(count)
    )


@pytest.mark.parametrize("width", [80, 120, 200])
def test_time_source_and_text_stand_in_columns(width: int) -> None:
    told = lines(log.rows(log_lines(), width, 20, LOOK))
    assert told[4] == "14:01:37  trainer      Timer actor_train start"
    assert all(
        line[10:23].rstrip() in text(log.rows(log_lines(), width, 20, LOOK)) for line in told
    )
    assert {line[8:10] for line in told} == {"  "}
    assert {line[21:23] for line in told} == {"  "}


def test_narrow_logs_lose_the_source_then_the_time() -> None:
    assert lines(log.rows(log_lines(), 40, 20, LOOK))[4] == "14:01:37 Timer actor_train start"
    assert lines(log.rows(log_lines(), 24, 20, LOOK))[4] == "Timer actor_train start"


def test_times_are_local() -> None:
    told = log.rows(log_lines(), 80, 20, Look(utc_offset_s=3600))
    assert lines(told)[4].startswith("15:01:37")


def test_repeats_are_counted_even_where_the_text_is_cut() -> None:
    assert line_with(log.rows(log_lines(), 80, 20, LOOK), "Decode").endswith("  ×32")
    long = LogLine(at=NOW, source="x", text="word " * 60, repeated=4)
    (row,) = log.rows((long,), 60, 1, LOOK)
    assert plain(row).endswith("…  ×5")


def test_wide_characters_are_measured_in_cells() -> None:
    wide = LogLine(at=NOW, source="回答", text="四" * 60)
    (row,) = log.rows((wide,), 61, 1, LOOK)
    assert cell_width(plain(row)) in (60, 61)
    assert plain(row).endswith("…")


def test_the_newest_lines_are_at_the_foot() -> None:
    assert lines(log.rows(made(50), 80, 3, LOOK))[-1].endswith("line 49")
    assert lines(log.rows(made(50), 80, 3, LOOK, scroll=10))[-1].endswith("line 39")


def test_scrolling_past_the_oldest_line_stops_there() -> None:
    told = lines(log.rows(made(50), 80, 3, LOOK, scroll=1000))
    assert [line.split()[-1] for line in told] == ["0", "1", "2"]
    assert len(log.rows(made(2), 80, 5, LOOK, scroll=9)) == 2


@pytest.mark.parametrize(
    ("query", "count"),
    [
        ("", 8),
        ("  ", 8),
        ("TIMER", 2),
        ("actor_train", 2),
        ("engine 4242", 1),
        ("kind:phase", 2),
        ("kind:phase kind:warning", 3),
        ("kind:phase log_probs", 1),
        ("KIND:WARNING", 1),
        ("kind:nonsense", 0),
        ("no such text", 0),
    ],
)
def test_a_filter_is_a_text_in_any_case_or_a_kind(query: str, count: int) -> None:
    assert len(log.matching(log_lines(), query)) == count


def test_a_filter_that_finds_nothing_says_so() -> None:
    assert lines(log.rows(log_lines(), 80, 5, LOOK, query="zzz")) == ["no line matches the filter"]
    assert lines(log.rows((), 80, 5, LOOK)) == ["no line yet"]


def test_a_text_is_never_markup_nor_an_escape() -> None:
    hostile = LogLine(at=NOW, source="\x1b[31mt", text="[bold]x[/] \x1b[2J\u202e")
    told = text(log.rows((hostile,), 80, 1, LOOK))
    assert told.endswith("[bold]x[/] <202E>")


def test_errors_and_warnings_have_roles_of_their_own() -> None:
    bad = LogLine(at=NOW, source="t", text="boom", kind=LineKind.ERROR)
    assert roles_of(log.rows((bad,), 80, 1, LOOK), "boom") == {Role.BAD}
    told = log.rows(log_lines(), 80, 20, LOOK)
    assert roles_of(told, "WARNING") == {Role.WARNING}


def test_the_way_to_the_last_error() -> None:
    lines_ = made(10)
    bad = replace(lines_[4], kind=LineKind.ERROR, text="boom")
    mild = replace(lines_[7], kind=LineKind.WARNING)
    marked = (*lines_[:4], bad, *lines_[5:7], mild, *lines_[8:])
    assert log.scroll_to_error(marked) == 5
    assert lines(log.rows(marked, 80, 3, LOOK, scroll=5))[-1].endswith("boom")
    assert log.scroll_to_error((*lines_[:7], mild, *lines_[8:])) == 2
    assert log.scroll_to_error(lines_) is None
    assert log.scroll_to_error(marked, "boom") == 0


def test_the_title_says_path_size_and_what_it_does() -> None:
    assert log.title(fakes.running(), LOOK) == "Log · runs/plain.log · 412 MiB · following"
    told = log.title(fakes.running(), LOOK, scroll=1200, query="kind:error")
    assert told == "Log · runs/plain.log · 412 MiB · 1 200 lines up · filter: kind:error"
    assert log.title(Snapshot(), LOOK) == "Log"


def test_the_title_tells_of_history_silence_and_faults() -> None:
    half = LogStatus(path="a.log", size_bytes=10**10, written_at=NOW - 300, history_ratio=0.42)
    told = log.title(fakes.running(log=half), LOOK)
    assert told == "Log · a.log · 9.3 GiB · history 42 % read · written 5 min ago · following"
    gone = LogStatus(path="a.log", fault=Unknown(why=Absence.MISSING, reason="no such file"))
    assert "no such file" in log.title(fakes.running(log=gone), LOOK)
    assert plain(log.summary(fakes.running(log=gone), 79, LOOK)) == "Log     ? no such file"


def test_the_newest_line_in_a_line() -> None:
    told = plain(log.summary(fakes.running(), 79, LOOK))
    assert told == "Log     3 s ago  actor_train:  84%| 27/32 [00:34<00:07]"
    assert plain(log.summary(Snapshot(), 79, LOOK)) == "Log     no line yet"


def test_a_line_without_a_time_keeps_its_column() -> None:
    told = text(log.rows((LogLine(at=0.0, source="t", text="x"),), 80, 1, LOOK))
    assert told == "          t  x"


def test_no_room_no_rows() -> None:
    assert log.rows(log_lines(), 80, 0, LOOK) == ()


def test_a_log_that_cannot_be_looked_at_is_told_in_the_title() -> None:
    silence = Unknown(why=Absence.TIMED_OUT, reason="no answer for 14 s", at=NOW)
    snapshot = replace(fakes.running(), missed={"log": silence})
    assert "no answer for 14 s" in log.title(snapshot, LOOK)
