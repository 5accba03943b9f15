"""When the run will be done: medians of its own rollouts, saves and evaluations counted apart."""

from __future__ import annotations

from collections.abc import Callable

from tui.model.judge.standing import Standing
from tui.model.progress import RolloutSpan, Story
from tui.model.series import quantile
from tui.model.snapshot import Forecast, Snapshot
from tui.model.story.metrics import save_is_due


def forecast_of(snapshot: Snapshot, standing: Standing) -> Forecast | None:
    """The forecast; None before the second finished rollout, or when the total is not known."""
    story, total = snapshot.story, snapshot.story.launch.num_rollout
    if standing.has_ended or total is None or story.training_rollout is None or not story.spans:
        return None
    plain, plain_basis = _usual(story.spans)
    remaining = max(0, total - 1 - story.training_rollout)
    saves = sum(save_is_due(story, rollout) for rollout in _coming(story, total))
    evals = sum(_eval_is_due(story, rollout) for rollout in _coming(story, total))
    extra = saves * _extra(story.spans, plain, lambda span: span.saved)
    extra += evals * _extra(story.spans, plain, lambda span: span.evaluated)
    done_s = snapshot.now - story.trained_at if story.trained_at is not None else 0.0
    seconds = max(0.0, remaining * plain + extra - min(done_s, plain))
    return Forecast(
        remaining_rollouts=remaining, seconds=seconds, usual_rollout_s=plain, basis=plain_basis
    )


def _coming(story: Story, total: int) -> range:
    """Rollouts whose save and evaluation still lie ahead."""
    done = story.training_rollout if story.training_rollout is not None else -1
    return range(done, total - 1)


def _eval_is_due(story: Story, rollout: int) -> bool:
    interval = story.launch.eval_interval
    return interval is not None and (rollout + 1) % interval == 0


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
