"""Work at risk: what a crash now would cost."""

from __future__ import annotations

from tui.model.checkpoint import Checkpoint
from tui.model.judge.standing import Standing
from tui.model.judge.words import counted, span
from tui.model.judge.would_load import best_of
from tui.model.reading import Known
from tui.model.snapshot import Snapshot, WorkAtRisk
from tui.model.story.phases import first_rollout_of


def newest_whole(snapshot: Snapshot) -> Checkpoint | None:
    """The newest checkpoint a resume could use, None when there is none or none is known."""
    if not isinstance(snapshot.checkpoints, Known):
        return None
    return best_of(snapshot.checkpoints.value)


def risk_of(snapshot: Snapshot, standing: Standing) -> WorkAtRisk | None:
    """Time and rollouts since the newest whole checkpoint; None when nothing is running."""
    story = snapshot.story
    if standing.has_ended or story.progress is None:
        return None
    whole = newest_whole(snapshot)
    if whole is not None:
        return _risk(snapshot, _taken_at(snapshot, whole), whole.resumes_at, whole.iteration)
    if isinstance(snapshot.checkpoints, Known):
        return _risk(snapshot, story.started_at, story.first_rollout or 0, None)
    saved = [save for save in story.saves if save.saved_at is not None]
    if saved:
        last = saved[-1]
        resumes = first_rollout_of(last.iteration, is_megatron=story.backend == "megatron")
        return _risk(snapshot, last.saved_at, resumes, last.iteration)
    return _risk(snapshot, story.started_at, story.first_rollout or 0, None)


def _taken_at(snapshot: Snapshot, checkpoint: Checkpoint) -> float:
    """By the log where that told of the save: a file's date stays when the clock is set."""
    said = (
        each.saved_at for each in snapshot.story.saves if each.iteration == checkpoint.iteration
    )
    return next((at for at in said if at is not None), checkpoint.taken_at)


def _risk(
    snapshot: Snapshot, since: float | None, resumes_at: int, iteration: int | None
) -> WorkAtRisk:
    seconds = None if since is None else max(0.0, snapshot.now - since)
    rollouts = None
    if snapshot.story.rollout is not None:
        rollouts = max(0, snapshot.story.rollout - resumes_at)
    cost = [counted(rollouts, "rollout")] if rollouts is not None else []
    if seconds is not None:
        cost.append(span(seconds))
    line = "a crash now costs " + (", ".join(cost) if cost else "an unknown amount of work")
    if iteration is None:
        line += ", all there is: no whole checkpoint"
    return WorkAtRisk(
        seconds=seconds,
        rollouts=rollouts,
        checkpoint=iteration,
        limit_s=snapshot.limits.work_at_risk_s,
        line=line,
    )
