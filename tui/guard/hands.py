"""Does one thing at a time on a thread of its own, so that watching goes on meanwhile."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass

from tui.guard.decision import Decision
from tui.guard.seams import Planner
from tui.model.action import ActionKind
from tui.model.plan import ActionPlan, Refusal, StopRun

_LOG = logging.getLogger("milepost")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """What became of a decision."""

    decision: Decision
    action: str = ""
    """Id of what was begun; empty: nothing was."""
    refusal: str = ""
    plan: ActionPlan | None = None


class Hands:
    """Plans and launches."""

    def __init__(self, desk: Planner, *, dry_run: bool) -> None:
        self._desk = desk
        self._dry_run = dry_run
        self._thread: threading.Thread | None = None
        self._result: Result | None = None

    @property
    def are_busy(self) -> bool:
        """Something is being done, or its result was not taken yet."""
        return self._thread is not None

    def begin(self, decision: Decision, write_down: Callable[[ActionPlan], str]) -> None:
        """Do it.

        Args:
            decision: an action to begin or to finish.
            write_down: notes what is about to be done; says why it could not be, and then it is
                not done.
        """

        def work() -> None:
            try:
                self._result = self._done(decision, write_down)
            except Exception as fault:  # noqa: BLE001 - a defect in a plan must not end the watch
                _LOG.exception("what was decided could not be done")
                self._result = Result(decision=decision, refusal=f"{type(fault).__name__}: {fault}")

        self._thread = threading.Thread(target=work, name="guard-hands", daemon=True)
        self._thread.start()

    def result(self) -> Result | None:
        """What came of it; None while it goes on."""
        if self._thread is None or self._thread.is_alive():
            return None
        self._thread, result = None, self._result
        self._result = None
        return result

    def _done(self, decision: Decision, write_down: Callable[[ActionPlan], str]) -> Result:
        if decision.ask is None:
            refusal = "" if self._dry_run else self._desk.finish(decision.action)
            return Result(decision=decision, action=decision.action, refusal=refusal)
        plan = self._desk.plan(decision.ask)
        if isinstance(plan, Refusal):
            return Result(decision=decision, refusal=plan.reason)
        refusal = misfit(plan, decision)
        if not refusal and not self._dry_run:
            refusal = write_down(plan) or self._desk.launch(plan)
        return Result(
            decision=decision,
            action="" if refusal or self._dry_run else plan.id,
            refusal=refusal,
            plan=plan,
        )


def misfit(plan: ActionPlan, decision: Decision) -> str:
    """Why the plan does not fit what it was decided on: whoever planned has looked again."""
    stop = next((step for step in plan.steps if isinstance(step, StopRun)), None)
    if decision.needs_stop and stop is None:
        return "it was seen alive, and nothing that could be stopped was found"
    is_resume = plan.kind is ActionKind.RESUME
    if is_resume and not decision.needs_stop and stop is not None and stop.target.driver:
        return f"it was taken for dead, and its driver was found: process {stop.target.driver.pid}"
    return ""
