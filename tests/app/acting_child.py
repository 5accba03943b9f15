"""A screen on a run that hangs, with a desk that takes a moment for everything it is asked."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace

import fake_plans
import fakes
from fake_desk import FakeDesk

from tui.app.options import ScreenOptions
from tui.app.run import run_app
from tui.model.launch import Attachment
from tui.model.plan import ActionPlan, Ask, Refusal
from tui.model.snapshot import Snapshot

_TICK_S = 0.2
_LOOK_S = 0.5


class Run:
    """Publishes as long as the screen is open; what was launched is under way from then on."""

    def __init__(self) -> None:
        self.snapshot = fakes.stalled()

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        threading.Thread(target=self._run, args=(publish,), daemon=True).start()

    def _run(self, publish: Callable[[Snapshot], None]) -> None:
        for tick in range(1_000_000):
            publish(replace(self.snapshot, now=self.snapshot.now + tick))
            time.sleep(_TICK_S)

    def attach(self, attachment: Attachment) -> None:
        """There is nothing to choose."""

    def verify(self, path: str | None) -> None:
        """There are no bytes to read."""

    def stop(self) -> None:
        """The thread is a daemon."""


class SlowDesk(FakeDesk):
    """Has the run show what it launched."""

    def __init__(self, run: Run) -> None:
        super().__init__()
        self._of = run

    def plan(self, ask: Ask) -> ActionPlan | Refusal:
        time.sleep(_LOOK_S)
        return super().plan(ask)

    def launch(self, plan: ActionPlan) -> str:
        time.sleep(_LOOK_S)
        begun = fake_plans.record(id=plan.id, title=plan.title)
        self._of.snapshot = replace(
            self._of.snapshot,
            actions=(*self._of.snapshot.actions, begun),
            action_holder=begun.id,
        )
        return super().launch(plan)


if __name__ == "__main__":
    run = Run()
    sys.exit(run_app(run, ScreenOptions(), SlowDesk(run)))
