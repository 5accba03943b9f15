"""The orders a person can have the checkpoints in: each by a column, the largest or worst first."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping

from tui.model.checkpoint import Checkpoint, CheckpointState, Soundness
from tui.view.rows import Order

_STATES = (
    CheckpointState.DAMAGED,
    CheckpointState.PARTIAL,
    CheckpointState.SAVING,
    CheckpointState.WHOLE,
)
_SOUNDNESS = (
    Soundness.DAMAGED,
    Soundness.NOT_FINITE,
    None,
    Soundness.NO_SUMS,
    Soundness.SOUND,
)
"""None: never checked."""


def next_order(order: Order) -> Order:
    """The column after this one; the first after the last."""
    orders = tuple(Order)
    return orders[(orders.index(order) + 1) % len(orders)]


def ordered(checkpoints: Iterable[Checkpoint], order: Order) -> tuple[Checkpoint, ...]:
    """In that order; those that are alike with the newest first."""
    newest_first = sorted(checkpoints, key=lambda each: -each.iteration)
    return tuple(sorted(newest_first, key=_KEYS[order]))


def _by_check(each: Checkpoint) -> tuple[float, ...]:
    """The worst first; of those alike, the one whose check is longest ago."""
    seen = each.verification
    return _SOUNDNESS.index(seen.soundness if seen else None), seen.at if seen else 0.0


_KEYS: Mapping[Order, Callable[[Checkpoint], tuple[float, ...]]] = {
    Order.ITERATION: lambda each: (-each.iteration,),
    Order.AGE: lambda each: (each.taken_at,),
    Order.SIZE: lambda each: (-each.size_bytes,),
    Order.STATE: lambda each: (_STATES.index(each.state),),
    Order.CHECKED: _by_check,
}
