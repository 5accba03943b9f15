"""The base of all events."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """Base of all events."""

    at: float
    """Epoch seconds."""
