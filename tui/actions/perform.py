"""Which function carries out which step."""

from __future__ import annotations

from collections.abc import Mapping

from tui.actions import (
    autopsy_plan,
    converting,
    moving,
    proving,
    run_stopping,
    saving,
    starting,
)
from tui.actions.executor import Perform
from tui.model.plan import (
    AskToSave,
    ConvertCheckpoint,
    MoveAside,
    MoveBack,
    ProveStart,
    StartRun,
    StopRun,
    TakeAutopsy,
    WriteTracker,
)

PERFORMERS: Mapping[type, Perform] = {
    AskToSave: saving.perform,
    TakeAutopsy: autopsy_plan.perform,
    StopRun: run_stopping.perform,
    MoveAside: moving.move_aside,
    MoveBack: moving.move_back,
    WriteTracker: moving.write_tracker,
    StartRun: starting.perform,
    ProveStart: proving.perform,
    ConvertCheckpoint: converting.perform,
}
