"""A reading: a measured value with its time, or the reason there is none.

Absence is never 0, never None and never invented.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum
from typing import Generic, TypeVar

T = TypeVar("T")
U = TypeVar("U")


class Absence(StrEnum):
    """Why a reading has no value."""

    NOT_ASKED = "not asked"
    """Nobody has looked yet."""
    NOT_SUPPORTED = "not supported"
    """The source answered that it has no such value."""
    NO_PERMISSION = "no permission"
    MISSING = "missing"
    """The thing itself is not there: no file, no driver, no container."""
    TIMED_OUT = "timed out"
    """The source did not answer within its deadline."""
    ERROR = "error"


@dataclass(frozen=True, slots=True, kw_only=True)
class Known(Generic[T]):
    """A value and when it was measured."""

    value: T
    at: float
    """Epoch seconds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """No value, and why."""

    why: Absence
    reason: str = ""
    """One line for a person; may carry a remedy."""
    at: float = 0.0
    """Epoch seconds of the attempt."""


Reading = Known[T] | Unknown

NOT_ASKED = Unknown(why=Absence.NOT_ASKED, reason="not asked yet")


def known(value: T, at: float) -> Known[T]:
    """Short form for the many places that measure something."""
    return Known(value=value, at=at)


def value_or(reading: Known[T] | Unknown, default: U) -> T | U:
    """The value, or `default` where there is none."""
    return reading.value if isinstance(reading, Known) else default


def mapped(reading: Known[T] | Unknown, change: Callable[[T], U]) -> Known[U] | Unknown:
    """The same reading with its value changed by `change`."""
    if isinstance(reading, Unknown):
        return reading
    return Known(value=change(reading.value), at=reading.at)
