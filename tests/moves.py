"""The moves on a run, one after the other, each with what has to be true then."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from places import Place

CHECKPOINT = 4
"""The first one of every run."""


def moved_while_it_lives(run: Place) -> None:
    """Save now, kill and resume, convert beside it."""
    run.wait_for_checkpoint(CHECKPOINT)
    record = run.outcome("save")
    assert "is whole" in record["line"]
    assert not run.trigger.exists()
    before = run.first_log()
    resumed(run, ["save", "stop", "start", "prove"])
    assert run.first_log().startswith(before)
    converted(run, CHECKPOINT)


def moved_while_gone(run: Place) -> None:
    """Resume by name, roll back, convert, and go on from there."""
    resumed(run, ["start", "prove"], run.name)
    record = run.outcome("stop", "--no-save-first")
    assert record["line"].startswith("stopped within")
    assert run.drivers() == []
    kept = {path.name for path in run.saves.glob("iter_*")}
    run.outcome("rollback", str(CHECKPOINT), run.name)
    assert run.tracker == str(CHECKPOINT)
    assert {path.name for path in run.saves.glob("iter_*")} == {"iter_0000004"}
    assert {path.name for path in run.saves.glob("quarantine-*/iter_*")} == kept - {"iter_0000004"}
    converted(run, CHECKPOINT)
    record = resumed(run, ["start", "prove"])
    assert record["line"] == "resumed at rollout 4 from iteration 4"


def resumed(run: Place, steps: list[str], *argv: str) -> dict[str, Any]:
    """It goes on where the tracker said, once, and nothing secret is told."""
    record = run.outcome("resume", *argv)
    assert record["steps"] == steps
    iteration = int(record["facts"]["tracker_at_start"])
    assert record["line"] == f"resumed at rollout {iteration} from iteration {iteration}"
    assert len(run.drivers()) == 1
    assert "55555" not in json.dumps(record)
    return record


def converted(run: Place, iteration: int) -> None:
    """Into a folder of its own, every weight of it."""
    record = run.outcome("convert", str(iteration))
    assert "139,648 parameters arrived, 25 keys matched" in record["line"]
    output = Path(record["facts"]["output"])
    assert output == run.folder / "ckpt" / "models" / f"{run.name}-step-{iteration}"
    assert (output / "model.safetensors").exists()
    assert {path.name for path in output.parent.iterdir()} >= {output.name}
    output.rename(output.with_name(record["id"]))
