"""Whether a guard watches this run, what it may do, and what it said last."""

from __future__ import annotations

from collections.abc import Iterator

from tui.model.guard import GuardState, GuardStatus
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import glyphs
from tui.view.compose import Part, words
from tui.view.numbers import age, ago, day_and_time
from tui.view.rows import Role

_NEVER_ACTS = "none"
"""The policy of a guard that watches and tells."""


def header_part(snapshot: Snapshot, utc_offset_s: int) -> Part:
    """`guard on: resume since 14:02`; the worse it is, the longer it stays on a narrow screen."""
    guard = snapshot.guard
    if not snapshot.live:
        return Part(9, ())
    if guard is None or guard.state is GuardState.OFF:
        return Part(8, (words("guard off", Role.MUTED),), filler=True)
    told = _state(guard, snapshot.now)
    if not guard.is_on:
        short = "silent" if guard.state is GuardState.SILENT else "died"
        role = Role.WARNING
        return Part(1, (words(f"guard {told}", role), words(f"guard {short}", role)))
    acts = f": {harmless(guard.policy)}" if guard.policy != _NEVER_ACTS else ""
    long = f"guard {told}{acts}"
    if guard.paused:
        return Part(3, (words(long, Role.PAUSED), words("guard paused", Role.PAUSED)))
    since = day_and_time(guard.since, snapshot.now, utc_offset_s)
    return Part(6, (words(f"{long} since {since}", Role.GOOD), words("guard on", Role.GOOD)))


def report(snapshot: Snapshot, utc_offset_s: int) -> Iterator[tuple[str, Role]]:
    """All that is known of it, a text each."""
    guard = snapshot.guard
    if not snapshot.live:
        return
    if guard is None:
        yield "off: `milepost guard` watches when nobody looks", Role.MUTED
        return
    since = day_and_time(guard.since, snapshot.now, utc_offset_s)
    told = f"{_state(guard, snapshot.now)}: policy {harmless(guard.policy)}, since {since}"
    yield f"{told}, process {guard.pid}", _ROLES[guard.state]
    if guard.is_on and guard.paused:
        yield f"paused by {harmless(guard.paused)}: it tells, and does not act", Role.PAUSED
    if guard.words:
        yield f"{harmless(guard.words)}, {ago(snapshot.now - guard.said_at)}", Role.TEXT
    for channel in guard.channels if guard.is_on else ():
        is_bad = "not told" in channel
        yield f"{glyphs.DOT} {harmless(channel)}", Role.WARNING if is_bad else Role.MUTED


def _state(guard: GuardStatus, now: float) -> str:
    match guard.state:
        case GuardState.ON:
            return "paused" if guard.paused else "on"
        case GuardState.SILENT:
            return f"silent for {age(now - guard.seen_at)}"
        case GuardState.DEAD:
            return f"died {ago(now - guard.seen_at)}"
        case GuardState.OFF:
            return f"off, ended {ago(now - guard.seen_at)}"


_ROLES = {
    GuardState.ON: Role.GOOD,
    GuardState.SILENT: Role.WARNING,
    GuardState.DEAD: Role.WARNING,
    GuardState.OFF: Role.MUTED,
}
