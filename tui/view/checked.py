"""What reading a checkpoint's bytes came to, or how far it is: in the table, and on its page."""

from __future__ import annotations

import math
from dataclasses import dataclass

from tui.model.checkpoint import Checkpoint, Soundness, Verification, Verifying
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs
from tui.view.compose import joined, words
from tui.view.numbers import age, counted, percent, size
from tui.view.rows import Role, Row, Span


@dataclass(frozen=True, slots=True)
class Told:
    """What there is to say of one checkpoint."""

    forms: tuple[Row, ...] = ()
    """Longest first; none where it was never checked."""
    details: tuple[Row, ...] = ()
    """What is worth saying beside it where there is room, longest first."""

    def in_one(self) -> tuple[Row, ...]:
        """The forms with the details behind the longest, and without."""
        behind = (joined((self.forms[0], details), "  ") for details in self.details)
        return (*behind, *self.forms)


def verifying(snapshot: Snapshot, each: Checkpoint) -> Verifying | None:
    """The verify of this checkpoint that a person asked for."""
    current = snapshot.verifying
    return current if current is not None and current.path == each.path else None


def checked(snapshot: Snapshot, each: Checkpoint) -> Told:
    """For a row of the table."""
    current = verifying(snapshot, each)
    if current is not None:
        return _gone_wrong(current) if current.fault else _under_way(current)
    return Told() if each.verification is None else _result(each.verification, snapshot.now)


def progress(current: Verifying) -> str:
    """How far, in one word."""
    if not current.total_bytes:
        return "begins"
    return percent(int(100 * current.done_bytes / current.total_bytes) / 100)


def amount(current: Verifying) -> str:
    """How much of how much."""
    return f"{size(current.done_bytes)} of {size(current.total_bytes)}"


def pace(current: Verifying) -> tuple[str, str] | None:
    """How much a second, and how long it will still take; None before that can be told."""
    if not current.done_bytes or not 0 < current.seconds < math.inf:
        return None
    rate = current.done_bytes / current.seconds
    left_s = (current.total_bytes - current.done_bytes) / rate
    return f"{size(rate)}/s", f"{age(max(1.0, left_s))} left"


def _under_way(current: Verifying) -> Told:
    short = f"{glyphs.BUSY} {progress(current)}"
    told = pace(current)
    if told is None:
        return Told((words(short, Role.BUSY),))
    rate, left = told
    return Told(
        (words(f"{short}, {left}", Role.BUSY), words(short, Role.BUSY)),
        (words(f"{amount(current)}, {rate}", Role.MUTED), words(amount(current), Role.MUTED)),
    )


def _gone_wrong(current: Verifying) -> Told:
    short = words(f"{glyphs.UNKNOWN} not verified", Role.WARNING)
    return Told((short,), (words(harmless(current.fault), Role.WARNING),))


def _result(seen: Verification, now: float) -> Told:
    ago = f" {age(now - seen.at)} ago"
    match seen.soundness:
        case Soundness.SOUND:
            short = words("sums ok", Role.GOOD)
            return Told(((*short, Span(ago, Role.MUTED)), short))
        case Soundness.NO_SUMS:
            return Told((words(f"no sums{ago}", Role.MUTED), words("no sums", Role.MUTED)))
        case Soundness.NOT_FINITE:
            count = counted(seen.non_finite, "value")
            short = words(f"{glyphs.BAD} not finite", Role.BAD)
            return Told((short,), (words(f"{count} nan or inf", Role.BAD),))
        case Soundness.DAMAGED:
            faults = (words(harmless(fault), Role.BAD) for fault in seen.faults[:1])
            return Told((words(f"{glyphs.BAD} damaged", Role.BAD),), tuple(faults))
