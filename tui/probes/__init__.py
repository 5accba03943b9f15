"""Probes: each reads one source, changes nothing, and turns its library's errors into `Unknown`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from tui.model.events import Event
from tui.model.snapshot import Snapshot


class Probe(Protocol):
    """One read-only source. Called from one thread of its own, never from two."""

    @property
    def name(self) -> str:
        """Short name for messages, such as `gpu`."""

    @property
    def cadence_s(self) -> float:
        """How long to wait between two reads."""

    @property
    def deadline_s(self) -> float:
        """A read that takes longer than this is reported as missed; it is not interrupted."""

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Look once. `seen` is the newest snapshot, for addresses and phases found elsewhere."""

    def close(self) -> None:
        """Let go of what is held. Must not block for more than 0.2 s."""
