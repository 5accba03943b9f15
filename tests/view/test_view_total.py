"""No view fails, leaves its room, or lets anything but text through: for any snapshot at all."""

from __future__ import annotations

from collections.abc import Iterator
from types import ModuleType

import pytest
from anything import anything
from fakes import all_snapshots, running
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import (
    action,
    alerts,
    checkpoints,
    choose,
    detail,
    engines,
    footer,
    gpu,
    header,
    log,
    report,
    runs,
    start,
    steps,
)
from tui.view.rows import Look, Order, Row, plain, row_width

PANES = (gpu, steps, engines, checkpoints, alerts, start, choose)
WIDTHS = st.integers(1, 250)
HEIGHTS = st.integers(0, 60)
LOOKS = st.builds(
    Look,
    ascii=st.booleans(),
    selected_iteration=st.none() | st.integers(0, 80),
    selected_run=st.none() | st.just("4100"),
    order=st.sampled_from(Order),
    utc_offset_s=st.integers(-50_400, 50_400),
)


def everything(
    snapshot: Snapshot, width: int, height: int, look: Look
) -> Iterator[tuple[str, tuple[Row, ...], int]]:
    """Each thing drawn: its name, its rows, and how many there may be."""
    for module in PANES:
        name = module.__name__
        yield name, module.rows(snapshot, width, height, look), height
        yield f"{name} summary", (module.summary(snapshot, width, look),), 1
    yield "detail", detail.rows(snapshot, width, height, look), height
    yield "header", header.rows(snapshot, width, height, look), height
    yield "action", action.rows(snapshot, width, height, look), height
    yield "log", log.rows(snapshot.lines, width, height, look, query="e", scroll=1), height
    yield "log summary", (log.summary(snapshot, width, look),), 1
    seen = [(run, snapshot) for run in snapshot.choices]
    yield "runs", runs.rows(seen, snapshot.attachment.notes, width, look), 10_000
    yield "report", report.rows(snapshot, width, look), 10_000
    hints = (footer.Hint(key="q", label="quit"), footer.Hint(key="?", label="help"))
    yield "footer", (footer.row(hints, width, look, cpu_ratio=0.01),), 1


def check(snapshot: Snapshot, width: int, height: int, look: Look) -> None:
    for name, rows, most in everything(snapshot, width, height, look):
        assert len(rows) <= most, name
        for row in rows:
            text = plain(row)
            assert row_width(row) <= width, (name, text)
            assert harmless(text) == text, (name, text)
            assert text.isascii() or not look.ascii, (name, text)
    for module in (*PANES, log):
        title = module.title(snapshot, look)
        assert harmless(title) == title
        assert title.isascii() or not look.ascii


@settings(
    max_examples=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
@given(snapshot=anything(Snapshot), width=WIDTHS, height=HEIGHTS, look=LOOKS)
def test_any_snapshot_has_rows_that_fit(
    snapshot: Snapshot, width: int, height: int, look: Look
) -> None:
    check(snapshot, width, height, look)


@settings(max_examples=150, deadline=None)
@given(named=st.sampled_from(list(all_snapshots())), width=WIDTHS, height=HEIGHTS, look=LOOKS)
def test_the_usual_snapshots_fit_any_terminal(
    named: tuple[str, Snapshot], width: int, height: int, look: Look
) -> None:
    check(named[1], width, height, look)


def test_a_snapshot_of_nothing_says_that_it_knows_nothing() -> None:
    told = " ".join(
        plain(row) for _, rows, _ in everything(Snapshot(), 100, 20, Look()) for row in rows
    )
    assert "not asked yet" in told
    assert "no rollout seen yet" in told
    assert " 0 %" not in told


@pytest.mark.parametrize("module", [*PANES, log], ids=lambda module: module.__name__)
def test_titles_begin_with_the_name_of_the_pane(module: ModuleType) -> None:
    name = module.__name__.rpartition(".")[2]
    first = module.title(running(), Look()).split(" · ")[0].lower()
    others = {"start": "no run found", "choose": "0 runs on this machine"}
    assert first == others.get(name, name)
