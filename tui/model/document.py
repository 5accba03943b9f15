"""A snapshot as a versioned JSON document, and back.

Field names are those of the model, quantities end in their unit. A reading is
`{"value": …, "at": …}` or `{"why": …, "reason": …, "at": …}`. Numbers that JSON has no word for
are the strings "nan", "inf" and "-inf". Any change that could break a script raises `VERSION`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from tui.errors import ExitCode
from tui.model.codec import decoded, encoded
from tui.model.launch import ListedRun
from tui.model.snapshot import RunState, Snapshot

VERSION = 1


def exit_code_of(snapshot: Snapshot) -> ExitCode:
    """What `status` and `explain` tell the shell about this snapshot."""
    match snapshot.verdict.state:
        case RunState.STALLED:
            return ExitCode.STALLED
        case RunState.FAILED | RunState.CRASHED:
            return ExitCode.ENDED_BADLY
        case RunState.UNKNOWN:
            return ExitCode.UNKNOWN
        case RunState.FINISHED | RunState.STOPPED:
            return ExitCode.WELL
        case RunState.STARTING | RunState.RUNNING | RunState.STOPPING:
            return ExitCode.DEGRADED if snapshot.verdict.degraded else ExitCode.WELL


def document(snapshot: Snapshot) -> dict[str, Any]:
    """The document of a snapshot: a short summary first, then everything."""
    verdict = snapshot.verdict
    return {
        "milepost": VERSION,
        "summary": {
            "state": verdict.state.value,
            "degraded": list(verdict.degraded),
            "reason": verdict.reason,
            "rollout": snapshot.story.rollout,
            "step": snapshot.story.step,
            "num_rollout": snapshot.story.launch.num_rollout,
            "phase": snapshot.story.phase.name if snapshot.story.phase else None,
            "exit_code": int(exit_code_of(snapshot)),
        },
        "snapshot": encoded(snapshot),
    }


def status_document(snapshot: Snapshot) -> dict[str, Any]:
    """The document without what only a screen needs: log lines and sampled history."""
    story = replace(snapshot.story, series={})
    return document(replace(snapshot, lines=(), history={}, story=story))


def runs_document(
    seen: Sequence[tuple[ListedRun, Snapshot]], notes: Sequence[str]
) -> dict[str, Any]:
    """The runs of a machine, each with what a glance at it told."""
    return {
        "milepost": VERSION,
        "runs": [
            {
                **encoded(run),
                "verdict": snapshot.verdict.state.value,
                "rollout": snapshot.story.rollout,
                "num_rollout": snapshot.story.launch.num_rollout,
                "engines": [engine.url for engine in snapshot.story.engines if engine.url],
            }
            for run, snapshot in seen
        ],
        "looked_for": list(notes),
    }


def checkpoints_document(snapshot: Snapshot) -> dict[str, Any]:
    """A save folder, what a restart would load from it, and the disk it is on."""
    return {
        "milepost": VERSION,
        "would_load": encoded(snapshot.verdict.would_load),
        "tree": encoded(snapshot.checkpoints),
        "disk": encoded(snapshot.disk),
    }


def snapshot_of(parsed: Mapping[str, Any]) -> Snapshot:
    """The snapshot of a document.

    Raises:
        ValueError: the document has another version, or is none.
    """
    if parsed.get("milepost") != VERSION:
        raise ValueError(f"not a milepost document of version {VERSION}")
    snapshot = decoded(parsed["snapshot"], Snapshot)
    assert isinstance(snapshot, Snapshot)
    return snapshot
