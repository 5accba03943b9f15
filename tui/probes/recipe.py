"""How the run was started, kept once for each start while it lives."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tui.model.events import Event, ProbeMissed
from tui.model.launch import Attachment
from tui.model.reading import Absence, Unknown
from tui.model.snapshot import Snapshot
from tui.runs.merge import FoundRun
from tui.runs.recipe_keeping import keep_seen
from tui.runs.state_dir import keep, run_id


class RecipeProbe:
    """Keeps the recipe of what is watched. Once that is done it looks at nothing any more."""

    name = "recipe"
    cadence_s = 5.0
    deadline_s = 10.0

    def __init__(self, look: Callable[[Attachment, float], FoundRun | None]) -> None:
        """`look` gives all that is seen of the watched run."""
        self._look = look
        self._start: tuple[str, ...] = ()
        """What tells the start apart whose recipe was seen to."""
        self._fault: Unknown | None = None

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Nothing but why it could not be kept."""
        attachment = seen.attachment
        parts = (attachment.driver_pid, attachment.container, attachment.job)
        if any(parts) and seen.story.ending is None:
            start = (run_id(attachment), *(part.value if part else "" for part in parts))
            if start != self._start and (run := self._look(attachment, now)) is not None:
                self._fault = _fault_of(run, attachment, now)
                if self._fault is None or self._fault.why is not Absence.ERROR:
                    self._start = start
        if self._fault is None:
            return ()
        return (ProbeMissed(at=now, probe=self.name, fault=self._fault),)

    def close(self) -> None:
        """Nothing is held."""


def _fault_of(run: FoundRun, attachment: Attachment, now: float) -> Unknown | None:
    """Why there is none; None too where it is only too early to tell."""
    try:
        keep(attachment)
        recipe = keep_seen(run, attachment, now)
    except OSError as fault:
        reason = f"how the run was started cannot be kept: {fault}"
        return Unknown(why=Absence.ERROR, reason=reason, at=now)
    return recipe if isinstance(recipe, Unknown) and recipe.why is not Absence.MISSING else None
