"""A desk that plans what `fake_plans` has, and begins nothing."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import fake_plans

from tui.model.action import ActionKind
from tui.model.plan import ActionPlan, Ask, Refusal

_PATIENCE_S = 30.0


class FakeDesk:
    """Tells what it was asked; waits before it answers while its gate is closed."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, Any]] = []
        self.gate = threading.Event()
        self.gate.set()
        self.threads: set[threading.Thread] = set()
        self.answer: Callable[[Ask], ActionPlan | Refusal] = planned
        self.why_not = ""

    def asked(self, what: str) -> list[Any]:
        """What it was given for these calls."""
        return [given for name, given in self.calls if name == what]

    def plan(self, ask: Ask) -> ActionPlan | Refusal:
        self._take("plan", ask)
        return self.answer(ask)

    def launch(self, plan: ActionPlan) -> str:
        return self._take("launch", plan)

    def finish(self, action_id: str) -> str:
        return self._take("finish", action_id)

    def give_up(self, action_id: str) -> str:
        return self._take("give up", action_id)

    def cancel(self, action_id: str) -> str:
        return self._take("cancel", action_id)

    def pause_guard(self, *, paused: bool) -> str:
        return self._take("pause guard", paused)

    def _take(self, what: str, given: Any) -> str:
        self.calls.append((what, given))
        self.threads.add(threading.current_thread())
        assert self.gate.wait(_PATIENCE_S)
        return self.why_not


def planned(ask: Ask) -> ActionPlan | Refusal:
    """The plan of each kind."""
    match ask.kind:
        case ActionKind.RESUME:
            return fake_plans.kill_and_resume(ask)
        case ActionKind.SAVE:
            return fake_plans.save_now()
        case ActionKind.STOP:
            return fake_plans.stop_unsaved(ask)
        case ActionKind.ROLLBACK:
            return fake_plans.roll_back(ask.iteration)
        case ActionKind.CONVERT:
            return fake_plans.convert(ask.iteration)
        case ActionKind.UNDO | ActionKind.AUTOPSY:
            return fake_plans.plan(ask.kind)
