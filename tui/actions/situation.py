"""Everything a plan is made from, looked at once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tui.model.action import ActionRecord
from tui.model.recipe import Recipe
from tui.model.snapshot import Snapshot
from tui.model.target import RunTarget
from tui.runs.merge import FoundRun


@dataclass(frozen=True, slots=True, kw_only=True)
class Situation:
    """One run at one moment."""

    snapshot: Snapshot
    """What is known of it, judged."""
    run: FoundRun | None
    """What was seen of it running, with what must not be shown; None: nothing of it runs."""
    target: RunTarget | None
    """What there is to stop; None: nothing of it runs."""
    recipe: Recipe | None
    """How it was started; None: that was never seen."""
    run_id: str
    folder: Path
    """Its state folder."""
    records: tuple[ActionRecord, ...] = ()
    """What was done to it, in order."""
    at: float
    """Epoch seconds."""

    @property
    def lives(self) -> bool:
        """Something of it runs."""
        return self.target is not None

    @property
    def name(self) -> str:
        return self.snapshot.attachment.name
