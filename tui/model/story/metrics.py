"""Metric lines: which rollout and step the run is at, and the numbers worth a chart."""

from __future__ import annotations

import math
from dataclasses import replace

from tui.model.events import End, MetricKind, MetricsLogged
from tui.model.progress import Ending, NonFinite, RolloutSpan, Story
from tui.model.series import Series
from tui.model.story.moments import moved, noted
from tui.model.story.phases import EVAL, GENERATE, SAVE, WAIT, entered, with_duration

CHARTED = frozenset(
    {
        "train/loss",
        "train/pg_loss",
        "train/grad_norm",
        "train/ppo_kl",
        "train/kl_loss",
        "train/entropy_loss",
        "train/pg_clipfrac",
        "train/train_rollout_logprob_abs_diff",
        "rollout/raw_reward",
        "rollout/response_len/mean",
        "rollout/truncated_ratio",
        "perf/rollout_time",
        "perf/tokens_per_gpu_per_sec",
        "perf/step_time",
    }
)
_WATCHED = ("train/loss", "train/pg_loss", "train/grad_norm")
_SPANS_LIMIT = 256
_DRIVER_ERROR_GRACE_S = 60.0


_TOLD = {
    MetricKind.STEP: "step {}",
    MetricKind.ROLLOUT: "rollout {}",
    MetricKind.PERF_ROLLOUT: "rollout {} generated",
    MetricKind.PERF_TRAIN: "rollout {} trained",
    MetricKind.EVAL: "eval {}",
    MetricKind.MULTI_TURN: "multi_turn {}",
    MetricKind.PASSRATE: "passrate {}",
}


def metrics_logged(story: Story, event: MetricsLogged) -> Story:
    """One metric line of any kind."""
    story = moved(story, event.at, _TOLD[event.kind].format(event.number))
    if event.role != "actor" or event.cell != 0:
        return story
    if event.kind is MetricKind.STEP and event.number == story.step:
        return story  # Megatron prints every step line twice
    story = _with_values(story, event)
    match event.kind:
        case MetricKind.STEP:
            return _step(story, event)
        case MetricKind.PERF_ROLLOUT:
            return _generated(story, event)
        case MetricKind.PERF_TRAIN:
            return _trained(story, event)
        case MetricKind.EVAL:
            return _evaluated(story, event)
        case MetricKind.ROLLOUT:
            return _begun(replace(story, rollout=event.number), event.number)
        case MetricKind.MULTI_TURN | MetricKind.PASSRATE:
            return story


def _with_values(story: Story, event: MetricsLogged) -> Story:
    latest = dict(story.latest)
    series = dict(story.series)
    for key, value in event.values:
        latest[key] = value
        if key in CHARTED:
            series[key] = series.get(key, Series()).add(float(event.number), value)
    return replace(story, latest=latest, series=series)


def _begun(story: Story, rollout: int) -> Story:
    return story if story.first_rollout is not None else replace(story, first_rollout=rollout)


def _step(story: Story, event: MetricsLogged) -> Story:
    story = replace(
        story,
        step=event.number,
        steps_seen=story.steps_seen + 1,
        first_step=event.number if story.first_step is None else story.first_step,
        non_finite=_non_finite(story, event),
    )
    if _was_not_the_end(story.ending, event.at):
        story = replace(story, ending=None)
    if story.non_finite is not None and story.non_finite.number == event.number:
        bad = story.non_finite
        story = noted(story, event.at, f"{bad.key} is {bad.value} at step {bad.number}", "critical")
    return story


def _was_not_the_end(ending: Ending | None, at: float) -> bool:
    """A driver that printed a traceback and trains on has not ended by it."""
    return (
        ending is not None
        and ending.end == End.DRIVER_ERROR.value
        and at > ending.at + _DRIVER_ERROR_GRACE_S
    )


def _non_finite(story: Story, event: MetricsLogged) -> NonFinite | None:
    values = dict(event.values)
    for key in _WATCHED:
        value = values.get(key)
        if value is not None and not math.isfinite(value):
            fresh = NonFinite(key=key, number=event.number, at=event.at, value=str(value))
            return story.non_finite or fresh
    return None


def _generated(story: Story, event: MetricsLogged) -> Story:
    story = _begun(replace(story, rollout=event.number), event.number)
    seconds = dict(event.values).get("perf/rollout_time")
    if seconds is not None and math.isfinite(seconds):
        story = with_duration(story, GENERATE, seconds)
    story = replace(story, retries=None)
    return entered(story, WAIT, event.at) if story.training_rollout != event.number else story


def _trained(story: Story, event: MetricsLogged) -> Story:
    story = _begun(story, event.number)
    spans = story.spans
    if story.trained_at is not None and event.at > story.trained_at:
        span = RolloutSpan(
            number=event.number,
            seconds=event.at - story.trained_at,
            saved=story.saved_since_train,
            evaluated=story.evaluated_since_train,
            first=False,
        )
        spans = (*spans[-(_SPANS_LIMIT - 1) :], span)
    rollout = event.number if story.rollout is None else max(story.rollout, event.number)
    story = replace(
        story,
        spans=spans,
        rollout=rollout,
        training_rollout=event.number,
        trained_at=event.at,
        rollouts_done=story.rollouts_done + 1,
        steps_per_rollout=_steps_per_rollout(story, event.number),
        saved_since_train=False,
        evaluated_since_train=False,
    )
    return entered(story, SAVE if save_is_due(story, event.number) else WAIT, event.at)


def save_is_due(story: Story, rollout: int) -> bool:
    """Miles saves after this rollout. Source: Miles' should_run_periodic_action."""
    launch = story.launch
    if not launch.save_interval or launch.save is None:
        return False
    is_last = launch.num_rollout is not None and rollout == launch.num_rollout - 1
    return is_last or (rollout + 1) % launch.save_interval == 0


def _steps_per_rollout(story: Story, rollout: int) -> int | None:
    if story.step is None or rollout < 0:
        return story.steps_per_rollout
    steps, rest = divmod(story.step + 1, rollout + 1)
    return steps if steps and not rest else story.steps_per_rollout


def _evaluated(story: Story, event: MetricsLogged) -> Story:
    scores = {name: (name, score, rollout) for name, score, rollout in story.evals}
    told = []
    series = dict(story.series)
    for key, value in event.values:
        name = key.removeprefix("eval/")
        if "/" in name or "-" in name or not key.startswith("eval/"):
            continue
        scores[name] = (name, value, event.number)
        series[key] = series.get(key, Series()).add(float(event.number), value)
        told.append(f"{name} {value:.3g}")
    if story.phase is not None and story.phase.name == EVAL:
        story = with_duration(story, EVAL, event.at - story.phase.since)
    story = replace(story, evals=tuple(scores.values()), series=series, evaluated_since_train=True)
    story = noted(story, event.at, f"eval at rollout {event.number}: {', '.join(told[:4])}")
    return entered(story, GENERATE, event.at)
