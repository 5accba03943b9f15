"""What an earlier run left behind: checkpoints that a run which starts fresh overlooks."""

from __future__ import annotations

import os
import time

from tui.demo import checkpoint
from tui.demo.settings import Settings
from tui.demo.weights import Model

_LEFT = ((4, 7200.0), (9, 3600.0))
"""(rollout, seconds ago)."""


def leave(settings: Settings) -> None:
    """Write the earlier run's checkpoints, unless there are some already."""
    if any(settings.save.glob("iter_*")):
        return
    model = Model(total_mb=settings.model_mb, seed=settings.seed)
    for rollout, age_s in _LEFT:
        at = time.time() - age_s
        for _ in checkpoint.save(settings.save, rollout, model, seed=settings.seed, at=at):
            pass
        checkpoint.save_data_source(
            settings.save, rollout, samples=settings.samples, groups=settings.rollout_batch_size
        )
        for path in checkpoint.iteration_folder(settings.save, rollout + 1).rglob("*"):
            os.utime(path, (at, at))
