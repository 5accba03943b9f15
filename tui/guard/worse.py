"""Whether the numbers in an alert's line have become much worse. Pure.

What is left of something is worse when it has halved; how long, or how much is at stake, when it
has doubled. Numbers without a unit name things: steps, engines, checkpoints.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

MUCH = 2.0
_UNITS = "GiB|GB|tokens/s|MHz|rollouts?|s|min|h|d"
_QUANTITY = re.compile(rf"(\d+(?:\.\d+)?) ({_UNITS})\b(?: (\d\d)\b)?")
_SECONDS: Mapping[str, float] = {"s": 1.0, "min": 60.0, "h": 3600.0, "d": 86400.0}
_REST_S: Mapping[str, float] = {"h": 60.0, "d": 3600.0}
"""What the second number of a long duration counts."""
_LEFT = frozenset({"GiB", "GB", "tokens/s", "MHz"})


def is_much_worse(before: str, now: str) -> bool:
    """Of two lines of one alert, as they were told and as they are."""
    pairs = zip(_quantities(before), _quantities(now), strict=False)
    return any(old[0] == new[0] and _is_worse(*old, new[1]) for old, new in pairs)


def _is_worse(unit: str, old: float, new: float) -> bool:
    if unit in _LEFT:
        return old > 0.0 and new <= old / MUCH
    return new >= MUCH * old > 0.0


def _quantities(line: str) -> list[tuple[str, float]]:
    """Each with its unit; durations in seconds: `14 min`, `1 h 05`."""
    found = []
    for number, unit, rest in _QUANTITY.findall(line):
        if unit in _SECONDS:
            seconds = float(number) * _SECONDS[unit] + _REST_S.get(unit, 0.0) * float(rest or 0)
            found.append(("s", seconds))
        else:
            found.append((unit.removesuffix("s") if unit == "rollouts" else unit, float(number)))
    return found
