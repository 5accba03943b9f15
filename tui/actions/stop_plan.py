"""The plan of a stop: save first where the run can, then end it."""

from __future__ import annotations

from tui.actions import preflight
from tui.actions.autopsy_plan import WRITES_DOWN
from tui.actions.freeing import RAY_PORTS, available_after, ports_of
from tui.actions.launch import new_id
from tui.actions.save_plan import plan_save
from tui.actions.situation import Situation
from tui.model.action import ActionKind
from tui.model.plan import ActionPlan, Ask, AskToSave, Refusal, Row, Step, StopRun, TakeAutopsy
from tui.model.snapshot import Level, RunState
from tui.model.target import RunTarget

_HANGS = frozenset({RunState.STALLED})


def plan_stop(situation: Situation, ask: Ask) -> ActionPlan | Refusal:
    """End the run and leave it ended."""
    if situation.target is None:
        return Refusal(
            reason=f"nothing of {situation.name} runs here that could be stopped",
            remedy="`milepost runs` lists what runs on this machine",
        )
    rows, steps = stopping(situation, situation.target, ask)
    saves_first = any(isinstance(step, AskToSave) for step in steps)
    return ActionPlan(
        id=new_id(ActionKind.STOP, situation.at),
        kind=ActionKind.STOP,
        title=f"Stop {situation.name}",
        run_id=situation.run_id,
        run_name=situation.name,
        made_at=situation.at,
        rows=tuple(rows),
        steps=tuple(steps),
        go="save, then stop" if saves_first else "stop without saving",
        typed_name="" if saves_first else situation.name,
    )


def stopping(situation: Situation, target: RunTarget, ask: Ask) -> tuple[list[Row], list[Step]]:
    """What is said and done to end it."""
    saving = plan_save(situation) if ask.save_first is not False else None
    rows = [preflight.why(situation), *_lost(situation, saving)]
    steps: list[Step] = []
    if isinstance(saving, ActionPlan):
        steps += saving.steps
    rows.append(_save_row(saving, ask))
    if takes_autopsy(situation, ask):
        steps.append(TakeAutopsy(attachment=situation.snapshot.attachment))
        rows.append(Row(label="Autopsy", text=WRITES_DOWN))
    rows.append(preflight.will_stop(target, situation.at))
    steps.append(stop_step(situation, target))
    return rows, steps


def stop_step(situation: Situation, target: RunTarget) -> StopRun:
    """End it, and wait until what it held is free."""
    ports = ports_of(situation.snapshot)
    if target.container is None:
        # A cluster that the job ran on goes on without it, and keeps its ports.
        ports = tuple(port for port in ports if port not in RAY_PORTS)
    is_demo = situation.snapshot.attachment.demo  # whose memory nothing gives back
    available = 0 if is_demo else available_after(situation.snapshot, target.processes)
    return StopRun(target=target, ports=ports, available_bytes=available)


def takes_autopsy(situation: Situation, ask: Ask) -> bool:
    """As asked; else where the run hangs, which nothing tells of once it is gone."""
    if ask.take_autopsy is not None:
        return ask.take_autopsy
    return situation.snapshot.verdict.state in _HANGS


def _lost(situation: Situation, saving: ActionPlan | Refusal | None) -> list[Row]:
    risk = situation.snapshot.verdict.risk
    if risk is None:
        return []
    if isinstance(saving, ActionPlan):
        text = f"nothing once the save is on disk; {risk.line} until then"
        return [Row(label="You lose", text=text)]
    text = risk.line.removeprefix("a crash now costs ")
    if risk.checkpoint is not None:
        text += f", since checkpoint {risk.checkpoint}"
    return [Row(label="You lose", text=text, level=Level.WARNING)]


def _save_row(saving: ActionPlan | Refusal | None, ask: Ask) -> Row:
    match saving:
        case ActionPlan():
            text = next((row.text for row in saving.rows if row.label == "When"), "yes")
            return Row(label="Save first", text=text)
        case Refusal():
            level = Level.WARNING if ask.save_first else Level.INFO
            return Row(label="Save first", text=f"not possible: {saving.reason}", level=level)
        case None:
            return Row(label="Save first", text="no, as you chose", level=Level.WARNING)
