"""An alert that stands is told again when its numbers have become much worse, and only then."""

from __future__ import annotations

import pytest

from tui.guard.worse import is_much_worse


@pytest.mark.parametrize(
    ("before", "now", "worse"),
    [
        ("7.2 GiB of memory left of 121.7 GiB", "3.6 GiB of memory left of 121.7 GiB", True),
        ("7.2 GiB of memory left of 121.7 GiB", "5.0 GiB of memory left of 121.7 GiB", False),
        ("3.6 GiB of memory left of 121.7 GiB", "7.2 GiB of memory left of 121.7 GiB", False),
        ("/ckpt has 40.0 GB left", "/ckpt has 18.0 GB left", True),
        ("no progress for 14 min in save", "no progress for 27 min in save", False),
        ("no progress for 14 min in save", "no progress for 28 min in save", True),
        ("no progress for 90 s in save", "no progress for 3 min in save", True),
        ("costs 2 rollouts, 61 min", "costs 5 rollouts, 2 h 05", True),
        ("costs 1 rollout, 61 min", "costs 2 rollouts, 65 min", True),
        ("gone for 1 h 50", "gone for 3 h 45", True),
        ("gone for 1 h 50", "gone for 3 h 30", False),
        ("gone for 23 h 10", "gone for 2 d 03 h", True),
        ("engine 0 decodes at 400 tokens/s, usual 3000", "engine 0 decodes at 150 tokens/s", True),
        ("checkpoint 13 is partial", "checkpoint 26 is partial", False),
        ("train/loss is nan since step 4", "train/loss is nan since step 4", False),
        ("the GPU is lost", "7.2 GiB of memory left", False),
        ("0.0 GiB left", "0.0 GiB left", False),
    ],
)
def test_what_is_much_worse(before: str, now: str, worse: bool) -> None:
    assert is_much_worse(before, now) is worse
