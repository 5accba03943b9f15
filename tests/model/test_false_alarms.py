"""What looks like a fault and is none, and what nobody can tell: each once the cause of an alarm."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import fakes
import logs
import pytest
from fake_box import NOW, container, engine_track, processes
from fake_run import attachment, checkpoint, story, tree

from tui.model import events
from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.engine import EngineMetrics, EngineProbe, EngineState
from tui.model.judge import judge
from tui.model.launch import Found, ProcessTree
from tui.model.progress import PhaseClock, Progress
from tui.model.reading import Absence, Unknown, known
from tui.model.reduce import reduce, reduced
from tui.model.snapshot import LogStatus, RunState, Snapshot

SILENT_S = 900.0
TIMED_OUT = Unknown(why=Absence.TIMED_OUT, reason="no answer within 3 s", at=NOW)


def codes(snapshot: Snapshot) -> set[str]:
    return {alert.code for alert in judge(snapshot).alerts}


def silent(phase: str = "actor_train", **changes: Any) -> Snapshot:
    """A run that lives and was not heard to move for a quarter of an hour."""
    at = NOW - SILENT_S
    told = story(
        phase=PhaseClock(name=phase, since=at),
        open_timers=(),
        progress=Progress(at=at, what=f"{phase} started"),
        last_line_at=at,
    )
    return fakes.running(story=told, **changes)


def test_silence_of_what_lives_is_a_stall() -> None:
    assert judge(silent()).state is RunState.STALLED


@pytest.mark.parametrize(
    "changes",
    [
        {"missed": {"log": TIMED_OUT}},
        {"log": LogStatus(path="runs/plain.log", fault=TIMED_OUT)},
    ],
    ids=["disk hangs", "cannot be read"],
)
def test_a_log_that_cannot_be_read_tells_nothing_of_the_run(changes: dict[str, Any]) -> None:
    verdict = judge(silent(**changes))

    assert verdict.state is RunState.UNKNOWN
    assert "the log cannot be read: no answer within 3 s" in verdict.reason
    assert "stalled" not in {alert.code for alert in verdict.alerts}


def test_a_save_that_still_writes_has_not_stalled() -> None:
    writing = known(tree(checkpoint(80, taken_at=NOW - 20.0), checkpoint(60, tracked=True)), NOW)

    assert judge(silent("save", checkpoints=writing)).state is RunState.RUNNING


# What milepost itself ended


def ended_by(state: ActionState, **changes: object) -> Snapshot:
    """The driver is gone since a minute; an action that stops it was begun two minutes ago."""
    record = ActionRecord(
        id="20261129-180000-stop-1b98",
        kind=ActionKind.STOP,
        title="Stop run-a",
        state=state,
        began_at=NOW - 120.0,
        changed_at=NOW - 50.0,
        steps=("stop",),
    )
    return fakes.running(
        container=TIMED_OUT,
        processes=known(ProcessTree(driver_exited_at=NOW - 60.0), NOW),
        actions=(replace(record, **changes),),  # type: ignore[arg-type]
    )


@pytest.mark.parametrize("state", [ActionState.OPEN, ActionState.DONE, ActionState.FAILED])
def test_what_an_action_ended_has_not_crashed(state: ActionState) -> None:
    verdict = judge(ended_by(state))

    assert verdict.state is RunState.STOPPED
    assert verdict.reason == "ended by milepost: Stop run-a"
    assert "run-crashed" not in {alert.code for alert in verdict.alerts}


@pytest.mark.parametrize(
    "changes",
    [
        {"steps": ("save",)},
        {"began_at": NOW - 30.0},
        {"began_at": NOW - 900.0, "changed_at": NOW - 800.0},
        {"steps": ("stop", "start", "prove"), "facts": {"log": "runs/plain.log"}},
    ],
    ids=["does not stop", "began later", "was over before", "started what is gone now"],
)
def test_an_end_that_no_action_made_is_a_crash(changes: dict[str, object]) -> None:
    assert judge(ended_by(ActionState.DONE, **changes)).state is RunState.CRASHED


# Engines


DECODE = (
    "Decode batch, #running-req: {}, #token: 79000, token usage: 0.4, cuda graph: True, "
    "gen throughput (token/s): {:.1f}, #queue-req: 0, "
)


def decoded(*rates: tuple[int, float]) -> Snapshot:
    """After decode lines, one in ten seconds, each of so many requests at so many tokens/s."""
    lines = (
        logs.engine(f"10:{n * 10 // 60:02d}:{n * 10 % 60:02d}", DECODE.format(running, rate))
        for n, (running, rate) in enumerate(rates)
    )
    snapshot = reduced(Snapshot(live=False), logs.parsed(lines)[0])
    return reduce(snapshot, events.TimePassed(at=snapshot.now))


FULL, TAIL = [(64, 3000.0)] * 20, [(1, 190.0)] * 20


@pytest.mark.parametrize(
    ("rates", "is_slow"),
    [
        ([*FULL, *TAIL], False),
        ([*TAIL, *TAIL, *FULL], False),
        ([*FULL, *[(64, 400.0)] * 5, *FULL], False),
        ([*FULL, *[(64, 400.0)] * 15], True),
        ([*FULL, *[(4, 20.0)] * 15], True),
    ],
    ids=["long tail", "first full batch", "reads prompts in", "slow", "slow and thinned out"],
)
def test_slow_is_an_engine_that_is_slow_for_each_request(
    rates: list[tuple[int, float]], is_slow: bool
) -> None:
    assert ("engine-slow" in codes(decoded(*rates))) is is_slow


def mute(for_s: float) -> Snapshot:
    """An engine that takes connections and answers nothing, while a rollout is generated."""
    url = "http://192.0.2.2:15000"
    snapshot = replace(fakes.generating(), engines=())
    for at in range(int(NOW), int(NOW + for_s) + 1, 5):
        probe = EngineProbe(
            url=url, reachable=known(True, at), metrics=TIMED_OUT, health_status=TIMED_OUT
        )
        snapshot = reduce(snapshot, events.EnginesProbed(at=at, engines=(probe,)))
    return reduce(snapshot, events.TimePassed(at=NOW + for_s))


def test_an_engine_that_takes_connections_and_answers_nothing_is_not_idle() -> None:
    (soon,), (late,) = mute(30.0).verdict.engines, mute(90.0).verdict.engines

    assert soon.state is EngineState.UNKNOWN
    assert soon.reason == "no answer for 30 s yet"
    assert late.state is EngineState.SUSPECT
    assert "engine-suspect" not in codes(mute(30.0))
    assert "engine-suspect" in codes(mute(90.0))


def test_an_engine_that_answers_again_is_mute_no_more() -> None:
    snapshot = mute(90.0)
    probe = replace(engine_track().probe, reachable=known(True, NOW + 91.0))
    answered = reduce(snapshot, events.EnginesProbed(at=NOW + 91.0, engines=(probe,)))

    assert not reduce(answered, events.TimePassed(at=NOW + 91.0)).engines[0].mute_since


def probed(at: float, tokens: float) -> events.EnginesProbed:
    """A look at an engine that shows 64 requests as open."""
    metrics = EngineMetrics(running_requests=64.0, realtime_tokens_total=tokens)
    url = "http://192.0.2.2:15000"
    probe = EngineProbe(url=url, reachable=known(True, at), metrics=known(metrics, at))
    return events.EnginesProbed(at=at, engines=(probe,))


def test_a_pause_for_training_is_no_usual_gap_between_tokens() -> None:
    """Gauges of an engine that fell quiet keep their last value."""
    snapshot = replace(fakes.generating(), engines=())
    for rollout in range(4):
        at = NOW + 400.0 * rollout
        phases = (("generate", 0.0, 100), ("actor_train", 100.0, 300))
        for name, begins, lasts in phases:
            told = replace(snapshot.story, phase=PhaseClock(name=name, since=at + begins))
            snapshot = replace(snapshot, story=told)
            for second in range(0, lasts, 10):
                tokens = 1000.0 * rollout + (second + 10.0 if name == "generate" else 100.0)
                snapshot = reduce(snapshot, probed(at + begins + second, tokens))
    (track,) = snapshot.engines

    assert track.usual_gap_s == 10.0


# The clock of the box


@pytest.mark.parametrize("by_s", [3600.0, -3600.0, 40.0, -40.0])
def test_a_clock_that_is_set_makes_no_silence_and_hides_none(by_s: float) -> None:
    """Each second of silence before counts, and none that only the clock made."""
    at = NOW + by_s
    moved = reduce(fakes.running(), events.ClockStepped(at=at, by_s=by_s))
    soon = reduce(moved, events.TimePassed(at=at + 1.0))
    late = reduce(soon, events.TimePassed(at=at + 600.0))

    assert soon.verdict.state is RunState.RUNNING
    assert soon.now == at + 1.0
    assert late.verdict.state is RunState.STALLED


def test_what_was_read_keeps_its_own_times_when_the_clock_is_set() -> None:
    before = fakes.running()
    after = reduce(before, events.ClockStepped(at=NOW + 60.0, by_s=60.0))

    assert after.container == known(container(), NOW + 58.0)
    assert after.processes == known(processes(), NOW + 58.0)
    assert after.checkpoints == known(tree(), NOW + 55.0)
    assert after.story.series == before.story.series
    assert after.history["gpu0.power_w"].points[-1][0] == NOW + 60.0
    assert after.story.last_line_at == NOW + 57.0


def test_an_answer_that_was_on_its_way_does_not_keep_time_ahead() -> None:
    back = reduce(fakes.running(), events.ClockStepped(at=NOW - 3600.0, by_s=-3600.0))
    stray = reduce(back, events.DiskRead(at=NOW, disk=TIMED_OUT))

    assert reduce(stray, events.TimePassed(at=NOW - 3599.0)).now == NOW - 3599.0


def test_the_name_of_what_is_watched_is_what_an_action_started() -> None:
    other = attachment(log=Found(value="runs/plain-resume.log", source="started by milepost"))
    snapshot = replace(
        ended_by(
            ActionState.OPEN,
            steps=("stop", "start", "prove"),
            facts={"log": "runs/plain-resume.log"},
        ),
        attachment=other,
    )

    assert judge(snapshot).state is RunState.CRASHED
