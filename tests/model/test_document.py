"""The JSON document: complete, versioned, and the same as ever."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import fakes
import pytest

from tui.errors import ExitCode
from tui.model.document import VERSION, document, exit_code_of, snapshot_of, status_document
from tui.model.judge import judge
from tui.model.progress import NonFinite
from tui.model.snapshot import RunState, Snapshot, Verdict

SNAPSHOTS = [Snapshot(), fakes.running(), fakes.stalled(), fakes.failed(), fakes.no_gpu()]


@pytest.mark.parametrize("snapshot", SNAPSHOTS)
def test_a_document_gives_the_snapshot_back(snapshot: Snapshot) -> None:
    text = json.dumps(document(snapshot), allow_nan=False)

    assert snapshot_of(json.loads(text)) == snapshot


def test_nan_survives() -> None:
    snapshot = fakes.diverged()
    story = replace(
        snapshot.story,
        latest={"train/loss": math.nan, "train/grad_norm": math.inf},
        series={},
        non_finite=NonFinite(key="train/loss", number=22, at=1.0, value="nan"),
    )
    text = json.dumps(document(replace(snapshot, story=story)), allow_nan=False)
    back = snapshot_of(json.loads(text))

    assert math.isnan(back.story.latest["train/loss"])
    assert back.story.latest["train/grad_norm"] == math.inf


def test_another_version_is_refused() -> None:
    with pytest.raises(ValueError, match="version"):
        snapshot_of({"milepost": VERSION + 1, "snapshot": {}})


def test_the_document_is_the_golden_one(data: Path) -> None:
    """A change here breaks scripts: raise VERSION, then write the file anew."""
    snapshot = fakes.running()
    snapshot = replace(snapshot, verdict=judge(replace(snapshot, verdict=Verdict())))
    written = json.dumps(status_document(snapshot), indent=1, sort_keys=True) + "\n"

    assert written == (data / "status-v1.json").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("state", "degraded", "code"),
    [
        (RunState.RUNNING, (), ExitCode.WELL),
        (RunState.STARTING, (), ExitCode.WELL),
        (RunState.FINISHED, (), ExitCode.WELL),
        (RunState.STOPPED, (), ExitCode.WELL),
        (RunState.RUNNING, ("engine-dead",), ExitCode.DEGRADED),
        (RunState.STALLED, ("stalled",), ExitCode.STALLED),
        (RunState.FAILED, (), ExitCode.ENDED_BADLY),
        (RunState.CRASHED, (), ExitCode.ENDED_BADLY),
        (RunState.UNKNOWN, (), ExitCode.UNKNOWN),
    ],
)
def test_exit_codes(state: RunState, degraded: tuple[str, ...], code: ExitCode) -> None:
    snapshot = replace(Snapshot(), verdict=Verdict(state=state, degraded=degraded))

    assert exit_code_of(snapshot) is code
