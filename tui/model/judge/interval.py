"""How often to save: what a crash may cost against what saving costs, in rollouts.

Young 1974: the optimum is √(2·C·M), C the time a save blocks, M the mean time between failures.
Daly 2006 refines it for C not small against M. The optimum is flat: within a factor of two the
waste rises by a quarter, so a band is told, not a number. Miles can only save at a rollout's end.
"""

from __future__ import annotations

import math

from tui.model.series import quantile
from tui.model.snapshot import SaveAdvice, Snapshot

_CONFIDENCE_FACTOR = 3.0
"""No failure in T hours: the mean time between failures is above T/3 with 95 % confidence."""


def save_advice_of(snapshot: Snapshot) -> SaveAdvice | None:
    """The advice; None before a rollout was timed or while a save was never timed."""
    story = snapshot.story
    plain = tuple(span.seconds for span in story.spans if not span.saved and not span.evaluated)
    rollout_s = quantile(plain or tuple(span.seconds for span in story.spans), 0.5)
    durations = story.durations.get("save")
    save_s = durations.median_s() if durations else None
    if not rollout_s or save_s is None:
        return None
    between_s = snapshot.limits.failure_interval_s
    is_given = between_s is not None
    if between_s is None:
        started = story.started_at if story.started_at is not None else snapshot.now
        between_s = max(snapshot.now - started, rollout_s) / _CONFIDENCE_FACTOR
    return advice(
        rollout_s=rollout_s,
        save_s=save_s,
        between_s=between_s,
        is_given=is_given,
        limit_s=snapshot.limits.work_at_risk_s,
        interval=story.launch.save_interval,
    )


def advice(
    *,
    rollout_s: float,
    save_s: float,
    between_s: float,
    is_given: bool,
    limit_s: float,
    interval: int | None,
) -> SaveAdvice:
    """The advice from measured times, all in seconds; `interval` is today's, in rollouts."""
    best_s = optimum_s(save_s, between_s)
    best = max(1.0, best_s / rollout_s)
    return SaveAdvice(
        rollout_s=rollout_s,
        save_s=save_s,
        between_failures_s=between_s,
        is_between_given=is_given,
        most=max(1, math.floor((limit_s - save_s) / rollout_s)),
        low=max(1, math.floor(best / math.sqrt(2))),
        high=max(1, math.ceil(best * math.sqrt(2))),
        waste_ratio=None
        if interval is None
        else waste_ratio(interval * rollout_s, save_s, between_s),
        best_waste_ratio=waste_ratio(max(best_s, rollout_s), save_s, between_s),
    )


def optimum_s(save_s: float, between_s: float) -> float:
    """Daly's interval between saves; for a save as long as the failures are apart, that time."""
    if save_s >= 2 * between_s:
        return between_s
    ratio = math.sqrt(save_s / (2 * between_s))
    return math.sqrt(2 * save_s * between_s) * (1 + ratio / 3 + ratio**2 / 9) - save_s


def waste_ratio(interval_s: float, save_s: float, between_s: float) -> float:
    """Share of time lost: saving, and half an interval at every failure."""
    return min(1.0, save_s / interval_s + interval_s / (2 * between_s))
