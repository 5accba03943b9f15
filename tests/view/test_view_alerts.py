"""The alerts pane: most urgent first, advice at the top one, the cleared ones quiet."""

from __future__ import annotations

import fakes
import pytest
from fake_box import HOUR, MIN, NOW
from fake_run import alert, cleared_record, record, verdict
from rows_read import lines, roles_of, text

from tui.model.snapshot import AlertRecord, Level, Snapshot
from tui.view import alerts
from tui.view.rows import Look, Role, Row, plain

LOOK = Look()


def rows(snapshot: Snapshot, width: int = 100, height: int = 12) -> tuple[Row, ...]:
    return alerts.rows(snapshot, width, height, LOOK)


def holding(*records: AlertRecord) -> Snapshot:
    return fakes.running(alert_log=records)


def test_an_alert_has_its_sign_line_age_and_advice() -> None:
    told = lines(rows(fakes.degraded(), 160))
    assert told[0].startswith("▲ checkpoint-partial    iter 20 cannot be resumed from")
    assert told[0].endswith("1 h 00 ago")
    assert told[1].startswith("  → Nothing to do; iter 20 can be moved aside")
    assert told[2].startswith("  engine-busy           engine 0 answered slowly")
    assert told[2].endswith("×3 cleared 2 h 59 ago")


@pytest.mark.parametrize("width", [40, 80])
def test_long_lines_wrap_under_themselves(width: int) -> None:
    told = lines(rows(holding(record()), width))
    assert told[0].startswith("▲ iter 20")
    assert told[0].endswith("1 h 00 ago")
    assert all(line.startswith("  ") for line in told[1:])
    assert "A resume loads 60, which is whole." in " ".join(" ".join(told).split()).replace(
        " 1 h 00 ago", ""
    )


def test_critical_comes_first_then_the_newest() -> None:
    old = record(alert(code="a", line="old warning"), since=NOW - HOUR)
    new = record(alert(code="b", line="new warning"), since=NOW - MIN)
    grave = record(alert(code="c", line="grave", level=Level.CRITICAL), since=NOW - 9 * HOUR)
    note = record(alert(code="d", line="a note", level=Level.INFO), since=NOW)
    told = text(rows(holding(note, old, new, grave)))
    places = [told.index(line) for line in ("grave", "new warning", "old warning", "a note")]
    assert places == sorted(places)


def test_only_the_top_one_gives_advice() -> None:
    two = holding(
        record(alert(code="a", level=Level.CRITICAL, line="grave", advice="stop it")),
        record(alert(code="b", advice="leave it")),
    )
    assert "→ stop it" in text(rows(two))
    assert "leave it" not in text(rows(two))


def test_cleared_alerts_are_quiet() -> None:
    told = rows(holding(cleared_record()))
    assert roles_of(told, "engine 0 answered slowly") == {Role.MUTED}
    assert alerts.title(holding(cleared_record()), LOOK) == "Alerts · none now · 1 cleared"


def test_red_is_kept_for_what_needs_action_now() -> None:
    assert roles_of(rows(fakes.degraded()), "▲") == {Role.WARNING}
    assert roles_of(rows(fakes.stalled()), "✖") == {Role.BAD}


def test_an_alert_not_yet_on_record_is_shown_too() -> None:
    fresh = fakes.running(verdict=verdict(alerts=(alert(),)))
    assert "iter 20 cannot be resumed" in text(rows(fresh))
    assert alerts.title(fresh, LOOK) == "Alerts · 1 now"
    assert len(alerts.active(fakes.degraded())) == 1


def test_nothing_to_report() -> None:
    assert lines(rows(fakes.running())) == ["nothing to report"]
    assert alerts.title(fakes.running(), LOOK) == "Alerts · none now"
    assert plain(alerts.summary(fakes.running(), 79, LOOK)) == "Alerts  none"


@pytest.mark.parametrize("width", [40, 79])
def test_the_answer_in_a_line(width: int) -> None:
    told = plain(alerts.summary(fakes.stalled(), width, LOOK))
    assert told.startswith("Alerts  ✖ 1  stalled in actor_train")


def test_an_alert_may_hold_anything() -> None:
    hostile = alert(line="\x1b[2J\u202eevil\n[red]x", advice="\x07do", evidence=("\x1b]0;t\x07",))
    told = text(rows(holding(record(hostile))))
    assert "<202E>evil [red]x" in told
    assert "→ ␇do" in told
