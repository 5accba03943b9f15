"""What was recorded before we came: charts that are not empty, and what became of the box."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tui.attach import has_target
from tui.guard.box import this_boot, this_moment
from tui.guard.inquest import PostMortem
from tui.guard.past import past_of, series_of
from tui.guard.post_mortem import post_mortem_of, post_mortems_of
from tui.model.events import Event, HistoryRecalled, LossFound
from tui.model.loss import Loss
from tui.model.series import LIMIT, LONG_SPAN_S
from tui.model.snapshot import Snapshot
from tui.runs.state_dir import run_folder

_LOSS_S = 24 * 3600.0
"""An older loss is history, for `milepost explain --run`."""


class RecallProbe:
    """Reads the record of a run once, when it is known which run it is."""

    name = "past"
    cadence_s = 2.0
    deadline_s = 20.0

    def __init__(self) -> None:
        self._recalled: Path | None = None

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """The past, once a run."""
        folder = run_folder(seen.attachment)
        if folder == self._recalled or not has_target(seen.attachment):
            return ()
        self._recalled = folder
        short = series_of(past_of(folder, now - LIMIT))
        long = series_of(past_of(folder, now - LONG_SPAN_S))
        events: list[Event] = []
        if long:
            events.append(HistoryRecalled(at=now, short=short, long=long))
        post_mortem = post_mortem_of(folder, this_moment(), this_boot(), since=now - _LOSS_S)
        if post_mortem is not None and (post_mortem.until_at or now) > now - _LOSS_S:
            events.append(LossFound(at=now, loss=loss_of(post_mortem)))
        return events

    def close(self) -> None:
        """Nothing is held."""


def losses(folder: Path) -> tuple[Loss, ...]:
    """All that the record of a run tells of, the oldest first."""
    return tuple(map(loss_of, post_mortems_of(folder, this_moment(), this_boot())))


def loss_of(post_mortem: PostMortem) -> Loss:
    """As the screen tells it."""
    return Loss(
        line=post_mortem.line,
        from_at=post_mortem.from_at,
        until_at=post_mortem.until_at,
        evidence=post_mortem.evidence,
    )
