"""What a step is given: clock, journal, and whether it was entered before."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from tui.model.journal import Entry, Mark
from tui.model.plan import ActionPlan
from tui.runs.journal import Journal


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """One entry into one step of one action."""

    plan: ActionPlan
    folder: Path
    """The run's state folder."""
    journal: Journal
    step: int
    again: bool
    """It was begun before, by a process that is gone: its work may be done, wholly or in part."""
    facts: dict[str, str] = field(default_factory=dict)
    """What was written down so far, by this step too."""
    clock: Callable[[], float] = time.time
    pause: Callable[[float], None] = time.sleep

    def note(self, line: str, **facts: str) -> None:
        """Write down how far it is. Facts are there again when the step is entered again."""
        self.facts.update(facts)
        self.journal.write(
            Entry(
                at=self.clock(),
                action=self.plan.id,
                kind=self.plan.kind,
                mark=Mark.NOTED,
                step=self.step,
                line=line,
                facts=facts,
            )
        )

    @property
    def is_cancelled(self) -> bool:
        """A person asked to leave off; for steps that can."""
        return cancel_file(self.folder, self.plan.id).exists()

    def wait_for(
        self, condition: Callable[[], bool], deadline_s: float, *, every_s: float = 0.1
    ) -> bool:
        """Whether the condition came true within that time."""
        end = time.monotonic() + deadline_s
        while not condition():
            if time.monotonic() >= end:
                return False
            self.pause(every_s)
        return True


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """What a step came to."""

    line: str
    facts: Mapping[str, str] = field(default_factory=dict)


def plan_file(folder: Path, action: str) -> Path:
    """Where a plan is kept until and after it is carried out."""
    return folder / "plans" / f"{action}.json"


def cancel_file(folder: Path, action: str) -> Path:
    """There when a person asked the action to leave off."""
    return folder / "plans" / f"{action}.cancel"
