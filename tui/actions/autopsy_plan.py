"""The plan of an autopsy, and its one step, which is never in the way of what comes after."""

from __future__ import annotations

import time

from tui.actions.autopsy import autopsy
from tui.actions.context import Context, Done
from tui.actions.launch import new_id
from tui.actions.situation import Situation
from tui.config import Config
from tui.model.action import ActionKind
from tui.model.plan import ActionPlan, Refusal, Row, TakeAutopsy
from tui.watch import monitor_of

WRITES_DOWN = "stacks, engine counters, memory, last lines, beside the log; within 20 s"
_LOOK_S = 4.0


def plan_autopsy(situation: Situation) -> ActionPlan | Refusal:
    """Write down what the processes are at, and change nothing."""
    if situation.target is None:
        return Refusal(reason=f"nothing of {situation.name} runs here that could be looked at")
    return ActionPlan(
        id=new_id(ActionKind.AUTOPSY, situation.at),
        kind=ActionKind.AUTOPSY,
        title=f"Autopsy of {situation.name}",
        run_id=situation.run_id,
        run_name=situation.name,
        made_at=situation.at,
        rows=(
            Row(label="Writes", text=WRITES_DOWN),
            Row(label="Changes", text="nothing: its processes are not held while they are read"),
        ),
        steps=(TakeAutopsy(attachment=situation.snapshot.attachment),),
        go="take it",
    )


def perform(step: TakeAutopsy, context: Context) -> Done:
    """Look at the run once, then at each of its processes."""
    until = time.monotonic() + step.deadline_s
    context.note("looking at its processes")
    monitor = monitor_of(step.attachment, Config(), at=context.clock())
    snapshot = monitor.once(deadline_s=min(_LOOK_S, step.deadline_s / 2))
    report = autopsy(snapshot, context.folder, max(1.0, until - time.monotonic()))
    return Done(line=report.line, facts={"autopsy": report.folder})
