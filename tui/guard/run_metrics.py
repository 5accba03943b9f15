"""What is told of the run, its checkpoints and the watch over it. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from tui import __version__
from tui.guard.metric import Metric, Sample, Samples, one, states
from tui.model.action import ActionState
from tui.model.checkpoint import Checkpoint, CheckpointState
from tui.model.guard import GuardState
from tui.model.reading import Known
from tui.model.snapshot import Snapshot

_ALERTS = 64


def _phase(snapshot: Snapshot) -> Iterator[Sample]:
    phase = snapshot.story.phase
    if phase is not None:
        yield {"phase": phase.name}, phase.since


def _training(snapshot: Snapshot) -> Iterator[Sample]:
    """What Miles logs and is kept as a series: a few, always the same."""
    latest = snapshot.story.latest
    for name in sorted(snapshot.story.series):
        yield {"metric": name}, latest.get(name)


def _alerts(snapshot: Snapshot) -> Iterator[Sample]:
    counts: dict[tuple[str, str], int] = {}
    for alert in snapshot.verdict.alerts:
        key = (alert.code, alert.level.value)
        counts[key] = counts.get(key, 0) + 1
    for (code, level), count in list(counts.items())[:_ALERTS]:
        yield {"code": code, "level": level}, count


# Checkpoints


def _checkpoints(snapshot: Snapshot) -> tuple[Checkpoint, ...] | None:
    tree = snapshot.checkpoints
    return tree.value.checkpoints if isinstance(tree, Known) else None


def _counted(snapshot: Snapshot) -> Iterator[Sample]:
    listed = _checkpoints(snapshot)
    for state in CheckpointState if listed is not None else ():
        yield {"state": state.value}, sum(each.state is state for each in listed or ())


def _newest_whole(value: Callable[[Checkpoint], float]) -> Samples:
    def samples(snapshot: Snapshot) -> Iterator[Sample]:
        listed = _checkpoints(snapshot) or ()
        whole = next((each for each in listed if each.state is CheckpointState.WHOLE), None)
        yield {}, None if whole is None else value(whole)

    return samples


# The watch itself


def _silent(snapshot: Snapshot) -> Iterator[Sample]:
    for probe in sorted(snapshot.missed):
        yield {"probe": probe}, 1.0


def _guard_states(snapshot: Snapshot) -> Iterator[Sample]:
    state = snapshot.guard.state if snapshot.guard is not None else GuardState.OFF
    yield from states(state)


def _progress_at(snapshot: Snapshot) -> float | None:
    progress = snapshot.story.progress
    return progress.at if progress is not None else None


def _target(snapshot: Snapshot) -> float | None:
    told = snapshot.story.launch.num_rollout
    return told if told is not None else snapshot.attachment.launch.num_rollout


def _is_acting(snapshot: Snapshot) -> float:
    opened = (each.state is ActionState.OPEN for each in snapshot.actions)
    return float(bool(snapshot.action_holder) and any(opened))


RUN: tuple[Metric, ...] = (
    Metric("build_info", "Version of milepost.", lambda _: (({"version": __version__}, 1.0),)),
    Metric(
        "snapshot_timestamp_seconds",
        "When what is told here was true.",
        one(lambda seen: seen.now or None),
    ),
    Metric("run_state", "What the run is doing.", lambda seen: states(seen.verdict.state)),
    Metric(
        "run_state_timestamp_seconds",
        "Since when it is in this state.",
        one(lambda seen: seen.verdict.since or None),
    ),
    Metric(
        "run_degraded",
        "Whether it runs with a reason for concern.",
        one(lambda seen: float(bool(seen.verdict.degraded))),
    ),
    Metric("run_attempt", "How often it was started.", one(lambda seen: seen.story.attempt)),
    Metric("run_rollout", "Rollout being worked on.", one(lambda seen: seen.story.rollout)),
    Metric("run_target_rollouts", "Rollouts it is to do.", one(_target)),
    Metric("run_step", "Newest optimiser step.", one(lambda seen: seen.story.step)),
    Metric("run_phase_start_timestamp_seconds", "Start of the phase it is in.", _phase),
    Metric(
        "run_last_progress_timestamp_seconds",
        "When it last made progress.",
        one(_progress_at),
    ),
    Metric(
        "run_stall_limit_seconds",
        "Time without progress that is called a stall in this phase.",
        one(lambda seen: seen.verdict.stall_limit_s),
    ),
    Metric(
        "run_remaining_seconds",
        "Time until it will be done, by its usual rollout.",
        one(lambda seen: seen.verdict.forecast.seconds if seen.verdict.forecast else None),
    ),
    Metric("run_log_size_bytes", "Size of its log.", one(lambda seen: seen.log.size_bytes)),
    Metric(
        "run_log_last_line_timestamp_seconds",
        "Stamp of the newest line of its log.",
        one(lambda seen: seen.story.last_line_at),
    ),
    Metric("training_metric", "Newest value of what Miles logs, by Miles' name.", _training),
    Metric("alerts", "Alerts that are true now.", _alerts),
    Metric(
        "work_at_risk_seconds",
        "Work that a crash now would cost.",
        one(lambda seen: seen.verdict.risk.seconds if seen.verdict.risk else None),
    ),
    Metric(
        "work_at_risk_rollouts",
        "Rollouts that a crash now would cost.",
        one(lambda seen: seen.verdict.risk.rollouts if seen.verdict.risk else None),
    ),
    Metric("checkpoints", "Checkpoints in the save folder.", _counted),
    Metric(
        "checkpoint_newest_whole_iteration",
        "Number of the newest whole checkpoint.",
        _newest_whole(lambda checkpoint: checkpoint.iteration),
    ),
    Metric(
        "checkpoint_newest_whole_timestamp_seconds",
        "When the newest whole checkpoint was taken.",
        _newest_whole(lambda checkpoint: checkpoint.taken_at),
    ),
    Metric(
        "checkpoint_newest_whole_size_bytes",
        "Size of the newest whole checkpoint.",
        _newest_whole(lambda checkpoint: checkpoint.size_bytes),
    ),
    Metric(
        "checkpoint_would_load_iteration",
        "Number of the checkpoint that a restart would load.",
        one(lambda seen: seen.verdict.would_load.iteration),
    ),
    Metric(
        "action_under_way",
        "Whether milepost acts on the run now.",
        one(_is_acting),
    ),
    Metric("guard_state", "Whether a guard watches the run.", _guard_states),
    Metric(
        "guard_paused",
        "Whether a person keeps the guard from acting.",
        one(lambda seen: float(bool(seen.guard.paused)) if seen.guard is not None else None),
    ),
    Metric("probe_silent", "Sources that do not answer.", _silent),
)
