"""Remarks and entries share one file; each reader passes over what is not its own."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model.action import ActionKind
from tui.model.journal import Entry, Mark, Remark, entry_of, entry_text, remark_of, remark_text
from tui.model.snapshot import Level
from tui.runs.journal import Journal

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
REMARKS = st.builds(
    Remark,
    at=st.floats(0.0, 2e9),
    code=TEXT,
    news=TEXT,
    level=st.sampled_from(list(Level)),
    line=TEXT,
    subject=TEXT,
    evidence=st.lists(TEXT).map(tuple),
    facts=st.dictionaries(TEXT, TEXT),
)
REMARK = Remark(at=1.0, code="stalled", news="began", level=Level.CRITICAL, line="no progress")
ENTRY = Entry(at=2.0, action="resume-1", kind=ActionKind.RESUME, mark=Mark.STARTED)


@given(REMARKS)
def test_a_remark_is_read_back_and_is_one_line(remark: Remark) -> None:
    text = remark_text(remark)

    assert remark_of(text) == remark
    assert "\n" not in text
    assert entry_of(text) is None


def test_an_entry_is_no_remark() -> None:
    assert remark_of(entry_text(ENTRY)) is None


@pytest.mark.parametrize(
    "line",
    ["", "{", "[]", "3", '{"v": 1}', '{"v": 2, "remark": {}}', '{"v": 1, "remark": 3}'],
)
def test_a_line_that_is_none_is_passed_over(line: str) -> None:
    assert remark_of(line) is None
    assert entry_of(line) is None


def test_a_torn_line_and_odd_separators_cost_nothing_else(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    odd = Remark(at=3.0, code="x", news="said", level=Level.INFO, line="a\u2028b\x85c\x0bd")
    journal.remark(REMARK)
    with (tmp_path / "journal.jsonl").open("a") as file:
        file.write(remark_text(REMARK)[:40])
    journal.write(ENTRY)
    journal.remark(odd)

    assert list(journal.remarks()) == [REMARK, odd]
    assert list(journal.entries()) == [ENTRY]
    assert json.loads(remark_text(REMARK))["v"] == 1
