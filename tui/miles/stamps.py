"""Time stamps of a run's log, and how they map to our clock.

A log's stamps are local to its container and carry no zone. Two things are known of them: lines
arrive late but never early, and the newest stamp of a file is about as old as the file's last
write. So one offset maps them, and an application clock that jumps is noticed by arrivals.
"""

from __future__ import annotations

import calendar
from collections import deque
from functools import lru_cache

_ZONE_STEP_S, _ZONE_LIMIT_S, _ZONE_SLACK_S = 1800.0, 15 * 3600.0, 60.0
_QUARTER_S, _MTIME_SLACK_S = 900.0, 2.0
STAMP = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d"


@lru_cache(maxsize=64)
def _midnight(date: str) -> float:
    return float(calendar.timegm((int(date[:4]), int(date[5:7]), int(date[8:10]), 0, 0, 0)))


def seconds_of(stamp: str, fraction: str | None = None) -> float | None:
    """`2026-11-29 12:06:13` and its decimals as seconds, as if it were UTC. None: no such time."""
    month, day = int(stamp[5:7]), int(stamp[8:10])
    hour, minute, second = int(stamp[11:13]), int(stamp[14:16]), int(stamp[17:19])
    if not (
        stamp[:4] != "0000"
        and 1 <= month <= 12
        and 1 <= day <= 31
        and hour < 24
        and minute < 60
        and second < 61
    ):
        return None
    part = float(f"0.{fraction}") if fraction else 0.0
    return _midnight(stamp[:10]) + hour * 3600 + minute * 60 + second + part


class LogClock:
    """Maps stamps of one log to epoch seconds.

    With `live` false the stamps are taken as they are: a copied log has no other clock. Programs
    that write into one log may live in different zones; each form of line has a zone of its own,
    told by the first of its lines that stands whole hours off the lines around it.
    """

    window = 256
    late_limit_s = 120.0

    def __init__(self, *, live: bool) -> None:
        self.live = live
        self.last_at: float | None = None
        self._offset: float | None = None if live else 0.0
        self._zones: dict[str, float] = {}
        self._delays: deque[float] = deque(maxlen=self.window)

    def calibrate(self, stamp: float, written_at: float, form: str = "") -> None:
        """The newest stamp in the file was written with its last write, or some lines before it.

        So what lies between the two is a zone and a little; the zone of this form is the main one.
        """
        if self.live:
            apart = written_at - stamp
            zone = (apart + _MTIME_SLACK_S) // _QUARTER_S * _QUARTER_S
            self._offset = zone if abs(zone) <= _ZONE_LIMIT_S else apart
        if form:
            self._zones = {form: 0.0}

    def copy(self) -> LogClock:
        """A clock set like this one, for the same log read from elsewhere."""
        clock = LogClock(live=self.live)
        clock._offset = self._offset
        clock._zones = dict(self._zones)
        return clock

    def begin(self, stamp: float) -> None:
        """The first stamp of the log: what stands before it has no time of its own."""
        if self.last_at is None:
            self.last_at = stamp + (self._offset or 0.0)

    def at(self, stamp: float | None, arrival: float | None, form: str = "") -> float:
        """When a line was written, by our clock.

        Args:
            stamp: its own stamp in seconds, None when it has none.
            arrival: when we read it as it came, None for lines that were there before us.
            form: whose stamp it is; each program may have a zone of its own.
        """
        if stamp is not None and arrival is None:
            stamp += self._zone_s(stamp, form)
        self.last_at = self._at(stamp, arrival)
        return self.last_at

    def _zone_s(self, stamp: float, form: str) -> float:
        """What to add to stamps of this form to have them in the log's main zone."""
        if form not in self._zones:
            shift = 0.0
            if self._zones and self.last_at is None:
                return shift  # nothing to tell it by yet
            if self._zones and self.last_at is not None:
                apart = self.last_at - stamp - (self._offset or 0.0)
                zone = round(apart / _ZONE_STEP_S) * _ZONE_STEP_S
                if zone and abs(zone) <= _ZONE_LIMIT_S and abs(apart - zone) < _ZONE_SLACK_S:
                    shift = zone
            self._zones[form] = shift
        return self._zones[form]

    def _at(self, stamp: float | None, arrival: float | None) -> float:
        if stamp is None:
            if arrival is not None:
                return arrival
            return self.last_at if self.last_at is not None else 0.0
        if arrival is None:
            return stamp + (self._offset or 0.0)
        self._delays.append(arrival - stamp)
        self._offset = min(self._delays)
        at = stamp + self._offset
        return at if arrival - at <= self.late_limit_s else arrival
