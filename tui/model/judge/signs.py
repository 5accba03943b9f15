"""Second signs beside missing progress: what still comes out of the log, what the GPU does."""

from __future__ import annotations

from collections.abc import Sequence

from tui.model.progress import LineKind
from tui.model.snapshot import Snapshot

_NO_PROGRESS = frozenset({LineKind.HTTP, LineKind.ENGINE})
_IDLE_RATIO = 0.05
_WINDOW_S = 60.0
_SAMPLES = 10


def lines_since_progress(snapshot: Snapshot) -> tuple[str, ...]:
    """What the log went on printing: health checks scrolling by look like life."""
    progress = snapshot.story.progress
    if progress is None:
        return ()
    since = [line for line in snapshot.lines if line.at > progress.at]
    if not since:
        return ("no log line since",)
    count = sum(1 + line.repeated for line in since)
    if all(line.kind in _NO_PROGRESS for line in since):
        return (f"{count} lines since, only health checks and requests for metrics",)
    return (f"{count} lines since",)


def idle_devices(snapshot: Snapshot) -> tuple[str, ...]:
    """Devices that did nothing in the last minute."""
    found = []
    for key, series in sorted(snapshot.history.items()):
        name, _, quantity = key.partition(".")
        if quantity == "utilisation_ratio" and _is_idle(series.since(snapshot.now - _WINDOW_S)):
            found.append(f"{name.upper()} idle for a minute")
    return tuple(found)


def _is_idle(points: Sequence[tuple[float, float]]) -> bool:
    return len(points) >= _SAMPLES and max(value for _, value in points) <= _IDLE_RATIO
