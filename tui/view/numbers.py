"""Numbers as a tired person reads them: with their unit, and no more digits than mean something.

All functions are total: nan, infinities and negative ages have a text too.
"""

from __future__ import annotations

import math
from datetime import date

MINUTE_S, HOUR_S, DAY_S = 60, 3600, 86400
_EPOCH_ORDINAL = date(1970, 1, 1).toordinal()
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_SIZES = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_LONGEST_S = 1e11
"""Past this a time is a fault of its source, not a time."""
_LARGE, _LARGEST = 1e7, 1e15


def grouped(value: float) -> str:
    """A whole number with SI spacing: `2 281`."""
    if not math.isfinite(value):
        return _not_finite(value)
    if abs(value) >= _LARGEST:
        return number(value)
    return f"{round(value):,}".replace(",", " ")


def number(value: float, digits: int = 3) -> str:
    """A number of unknown size: `0.412`, `0.00290`, `512`, `3 120`, `1.2e-9`, `nan`."""
    if not math.isfinite(value):
        return _not_finite(value)
    if value == 0:
        return "0"
    rounded = float(f"{value:.{digits - 1}e}")
    if not 1e-3 <= abs(rounded) < _LARGE:
        mantissa, exponent = f"{value:.1e}".split("e")
        return f"{mantissa.removesuffix('.0')}e{int(exponent)}"
    if abs(rounded) >= 1000 and digits > 2:
        return grouped(value)
    if abs(rounded) >= 100:
        return grouped(rounded)
    return f"{rounded:#.{digits}g}".rstrip(".")


def rough(value: float) -> str:
    """A number of which only the size matters: `0.047`, `150`."""
    return number(value, digits=2)


def percent(ratio: float) -> str:
    """A share: `96 %`, with one decimal below 10 % where it is not whole."""
    if not math.isfinite(ratio):
        return f"{_not_finite(ratio)} %"
    points = ratio * 100
    if abs(points) >= 1000:
        return f"{number(points)} %"
    if abs(points) < 9.95 and abs(points - round(points)) >= 0.05:
        return f"{points:.1f} %"
    return f"{round(points)} %"


def size(count_bytes: float) -> str:
    """An amount of bytes in the unit that suits it: `7.1 GiB`, `412 MiB`."""
    if not math.isfinite(count_bytes):
        return _not_finite(count_bytes)
    amount, unit = float(count_bytes), 0
    while abs(amount) >= 999.5 and unit < len(_SIZES) - 1:
        amount, unit = amount / 1024, unit + 1
    whole = unit == 0 or abs(amount) >= 99.95
    return f"{grouped(amount) if whole else f'{amount:.1f}'} {_SIZES[unit]}"


def gib(count_bytes: float) -> str:
    """GiB with one decimal and without the unit, for numbers that stand beside each other."""
    amount = count_bytes / 2**30
    return f"{amount:.1f}" if abs(amount) < 999.95 else number(amount)


def clock(seconds: float) -> str:
    """A running clock: `0:34`, `14:02`, `1:04:30`."""
    whole = _whole_seconds(seconds)
    if whole is None:
        return "?"
    hours, rest = divmod(whole, HOUR_S)
    minutes, left = divmod(rest, MINUTE_S)
    if hours:
        return f"{hours}:{minutes:02d}:{left:02d}"
    return f"{minutes}:{left:02d}"


def duration(seconds: float) -> str:
    """How long something takes: `0.2 s`, `2:21`, `14 min`, `1 h 01`, `1 d 04 h`."""
    whole = _whole_seconds(seconds)
    if whole is None:
        return "?"
    if seconds < 1:
        return f"{max(0.0, seconds):.1f} s"
    if whole < 10 * MINUTE_S:
        return clock(seconds)
    return _long(whole)


def age(seconds: float) -> str:
    """How long ago something was, no finer than it matters: `43 s`, `14 min`, `1 h 01`."""
    whole = _whole_seconds(seconds)
    if whole is None:
        return "?"
    if whole < 100:
        return f"{whole} s"
    return _long(whole)


def ago(seconds: float) -> str:
    """The age as a phrase: `3 s ago`."""
    return f"{age(seconds)} ago"


def time_of_day(at: float, utc_offset_s: int, *, seconds: bool = True) -> str:
    """`14:02:11`, or `14:02` without seconds."""
    local = _local_seconds(at, utc_offset_s)
    if local is None:
        return "--:--:--" if seconds else "--:--"
    hours, rest = divmod(local % DAY_S, HOUR_S)
    minutes, left = divmod(rest, MINUTE_S)
    return f"{hours:02d}:{minutes:02d}:{left:02d}" if seconds else f"{hours:02d}:{minutes:02d}"


def day_and_time(at: float, now: float, utc_offset_s: int) -> str:
    """When, as said from now: `18:10` today, `Tue 18:10` within six days, `3 Dec 18:10`."""
    then, today = _local_seconds(at, utc_offset_s), _local_seconds(now, utc_offset_s)
    moment = time_of_day(at, utc_offset_s, seconds=False)
    if then is None or today is None:
        return moment
    days = then // DAY_S - today // DAY_S
    if days == 0:
        return moment
    ordinal = then // DAY_S + _EPOCH_ORDINAL
    if not date.min.toordinal() <= ordinal <= date.max.toordinal():
        return moment
    day = date.fromordinal(ordinal)
    if abs(days) <= 6:
        return f"{_WEEKDAYS[day.weekday()]} {moment}"
    year = "" if abs(days) < 300 else f" {day.year}"
    return f"{day.day} {_MONTHS[day.month - 1]}{year} {moment}"


def counted(count: int, word: str) -> str:
    """`1 rollout`, `6 rollouts`."""
    return f"{grouped(count)} {word}" if count == 1 else f"{grouped(count)} {word}s"


def _long(whole: int) -> str:
    if whole < HOUR_S:
        return f"{whole // MINUTE_S} min"
    if whole < DAY_S:
        return f"{whole // HOUR_S} h {whole % HOUR_S // MINUTE_S:02d}"
    return f"{grouped(whole // DAY_S)} d {whole % DAY_S // HOUR_S:02d} h"


def _whole_seconds(seconds: float) -> int | None:
    """Negative spans, which clocks that differ can make, are 0."""
    if not math.isfinite(seconds) or seconds > _LONGEST_S:
        return None
    return max(0, int(seconds))


def _local_seconds(at: float, utc_offset_s: int) -> int | None:
    return None if not math.isfinite(at) or abs(at) > _LONGEST_S else int(at) + utc_offset_s


def _not_finite(value: float) -> str:
    if math.isnan(value):
        return "nan"
    return "inf" if value > 0 else "-inf"
