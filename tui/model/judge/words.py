"""Durations and sizes in alert lines: short, with their unit."""

from __future__ import annotations

from tui.model.memory import GIB


def span(seconds: float) -> str:
    """`0.4 s`, `41 s`, `14 min`, `1 h 05`, `2 d 03 h`."""
    if 0.0 < seconds < 9.95:
        return f"{seconds:.1f} s"
    total = max(0, round(seconds))
    if total < 120:
        return f"{total} s"
    if total < 7200:
        return f"{round(total / 60)} min"
    hours, rest = divmod(total, 3600)
    if hours < 48:
        return f"{hours} h {rest // 60:02d}"
    return f"{hours // 24} d {hours % 24:02d} h"


def gib(size_bytes: float) -> str:
    """`37.5 GiB`."""
    return f"{size_bytes / GIB:.1f} GiB"


def gigabytes(size_bytes: float) -> str:
    """`42.7 GB`, as Ray and disk tools count."""
    return f"{size_bytes / 1e9:.1f} GB"


def counted(number: int, noun: str) -> str:
    """`1 rollout`, `6 rollouts`, `2 processes`."""
    if number == 1:
        return f"1 {noun}"
    return f"{number} {noun}{'es' if noun.endswith('s') else 's'}"
