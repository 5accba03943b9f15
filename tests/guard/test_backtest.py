"""The alarms over a log that is past: which came, how late, which were false."""

from __future__ import annotations

from pathlib import Path

import pytest
from logs import step, trainer

from tui.errors import NothingFoundError
from tui.guard.backtest import Backtest, backtest, by_code
from tui.model.snapshot import Limits

LIMITS = Limits(stall_floor_s=120.0)


def rounds(start: int, count: int, first: int = 0) -> list[str]:
    """A rollout each minute from that minute on."""
    lines = []
    for number in range(count):
        minute = start + number
        clock = f"{minute // 60:02d}:{minute % 60:02d}"
        lines += [
            trainer(f"{clock}:00", "Timer actor_train start"),
            trainer(f"{clock}:30", "Timer actor_train end (elapsed: 30.0s)"),
            step(f"{clock}:31", first + number),
        ]
    return lines


def replayed(tmp_path: Path, lines: list[str]) -> Backtest:
    log = tmp_path / "plain.log"
    log.write_text("\n".join(lines) + "\n")
    return backtest([log], LIMITS)


def test_a_run_that_never_paused_raises_no_alarm(tmp_path: Path) -> None:
    result = replayed(tmp_path, rounds(600, 30))
    assert by_code(result.alarms).get("stalled", ()) == ()
    assert result.seconds == pytest.approx(29 * 60 + 31, abs=10)


def test_a_silence_that_ended_by_itself_is_a_false_alarm(tmp_path: Path) -> None:
    result = replayed(tmp_path, [*rounds(600, 20), *rounds(640, 5, first=20)])
    (alarm,) = by_code(result.alarms)["stalled"]
    assert alarm.went_away
    assert alarm.after_s is not None
    assert 120 < alarm.after_s < 700


def test_a_silence_that_only_another_start_ended_was_a_stall(tmp_path: Path) -> None:
    again = "2026-11-29 10:40:00,000\tSUCC cli.py:65 -- Job 'raysubmit_2' submitted successfully"
    lines = [*rounds(600, 20), again, *rounds(641, 5)]
    (alarm,) = by_code(replayed(tmp_path, lines).alarms)["stalled"]
    assert not alarm.went_away


def test_logs_are_judged_each_on_its_own(tmp_path: Path) -> None:
    logs = []
    for name in ("one.log", "two.log"):
        (tmp_path / name).write_text("\n".join(rounds(600, 5)) + "\n")
        logs.append(tmp_path / name)
    shares: list[float] = []
    result = backtest(logs, LIMITS, shares.append)
    assert result.attempts == 2
    assert all(0.0 <= share <= 1.0 for share in shares)


def test_a_log_that_is_not_there_is_said(tmp_path: Path) -> None:
    with pytest.raises(NothingFoundError):
        backtest([tmp_path / "none.log"], LIMITS)
