"""Whether what a source told is young enough to act on. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tui.guard.truth import Fact, cannot_tell, yes
from tui.model.judge.words import span
from tui.model.reading import Known, Reading, Unknown
from tui.model.snapshot import Snapshot

_FRESH_S: Mapping[str, float] = {
    "log": 10.0,
    "processes": 15.0,
    "container": 15.0,
    "memory": 5.0,
    "gpu": 15.0,
    "checkpoints": 30.0,
}
"""Some of each probe's looks: a single one that is late is no reason to doubt."""


def heard(snapshot: Snapshot, probe: str) -> Fact:
    """Whether the newest answer of this probe holds now."""
    reading = snapshot.missed.get(probe) or _READINGS[probe](snapshot)
    if isinstance(reading, Unknown):
        return cannot_tell(f"{probe}: {reading.reason}")
    age_s = snapshot.now - reading.at
    if age_s > _FRESH_S[probe]:
        return cannot_tell(f"{probe}: last heard {span(age_s)} ago")
    return yes(f"{probe}: heard {span(age_s)} ago")


def _log(snapshot: Snapshot) -> Reading[str]:
    """Read to its end, and what stands before the first look too."""
    log = snapshot.log
    if log.fault is not None:
        return log.fault
    whole = log.history_ratio >= 1.0
    return Known(value=log.path, at=log.read_at if whole else 0.0)


_READINGS: Mapping[str, Callable[[Snapshot], Reading[Any]]] = {
    "log": _log,
    "processes": lambda snapshot: snapshot.processes,
    "container": lambda snapshot: snapshot.container,
    "memory": lambda snapshot: snapshot.memory,
    "gpu": lambda snapshot: snapshot.gpus,
    "checkpoints": lambda snapshot: snapshot.checkpoints,
}
