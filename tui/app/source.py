"""Where the screen's snapshots come from, and who acts for it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

from tui.model.launch import Attachment
from tui.model.plan import ActionPlan, Ask, Refusal
from tui.model.snapshot import Snapshot


class SnapshotSource(Protocol):
    """Makes snapshots on threads of its own. They are daemons: nobody waits for them at the end."""

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        """Begin; `publish` takes a snapshot from any thread, at once, and keeps only the newest."""

    def attach(self, attachment: Attachment) -> None:
        """Watch this from now on; a person chose it. Returns at once."""

    def verify(self, path: str | None) -> None:
        """Verify this checkpoint in place of any before; None: no more. Returns at once."""

    def stop(self) -> None:
        """Let go of what is held. What it has not done after a moment is left undone."""


class ActionDesk(Protocol):
    """Plans and begins what is done to the run that is watched.

    Every call may block for seconds: none is made in the screen's loop. Each that begins something
    answers with nothing when it has begun, else why it has not.
    """

    def plan(self, ask: Ask) -> ActionPlan | Refusal:
        """What would be done. Changes nothing."""

    def launch(self, plan: ActionPlan) -> str:
        """Begin it, in a process of its own."""

    def finish(self, action: str) -> str:
        """Go on with an action that was interrupted."""

    def give_up(self, action: str) -> str:
        """Close an action that was interrupted, as it stands."""

    def cancel(self, action: str) -> str:
        """Ask an action under way to leave off, where it can."""

    def pause_guard(self, *, paused: bool) -> str:
        """Keep the guard from acting, or let it act again."""
