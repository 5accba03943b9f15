"""Every fault of the demo, watched by the real monitor: it must be told, and told right.

The same run in the same seconds shows on the screen; `tests/app` holds that rows follow snapshots.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from tui.cli.commands import demo_attachment, demo_config
from tui.config import Config
from tui.demo.faults import FAULTS
from tui.demo.launch import start
from tui.model.engine import EngineState
from tui.model.snapshot import Resume, RunState, Snapshot
from tui.watch import monitor_of

SPEED = 60.0
DEADLINE_S = 300.0

Seen = Callable[[Snapshot], bool]


def alerted(*codes: str) -> Seen:
    return lambda snapshot: set(codes) <= {alert.code for alert in snapshot.verdict.alerts}


def ended(state: RunState, words: str) -> Seen:
    def seen(snapshot: Snapshot) -> bool:
        cause = snapshot.verdict.cause
        return snapshot.verdict.state is state and cause is not None and words in cause.line

    return seen


def engine_is(state: EngineState) -> Seen:
    return lambda snapshot: any(engine.state is state for engine in snapshot.verdict.engines)


def both(first: Seen, second: Seen) -> Seen:
    return lambda snapshot: first(snapshot) and second(snapshot)


EXPECTED: dict[str, Seen] = {
    "engine-dies": ended(RunState.FAILED, "the engines could not be reached"),
    "engine-hangs": both(alerted("engine-suspect", "stalled"), engine_is(EngineState.SUSPECT)),
    "stall": lambda seen: (
        seen.verdict.state is RunState.STALLED and "in actor_train" in seen.verdict.reason
    ),
    "nan": both(alerted("non-finite"), lambda seen: seen.verdict.state is RunState.RUNNING),
    "disk-full": both(
        ended(RunState.FAILED, "while saving a checkpoint"), alerted("checkpoint-partial")
    ),
    "trainer-dies": ended(RunState.FAILED, "a worker process died"),
    "fresh-start": lambda seen: seen.verdict.resume.outcome is Resume.SILENT_FRESH,
    "memory-floor": alerted("memory-floor"),
    "save-killed-0": both(ended(RunState.CRASHED, ""), alerted("checkpoint-partial")),
    "save-killed-1": both(ended(RunState.CRASHED, ""), alerted("checkpoint-partial")),
    "save-killed-2": both(ended(RunState.CRASHED, ""), alerted("checkpoint-partial")),
    "save-killed-3": both(ended(RunState.CRASHED, ""), alerted("checkpoint-partial")),
    "save-killed-4": both(ended(RunState.CRASHED, ""), alerted("checkpoint-partial")),
    "save-killed-5": both(ended(RunState.CRASHED, ""), alerted("checkpoint-partial")),
    "save-killed-6": ended(RunState.CRASHED, ""),
    "save-killed-7": both(ended(RunState.CRASHED, ""), alerted("data-state-missing")),
    "save-killed-8": ended(RunState.CRASHED, ""),
}


def test_every_fault_is_expected_to_show() -> None:
    assert set(EXPECTED) == set(FAULTS)


@pytest.mark.parametrize("fault", sorted(EXPECTED))
def test_a_fault_shows(fault: str, tmp_path: Path) -> None:
    run = start(
        tmp_path,
        speed=SPEED,
        faults=(f"{fault}@3",),
        save_interval=2,
        eval_interval=100,
        num_rollout=1000,
    )
    config = demo_config(Config(interval_s=0.2), SPEED)
    monitor = monitor_of(demo_attachment(run), config, at=time.time(), demo_folder=run.directory)
    told, shown = threading.Event(), EXPECTED[fault]
    try:
        monitor.start(lambda snapshot: told.set() if shown(snapshot) else None)
        is_told = told.wait(DEADLINE_S)
        verdict = monitor.latest.verdict
        assert is_told, f"{verdict.state} {verdict.reason} {[a.code for a in verdict.alerts]}"
    finally:
        monitor.stop()
        run.stop()


def test_a_healthy_run_raises_no_alert(tmp_path: Path) -> None:
    run = start(tmp_path, speed=100.0, save_interval=5, eval_interval=10, num_rollout=30)
    config = demo_config(Config(interval_s=0.1), 100.0)
    monitor = monitor_of(demo_attachment(run), config, at=time.time(), demo_folder=run.directory)
    over = threading.Event()
    try:
        monitor.start(lambda seen: over.set() if seen.verdict.state is RunState.FINISHED else None)
        assert over.wait(DEADLINE_S)
    finally:
        monitor.stop()
        run.stop()

    assert [record.alert.line for record in monitor.latest.alert_log] == []
    assert monitor.latest.story.rollouts_done == 30
