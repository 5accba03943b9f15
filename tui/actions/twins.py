"""Another start of the same run: two that save to one folder destroy each other's checkpoints."""

from __future__ import annotations

from tui.actions.context import Context
from tui.actions.errors import StepFailed
from tui.attach import all_runs
from tui.model.launch import ListedRun
from tui.runs.listing import IDLE
from tui.runs.state_dir import run_id

_LINGERS_S = 10.0
"""What was just stopped is gone by then, for Docker and Ray too."""


def living_twin(run: str, at: float) -> ListedRun | None:
    """What runs now and saves to the folder of the run with that id."""
    return next((each for each in all_runs(at)[0] if _saves_for(each, run)), None)


def refuse_second(context: Context) -> None:
    """Start nothing where the run goes on already. Raises StepFailed."""
    run = context.plan.run_id
    if context.wait_for(lambda: living_twin(run, context.clock()) is None, _LINGERS_S, every_s=0.5):
        return
    twin = living_twin(run, context.clock())
    if twin is not None:
        raise StepFailed(
            f"{words_of(twin)} saves to the same folder already: a second one was not started",
            "watch that one",
        )


def words_of(twin: ListedRun) -> str:
    """It, in words."""
    return f"{twin.attachment.name} ({', '.join(twin.found_by)})"


def _saves_for(listed: ListedRun, run: str) -> bool:
    if listed.state == IDLE or listed.attachment.checkpoints is None:
        return False
    return run_id(listed.attachment) == run
