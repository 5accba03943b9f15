"""What a guard leaves in the run's state folder for others to see, and what a person tells it.

The lock says whether it lives, the lock's file when it gave a sign of life last, the card what it
is, and the pause file, which outlives it, that it must not act.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from tui.model.codec import decoded, encoded
from tui.model.guard import GuardState, GuardStatus
from tui.runs.lock import holder_of
from tui.runs.state_dir import made

LOCK, CARD, PAUSE = "guard.lock", "guard.json", "guard.paused"
SILENT_S = 60.0
_VERSION = 1
_BY_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class GuardCard:
    """What a guard says of itself."""

    pid: int
    policy: str
    since: float
    words: str = ""
    said_at: float = 0.0
    channels: tuple[str, ...] = ()
    ended_at: float = 0.0
    """0.0 while it watches."""


def show(folder: Path, card: GuardCard) -> None:
    """Put it where others look. Raises OSError."""
    file = folder / CARD
    beside = folder / f".{CARD}.{os.getpid()}"
    number = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    try:
        with os.fdopen(number, "w", encoding="utf-8") as out:
            json.dump({"milepost_guard": _VERSION, **encoded(card)}, out)
        beside.replace(file)
    except OSError:
        beside.unlink(missing_ok=True)
        raise


def guard_of(folder: Path, now: float) -> GuardStatus | None:
    """The newest guard of the run of that state folder; None: none was ever there."""
    card = _card(folder)
    if card is None:
        return None
    holder = holder_of(folder, LOCK)
    if holder is not None and holder != holder_text(card.pid):
        return None  # one that has begun this instant, and has shown no card yet
    seen_at = _touched_at(folder / LOCK)
    return GuardStatus(
        state=_state(card, is_held=holder is not None, silent_s=now - seen_at),
        pid=card.pid,
        policy=card.policy,
        since=card.since,
        seen_at=card.ended_at or seen_at,
        words=card.words,
        said_at=card.said_at,
        paused=paused_by(folder),
        channels=card.channels,
    )


def holder_text(pid: int) -> str:
    """What a guard's lock says of its holder."""
    return f"guard, process {pid}"


def paused_by(folder: Path) -> str:
    """Who wants no guard to act on that run; empty: nobody does."""
    try:
        by = (folder / PAUSE).read_text(encoding="utf-8", errors="replace")
    except FileNotFoundError:
        return ""
    except OSError:
        by = ""
    return by.strip()[:_BY_CHARS] or "somebody"


def pause(folder: Path, by: str) -> None:
    """Keep guards from acting until told otherwise. Raises OSError."""
    (made(folder) / PAUSE).write_text(by, encoding="utf-8")


def unpause(folder: Path) -> None:
    """Let guards act again, as their policy allows. Raises OSError."""
    (folder / PAUSE).unlink(missing_ok=True)


def _state(card: GuardCard, *, is_held: bool, silent_s: float) -> GuardState:
    if card.ended_at:
        return GuardState.OFF
    if not is_held:
        return GuardState.DEAD
    return GuardState.SILENT if silent_s > SILENT_S else GuardState.ON


def _card(folder: Path) -> GuardCard | None:
    with suppress(OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        document = json.loads((folder / CARD).read_text(encoding="utf-8"))
        if document.pop("milepost_guard", None) == _VERSION:
            card = decoded(document, GuardCard)
            return card if isinstance(card, GuardCard) else None
    return None


def _touched_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except OSError:
        return 0.0
