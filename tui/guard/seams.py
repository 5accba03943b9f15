"""What a guard's loop is given by others: each call returns at once and never raises."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from tui.guard.notice import Notice
from tui.model.plan import ActionPlan, Ask, Refusal
from tui.model.snapshot import Snapshot


class Teller(Protocol):
    """Who is told what is new."""

    def tell(self, notice: Notice) -> None:
        """Any thread."""


class Keeper(Protocol):
    """Who keeps what is seen."""

    def record(self, snapshot: Snapshot) -> None:
        """Called from the monitor's own thread, for each snapshot."""


class Shower(Protocol):
    """Who shows numbers to those that collect them."""

    def export(self, snapshot: Snapshot) -> None:
        """Called from the monitor's own thread, for each snapshot."""


class Watch(Protocol):
    """The monitor."""

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        """Begin; `publish` is called about once a second."""

    def verify(self, path: str | None) -> None:
        """Read this checkpoint whole."""

    def stop(self) -> None:
        """End."""


class Planner(Protocol):
    """The desk of the actions. Calls take seconds, so they are made on a thread of their own."""

    def plan(self, ask: Ask) -> ActionPlan | Refusal:
        """What would be done."""

    def launch(self, plan: ActionPlan) -> str:
        """Begin it; empty when it has begun, else why it did not."""

    def finish(self, action: str) -> str:
        """Carry on with one that was interrupted."""


class Seen(Protocol):
    """How others see that a guard watches."""

    def watch(self, folder: Path) -> None:
        """It watches the run of this state folder. Raises LockHeldError: another does."""

    def say(self, words: str, at: float) -> None:
        """What it said last."""

    def end(self, at: float) -> None:
        """It ended in order."""
