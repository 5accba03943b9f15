"""The verdict: from evidence with ages, never from one sign."""

from __future__ import annotations

from dataclasses import replace

import fakes
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model import events
from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.model.engine import EngineMetrics, EngineProbe, EngineState
from tui.model.judge import judge
from tui.model.launch import Container, LaunchArgs, Process, ProcessTree
from tui.model.memory import GIB, Memory
from tui.model.progress import Clue, Ending, PhaseClock, Progress, Story
from tui.model.reading import Absence, Unknown, known
from tui.model.reduce import reduce, reduced
from tui.model.series import Durations
from tui.model.snapshot import Level, Resume, RunState, Snapshot

NOW = 100_000.0
SEEN = Durations(first_s=95.0, rest_s=(41.0, 40.0, 42.0))


def at_work(*, idle_s: float = 10.0, phase: str = "actor_train", **changes: object) -> Snapshot:
    """A run in a phase it has been through before, with its last progress `idle_s` ago."""
    story = Story(
        attempt=1,
        started_at=NOW - 9000,
        first_rollout=0,
        rollout=61,
        training_rollout=60,
        rollouts_done=61,
        steps_seen=61,
        step=60,
        phase=PhaseClock(name=phase, since=NOW - idle_s),
        progress=Progress(at=NOW - idle_s, what=f"{phase} started"),
        last_line_at=NOW - idle_s,
        durations={"actor_train": SEEN, "generate": SEEN},
    )
    base = Snapshot(now=NOW, story=story)
    return replace(base, **changes)  # type: ignore[arg-type]


def alive(at: float = NOW) -> Container:
    return Container(id="9f3c", name="run-a", image="miles", status="running", started_at=at - 9000)


def codes(snapshot: Snapshot) -> set[str]:
    return {alert.code for alert in judge(snapshot).alerts}


def test_progress_within_the_limit_is_running() -> None:
    verdict = judge(at_work(idle_s=100.0))

    assert verdict.state is RunState.RUNNING
    assert verdict.stall_limit_s == 126.0


def test_silence_past_the_limit_is_a_stall_of_what_lives() -> None:
    verdict = judge(at_work(idle_s=840.0, container=known(alive(), NOW)))

    assert verdict.state is RunState.STALLED
    assert verdict.reason == "no progress for 14 min in actor_train (usual 41 s)"
    assert "stalled" in verdict.degraded


def test_silence_without_a_witness_is_unknown_not_stalled() -> None:
    verdict = judge(at_work(idle_s=840.0))

    assert verdict.state is RunState.UNKNOWN
    assert "nothing tells whether it still lives" in verdict.reason


def test_lines_that_are_no_progress_still_show_that_it_lives() -> None:
    silent = at_work(idle_s=840.0)
    noisy = replace(silent, story=replace(silent.story, last_line_at=NOW - 5))

    assert judge(noisy).state is RunState.STALLED


def test_a_short_phase_is_not_called_stalled_before_two_minutes() -> None:
    snapshot = at_work(idle_s=110.0, container=known(alive(), NOW))
    quick = {"actor_train": Durations(first_s=1.0, rest_s=(0.5, 0.5))}

    assert (
        judge(replace(snapshot, story=replace(snapshot.story, durations=quick))).state
        is RunState.RUNNING
    )


@pytest.mark.parametrize(("minutes", "state"), [(8, RunState.STARTING), (29, RunState.STALLED)])
def test_start_up_has_a_clock_of_its_own(minutes: int, state: RunState) -> None:
    story = Story(
        attempt=1,
        started_at=NOW - minutes * 60,
        progress=Progress(at=NOW - minutes * 60, what="engine ready"),
        last_line_at=NOW - 5,
    )

    assert judge(Snapshot(now=NOW, story=story)).state is state


@pytest.mark.parametrize(
    ("container", "state"),
    [
        (replace(alive(), status="exited", exit_code=0), RunState.FINISHED),
        (replace(alive(), status="exited", exit_code=1), RunState.FAILED),
        (replace(alive(), status="exited", exit_code=137, oom_killed=True), RunState.FAILED),
        (replace(alive(), status="gone", exit_code=None, auto_remove=True), RunState.CRASHED),
        (replace(alive(), status="gone", exit_code=137, auto_remove=True), RunState.FAILED),
        (replace(alive(), status="removing"), RunState.STOPPING),
    ],
)
def test_what_became_of_the_container(container: Container, state: RunState) -> None:
    assert judge(at_work(container=known(container, NOW))).state is state


def test_the_oom_flag_is_a_cause_and_exit_137_alone_is_not() -> None:
    killed = replace(alive(), status="exited", exit_code=137)
    plain = judge(at_work(container=known(killed, NOW))).cause
    flagged = judge(at_work(container=known(replace(killed, oom_killed=True), NOW))).cause

    assert plain is not None
    assert plain.kind == "unknown"
    assert flagged is not None
    assert flagged.kind == "killed for memory"


def test_what_docker_was_told_to_end_is_no_riddle_and_an_error_in_the_log_tells_more() -> None:
    told = replace(alive(), status="exited", exit_code=137, told_to_end=True)
    snapshot = at_work(container=known(told, NOW))
    error = Clue(kind="Python error", line="ValueError: bad", source="trainer", at=NOW)
    plain = judge(snapshot).cause
    with_error = judge(replace(snapshot, story=replace(snapshot.story, clues=(error,)))).cause

    assert plain is not None
    assert plain.line.startswith("Docker was told to end its container (stop, kill or rm): ")
    assert plain.kind == "ended from outside"
    assert with_error is not None
    assert with_error.kind == "Python error"


def test_a_process_killed_in_a_container_that_lives_is_an_alert_and_no_cause_of_a_later_end() -> (
    None
):
    flagged = known(replace(alive(), oom_killed=True), NOW - 600)
    earlier = replace(at_work(container=flagged), now=NOW - 600)
    living = reduce(earlier, events.TimePassed(at=NOW - 600))
    later = replace(alive(), status="exited", exit_code=137, oom_killed=True, finished_at=NOW)
    dead = judge(replace(living, now=NOW + 1, container=known(later, NOW)))

    assert [alert.code for alert in living.verdict.alerts if "oom" in alert.code] == [
        "container-oom"
    ]
    assert "container-oom" not in living.verdict.degraded
    assert dead.cause is not None
    assert dead.cause.kind == "unknown"


def test_a_flag_with_another_exit_code_is_of_a_child() -> None:
    ended = replace(alive(), status="exited", exit_code=1, oom_killed=True)
    verdict = judge(at_work(container=known(ended, NOW)))

    assert verdict.cause is not None
    assert verdict.cause.line.startswith("a process in the container was killed for memory")
    assert verdict.reason.endswith("and a process in it was killed for memory")


def test_a_driver_that_is_gone_without_a_word_has_crashed() -> None:
    tree = ProcessTree(driver_exited_at=NOW - 3)

    assert judge(at_work(processes=known(tree, NOW))).state is RunState.CRASHED


def test_the_logs_own_word_outranks_a_process_that_lingers() -> None:
    tree = ProcessTree(processes=(Process(pid=4, started_at=1.0, role="driver"),))
    snapshot = at_work(processes=known(tree, NOW))
    ended = replace(snapshot.story, ending=Ending(end="failed", detail="exit code 1", at=NOW - 1))

    assert judge(replace(snapshot, story=ended)).state is RunState.FAILED


def test_success_without_a_rollout_is_no_success() -> None:
    story = Story(attempt=1, started_at=NOW - 60, ending=Ending(end="succeeded", detail="", at=NOW))
    verdict = judge(Snapshot(now=NOW, story=story))

    assert verdict.state is RunState.FAILED
    assert "no rollout was trained" in verdict.reason


@pytest.mark.parametrize("phase", ["generate", "eval"])
def test_tokens_are_progress_while_the_run_waits_for_tokens(phase: str) -> None:
    probe = EngineProbe(url="http://192.0.2.1:15000", reachable=known(True, NOW))
    snapshot = at_work(idle_s=900.0, phase=phase, container=known(alive(), NOW))
    snapshot = reduced(snapshot, _tokens(probe, [100.0, 200.0]))

    assert judge(snapshot).state is RunState.RUNNING
    assert judge(snapshot).engines[0].state is EngineState.GENERATING


def test_tokens_are_no_progress_while_it_trains() -> None:
    probe = EngineProbe(url="http://192.0.2.1:15000", reachable=known(True, NOW))
    snapshot = at_work(idle_s=900.0, container=known(alive(), NOW))

    assert judge(reduced(snapshot, _tokens(probe, [100.0, 200.0]))).state is RunState.STALLED


def _tokens(probe: EngineProbe, totals: list[float], running: float = 3.0) -> list[events.Event]:
    """Looks ten seconds apart, the last of them now."""
    out: list[events.Event] = []
    for number, total in enumerate(totals):
        at = NOW - 10.0 * (len(totals) - 1 - number)
        metrics = EngineMetrics(generation_tokens_total=total, running_requests=running)
        seen = replace(probe, metrics=known(metrics, at), reachable=known(True, at))
        out.append(events.EnginesProbed(at=at, engines=(seen,)))
    return out


def test_answers_and_open_requests_without_a_token_are_suspect() -> None:
    probe = EngineProbe(url="http://192.0.2.1:15000", health_status=known(200, NOW))
    looks = _tokens(probe, [100.0] * 9)
    snapshot = at_work(idle_s=90.0, phase="generate")
    verdict = judge(reduced(replace(snapshot, now=NOW - 90), looks))

    assert verdict.engines[0].state is EngineState.SUSPECT
    assert "engine-suspect" in verdict.degraded


def test_a_colocated_engine_is_paused_while_the_trainer_works() -> None:
    probe = EngineProbe(url="http://192.0.2.1:15000", health_status=known(200, NOW))
    verdict = judge(reduced(at_work(), _tokens(probe, [100.0] * 9)))

    assert verdict.engines[0].state is EngineState.PAUSED
    assert set(verdict.degraded) == {"work-at-risk"}


def test_refused_after_it_answered_is_dead_and_never_reached_is_unknown() -> None:
    up = EngineProbe(url="http://192.0.2.1:15000", reachable=known(True, NOW - 20))
    down = replace(up, reachable=known(False, NOW - 10))
    seen = events.EnginesProbed(at=NOW - 20, engines=(up,))
    lost = events.EnginesProbed(at=NOW - 10, engines=(down,))
    base = at_work(phase="generate")

    dead = judge(reduced(base, [seen, lost]))
    never = judge(reduced(base, [lost]))
    assert dead.engines[0].state is EngineState.DEAD
    assert "engine-dead" in dead.degraded
    assert never.engines[0].state is EngineState.UNKNOWN
    assert set(never.degraded) == {"work-at-risk"}


def tree(*checkpoints: Checkpoint, tracker: str | None = "60") -> CheckpointTree:
    reading = (
        Unknown(why=Absence.MISSING, reason="no tracker")
        if tracker is None
        else known(tracker, NOW)
    )
    return CheckpointTree(root="/ckpt", tracker=reading, checkpoints=checkpoints)


def checkpoint(iteration: int, age_s: float, **changes: object) -> Checkpoint:
    base = Checkpoint(
        iteration=iteration,
        path=f"/ckpt/iter_{iteration:07d}",
        layout=Layout.FSDP,
        state=CheckpointState.WHOLE,
        size_bytes=7 * GIB,
        taken_at=NOW - age_s,
        after_rollout=iteration - 1,
        resumes_at=iteration,
        tracked=iteration == 60,
    )
    return replace(base, **changes)  # type: ignore[arg-type]


def test_work_at_risk_counts_from_the_newest_whole_checkpoint() -> None:
    partial = checkpoint(80, 5.0, state=CheckpointState.PARTIAL, tracked=False)
    scanned = tree(partial, checkpoint(60, 840.0), checkpoint(40, 3600.0))
    verdict = judge(at_work(checkpoints=known(scanned, NOW)))

    assert verdict.risk is not None
    assert (verdict.risk.checkpoint, verdict.risk.rollouts, verdict.risk.seconds) == (60, 1, 840.0)
    assert verdict.risk.line == "a crash now costs 1 rollout, 14 min"


def test_work_past_the_limit_is_an_alert() -> None:
    scanned = tree(checkpoint(60, 3700.0))

    assert "work-at-risk" in codes(at_work(checkpoints=known(scanned, NOW)))


def test_whole_checkpoints_without_a_tracker_would_begin_fresh() -> None:
    scanned = tree(checkpoint(60, 840.0, tracked=False), tracker=None)

    assert "tracker-missing" in codes(at_work(checkpoints=known(scanned, NOW)))


def test_a_tracked_checkpoint_that_is_not_whole_is_critical() -> None:
    broken = checkpoint(60, 840.0, state=CheckpointState.PARTIAL, reason="optimizer missing")
    scanned = tree(broken, checkpoint(40, 3000.0))

    assert "tracked-not-whole" in codes(at_work(checkpoints=known(scanned, NOW)))


def test_a_fresh_start_beside_older_checkpoints_is_silent_no_more() -> None:
    scanned = tree(checkpoint(60, 20_000.0))
    snapshot = at_work(checkpoints=known(scanned, NOW))
    verdict = judge(snapshot)

    assert verdict.resume.outcome is Resume.SILENT_FRESH
    assert "silent-fresh-start" in verdict.degraded


def test_a_run_that_wrote_its_checkpoints_itself_has_not_started_silently() -> None:
    scanned = tree(checkpoint(60, 840.0), checkpoint(40, 3000.0))

    assert judge(at_work(checkpoints=known(scanned, NOW))).resume.outcome is Resume.FRESH


@pytest.mark.parametrize(
    ("free_gib", "code"), [(40.0, None), (12.0, "memory-floor"), (6.0, "memory-floor")]
)
def test_the_floor_of_the_pool(free_gib: float, code: str | None) -> None:
    memory = Memory(
        total_bytes=int(121.7 * GIB),
        available_bytes=int(free_gib * GIB),
        free_bytes=GIB,
        cached_bytes=GIB,
    )
    snapshot = reduce(at_work(), events.MemoryRead(at=NOW, memory=known(memory, NOW)))

    assert codes(snapshot) - {"work-at-risk"} == ({code} if code else set())


def falling(start_gib: float, per_s_gib: float) -> Snapshot:
    snapshot = at_work()
    for number in range(6):
        at = NOW + number * 0.5
        memory = Memory(
            total_bytes=int(121.7 * GIB),
            available_bytes=int((start_gib - per_s_gib * number * 0.5) * GIB),
            free_bytes=GIB,
            cached_bytes=GIB,
        )
        snapshot = reduce(snapshot, events.MemoryRead(at=at, memory=known(memory, at)))
    return snapshot


@pytest.mark.parametrize(
    ("start_gib", "per_s_gib", "level"),
    [
        (20.0, 3.0, Level.CRITICAL),
        (16.0, 0.5, Level.WARNING),
        (34.0, 5.0, None),
        (100.0, 15.0, None),
    ],
)
def test_a_steep_slope_is_critical_below_the_floor_and_no_news_above_it(
    start_gib: float, per_s_gib: float, level: Level | None
) -> None:
    """Engines that come back from offload take tens of GiB in seconds."""
    alerts = judge(falling(start_gib, per_s_gib)).alerts
    found = [alert.level for alert in alerts if alert.code == "memory-floor"]

    assert found == ([] if level is None else [level])


def test_an_alert_that_comes_and_goes_is_one_record_with_a_count() -> None:
    snapshot = at_work(idle_s=840.0, container=known(alive(), NOW))
    stuck = snapshot.story
    for spell in range(3):
        at = NOW + spell * 60
        snapshot = reduce(replace(snapshot, story=stuck), events.TimePassed(at=at))
        moved = replace(stuck, progress=Progress(at=at + 30, what="step"))
        snapshot = reduce(replace(snapshot, story=moved), events.TimePassed(at=at + 30))

    records = [record for record in snapshot.alert_log if record.alert.code == "stalled"]
    assert [record.count for record in records] == [3]
    assert records[0].cleared_at == NOW + 150


def test_the_cause_is_the_most_telling_clue() -> None:
    clues = (
        Clue(kind="worker died", line="A worker died", source="raylet", at=NOW),
        Clue(kind="disk full", line="OSError: [Errno 28] No space left", source="trainer", at=NOW),
    )
    snapshot = at_work(phase="save")
    story = replace(snapshot.story, clues=clues, ending=Ending(end="failed", detail="", at=NOW))
    cause = judge(replace(snapshot, story=story)).cause

    assert cause is not None
    assert cause.kind == "disk full"
    assert cause.line.endswith("while saving a checkpoint")


def test_a_forecast_counts_saves_and_evaluations_apart() -> None:
    snapshot = fakes.running()
    verdict = judge(snapshot)

    assert verdict.forecast is not None
    assert verdict.forecast.remaining_rollouts > 0
    assert "plain rollouts" in verdict.forecast.basis


def test_the_launch_says_that_nothing_is_saved() -> None:
    snapshot = at_work(idle_s=10.0)
    story = replace(snapshot.story, launch=LaunchArgs(argv=("train.py",)))
    alerts = judge(replace(snapshot, story=story)).alerts

    (risk,) = (alert for alert in alerts if alert.code == "work-at-risk")
    assert "no --save" in risk.advice


@given(st.lists(st.tuples(st.floats(0, 2e9), st.sampled_from(["a", "b", "c"])), max_size=20))
def test_only_the_clock_itself_takes_time_back(moments: list[tuple[float, str]]) -> None:
    snapshot = Snapshot()
    for at, name in moments:
        before = snapshot.now
        event: events.Event = events.TimePassed(at=at)
        if name == "b":
            event = events.PhaseStarted(at=at, phase="train")
        elif name == "c":
            event = events.BarMoved(at=at, name="actor_train", done=1, total=2)
        snapshot = reduce(snapshot, event)
        assert snapshot.now == (at if name == "a" else max(before, at))


def test_tokens_flow_while_no_request_ends() -> None:
    """SGLang counts generated tokens when a request ends; long answers take minutes."""
    probe = EngineProbe(url="http://192.0.2.1:15000")
    looks: list[events.Event] = []
    for number in range(12):
        at = NOW - 10.0 * (11 - number)
        metrics = EngineMetrics(
            running_requests=64.0,
            generation_tokens_total=5.0,
            realtime_tokens_total=1000.0 * number,
        )
        looks.append(
            events.EnginesProbed(at=at, engines=(replace(probe, metrics=known(metrics, at)),))
        )
    snapshot = replace(at_work(idle_s=115.0, phase="generate"), now=NOW - 115)

    assert judge(reduced(snapshot, looks)).engines[0].state is EngineState.GENERATING
