"""Line formats of Miles (logging_utils.py), Ray and tqdm, as plain text."""

from __future__ import annotations

import datetime as dt
from dataclasses import dataclass

CYAN, GREEN, RED, YELLOW, RESET = "\x1b[36m", "\x1b[32m", "\x1b[31m", "\x1b[33m", "\x1b[0m"
DEFAULT_COLOUR = "\x1b[39m"


@dataclass(frozen=True, slots=True)
class Actor:
    """A Ray actor, and the process name Miles gives it in its log lines."""

    kind: str
    pid: int
    process: str = ""

    @property
    def prefix(self) -> str:
        return f"{CYAN}({self.kind} pid={self.pid}){RESET} "


def now() -> dt.datetime:
    return dt.datetime.now().astimezone()


def miles(at: dt.datetime, process: str, place: str, message: str) -> str:
    """A record of Miles; `place` is its source file and line."""
    return f"[{at:%Y-%m-%d %H:%M:%S}.{at.microsecond // 1000:03d} {process}] {place} - {message}"


def ray_cli(at: dt.datetime, level: str, place: str, message: str) -> str:
    """A line of the `ray` command itself."""
    stamp = f"{at:%Y-%m-%d %H:%M:%S},{at.microsecond // 1000:03d}"
    return f"{stamp}\t{level} {place} -- {message}"


def sglang(at: dt.datetime, message: str) -> str:
    return f"[{at:%Y-%m-%d %H:%M:%S}] {message}"


_EIGHTHS = " ▏▎▍▌▋▊▉█"
_WIDTH = 10


def bar(name: str, done: int, total: int, elapsed_s: float) -> str:
    """A tqdm meter that knows no terminal width."""
    ratio = done / total
    eighths = int(ratio * _WIDTH * 8)
    drawn = "█" * (eighths // 8)
    if len(drawn) < _WIDTH:
        drawn += _EIGHTHS[eighths % 8] + " " * (_WIDTH - len(drawn) - 1)
    rate = done / elapsed_s if done and elapsed_s > 0 else None
    left = "?" if rate is None else _clock((total - done) / rate)
    clocks = f"{_clock(elapsed_s)}<{left}, {_rate(rate)}"
    return f"{name}: {ratio * 100:3.0f}%|{drawn}| {done}/{total} [{clocks}]"


def _rate(rate: float | None) -> str:
    if rate is None:
        return "?it/s"
    return f"{1 / rate:5.2f}s/it" if rate < 1 else f"{rate:5.2f}it/s"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours:d}:{minutes:02d}:{rest:02d}" if hours else f"{minutes:02d}:{rest:02d}"
