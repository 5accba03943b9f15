"""`explain` on the captures and on times of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from tui.errors import NothingFoundError, UsageError
from tui.explain import explained, moment_of
from tui.model.checkpoint import CheckpointState
from tui.model.reading import Known
from tui.model.snapshot import Resume, RunState

END = 1_795_953_768.0


@pytest.mark.parametrize(
    ("name", "state", "outcome", "first"),
    [
        ("fresh", RunState.FINISHED, Resume.FRESH, 0),
        ("resume", RunState.FINISHED, Resume.RESUMED, 4),
        ("sentinel", RunState.FINISHED, Resume.RESUMED, 6),
        ("actordied", RunState.FAILED, Resume.RESUMED, 12),
    ],
)
def test_captures(data: Path, name: str, state: RunState, outcome: Resume, first: int) -> None:
    verdict = (snapshot := explained(data / "captures" / f"{name}.log")).verdict

    assert verdict.state is state
    assert verdict.resume.outcome is outcome
    assert snapshot.story.first_rollout == first
    assert snapshot.story.first_step == first


def test_a_trainers_death_is_told_without_a_guess(data: Path) -> None:
    verdict = explained(data / "captures" / "actordied.log").verdict

    assert verdict.cause is not None
    assert verdict.cause.kind == "unknown"
    assert any("32334" in line for line in verdict.cause.evidence)
    assert not any("OOM" in line for line in verdict.cause.evidence)


def test_checkpoints_are_told_in_the_logs_clock(data: Path, tmp_path: Path) -> None:
    """A log in a zone an hour behind the clock that dated the checkpoint."""
    folder = shutil.copytree(data / "captures" / "ckpt-run-a", tmp_path / "ckpt")
    meta = json.loads((folder / "iter_0000004" / "meta.json").read_text())
    saved_at = 1_795_953_997.5  # by the log's stamp
    meta["timestamp"] = saved_at + 3600
    (folder / "iter_0000004" / "meta.json").write_text(json.dumps(meta))
    snapshot = explained(data / "captures" / "fresh.log", checkpoints=folder)

    assert isinstance(snapshot.checkpoints, Known)
    newest = snapshot.checkpoints.value.checkpoints[0]
    assert (newest.iteration, newest.state) == (4, CheckpointState.WHOLE)
    assert newest.tracked
    assert newest.taken_at == pytest.approx(saved_at, abs=1)


def test_as_of_later_a_silent_log_says_that_it_cannot_tell(data: Path) -> None:
    log = data / "cases" / "o02.log"

    assert explained(log).verdict.state is RunState.STALLED
    assert explained(log, as_of="+2h").verdict.state is RunState.UNKNOWN


def test_alerts_on_the_way_are_kept(tmp_path: Path) -> None:
    """Ten silent minutes in the middle of a log that goes on."""
    import logs

    lines = []
    for number, minute in enumerate((0, 1, 2, 3, 16, 17)):
        lines.append(logs.trainer(f"10:{minute:02d}:00", "Timer actor_train start"))
        if number == 3:
            lines += [
                logs.engine(
                    f"10:{m:02d}:00", 'INFO:     192.0.2.1:5 - "GET /metrics HTTP/1.1" 200 OK'
                )
                for m in range(4, 16)
            ]
        lines.append(logs.step(f"10:{minute:02d}:40", number))
        lines.append(logs.trainer(f"10:{minute:02d}:41", "Timer actor_train end (elapsed: 41.0s)"))
    log = tmp_path / "a.log"
    log.write_text("\n".join(lines) + "\n", encoding="utf-8")
    snapshot = explained(log)

    assert snapshot.verdict.state is RunState.RUNNING
    (record,) = (each for each in snapshot.alert_log if each.alert.code == "stalled")
    assert record.count == 1


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("+15m", END + 900),
        ("+1.5h", END + 5400),
        ("2026-11-29 12:03", 1_795_953_780.0),
        ("2026-11-29T12:03:07", 1_795_953_787.0),
        ("12:03:07", 1_795_953_787.0),
    ],
)
def test_moments(text: str, moment: float) -> None:
    assert moment_of(text, END) == moment


@pytest.mark.parametrize("text", ["", "soon", "25", "2026-13-41 99:99", "+5", "12"])
def test_what_is_no_moment(text: str) -> None:
    with pytest.raises(UsageError, match="as-of"):
        moment_of(text, END)


def test_a_log_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NothingFoundError, match="nowhere"):
        explained(tmp_path / "nowhere.log")


def test_an_empty_log(tmp_path: Path) -> None:
    log = tmp_path / "empty.log"
    log.touch()

    assert explained(log).verdict.state is RunState.UNKNOWN
