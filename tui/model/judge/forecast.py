"""When the run will be done: medians of its own rollouts, saves and evaluations counted apart."""

from __future__ import annotations

from collections.abc import Callable

from tui.model.judge.standing import Standing
from tui.model.progress import RolloutSpan
from tui.model.series import quantile
from tui.model.snapshot import Forecast, Snapshot


def forecast_of(snapshot: Snapshot, standing: Standing) -> Forecast | None:
    """The forecast; None before the second finished rollout, or when the total is not known."""
    story, total = snapshot.story, snapshot.story.launch.num_rollout
    if standing.has_ended or total is None or story.training_rollout is None or not story.spans:
        return None
    plain, plain_basis = _usual(story.spans)
    remaining = max(0, total - 1 - story.training_rollout)
    launch, done = story.launch, story.training_rollout
    saves = _coming(launch.save_interval, done, total) if launch.save is not None else 0
    extra = saves * _extra(story.spans, plain, lambda span: span.saved)
    evals = _coming(launch.eval_interval, done, total)
    extra += evals * _extra(story.spans, plain, lambda span: span.evaluated)
    done_s = snapshot.now - story.trained_at if story.trained_at is not None else 0.0
    seconds = max(0.0, remaining * plain + extra - min(done_s, plain))
    return Forecast(
        remaining_rollouts=remaining, seconds=seconds, usual_rollout_s=plain, basis=plain_basis
    )


def _coming(interval: int | None, done: int, total: int) -> int:
    """How many still lie ahead of those that follow each so many rollouts.

    What follows the rollout trained last may be under way; what follows the last one is no wait.
    """
    return (total - 1) // interval - done // interval if interval and done < total else 0


def _usual(spans: tuple[RolloutSpan, ...]) -> tuple[float, str]:
    plain = tuple(span.seconds for span in spans if not span.saved and not span.evaluated)
    chosen = plain or tuple(span.seconds for span in spans)
    kind = "plain rollouts" if plain else "rollouts, saves and evaluations included"
    median = quantile(chosen, 0.5)
    return median if median is not None else 0.0, f"median of {len(chosen)} {kind}"


def _extra(
    spans: tuple[RolloutSpan, ...], plain_s: float, chosen: Callable[[RolloutSpan], bool]
) -> float:
    seconds = tuple(span.seconds for span in spans if chosen(span))
    median = quantile(seconds, 0.5)
    return 0.0 if median is None else max(0.0, median - plain_s)
