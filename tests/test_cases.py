"""Situations from public bug reports, each with the verdict that was right.

Logs lie in `data/cases/`, named as the case; trees and tables are built here.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path

import fake_box
import fakes
import logs
import pytest

from tui.demo import checkpoint
from tui.demo.checkpoint import Stage
from tui.demo.weights import Model
from tui.explain import explained
from tui.miles.cleanup import cleanup_of, ends_its_own_shell, strangers_hit
from tui.miles.loglines import LogParser
from tui.miles.stamps import LogClock
from tui.model import events
from tui.model.checkpoint import CheckpointState
from tui.model.engine import EngineState
from tui.model.gpu import GpuProcess
from tui.model.launch import Process, ProcessTree
from tui.model.progress import LineKind
from tui.model.reading import Known, known
from tui.model.reduce import reduce
from tui.model.snapshot import Alert, Level, Resume, RunState, Snapshot
from tui.runs.docker_frames import FrameDemultiplexer
from tui.runs.names import NameUse, name_use
from tui.view import log as log_view
from tui.view.rows import Look, plain

Read = Callable[..., Snapshot]


@pytest.fixture
def case(data: Path) -> Read:
    """Reads a case's log; `until` stops before the first line that holds it."""

    def read(name: str, *, until: str = "", checkpoints: Path | None = None) -> Snapshot:
        path = data / "cases" / f"{name}.log"
        if not until:
            return explained(path, checkpoints=checkpoints)
        return told(line for line in before(logs.lines_of(path), until))

    return read


def before(lines: Iterable[str], stop: str) -> Iterable[str]:
    for line in lines:
        if stop in line:
            return
        yield line


def told(lines: Iterable[str]) -> Snapshot:
    """The snapshot after these lines, judged at the last of them."""
    parser = LogParser(LogClock(live=False))
    snapshot = Snapshot(live=False)
    for text in lines:
        parsed = parser.feed(text)
        for event in parsed.events:
            snapshot = reduce(snapshot, event)
        if parsed.line is not None:
            snapshot = reduce(snapshot, events.LinesRead(at=parsed.line.at, lines=(parsed.line,)))
    return reduce(snapshot, events.TimePassed(at=parser.clock.last_at or 0.0))


def alert(snapshot: Snapshot, code: str) -> Alert:
    (found,) = (each for each in snapshot.verdict.alerts if each.code == code)
    return found


def codes(snapshot: Snapshot) -> set[str]:
    return {each.code for each in snapshot.verdict.alerts}


def engine_states(snapshot: Snapshot) -> dict[str, EngineState]:
    return {each.label: each.state for each in snapshot.verdict.engines}


def test_o01_health_polling_that_looks_like_life(case: Read) -> None:
    snapshot = case("o01")

    assert snapshot.verdict.state is RunState.STALLED
    assert "29 min and no rollout yet" in snapshot.verdict.reason
    assert "only health checks" in " ".join(alert(snapshot, "stalled").evidence)
    assert "GPU count" in alert(snapshot, "stalled").advice


def test_o02_a_hang_inside_actor_train(case: Read) -> None:
    snapshot = case("o02")

    assert snapshot.verdict.state is RunState.STALLED
    assert "in actor_train (usual 41 s)" in snapshot.verdict.reason
    assert snapshot.story.progress is not None
    assert snapshot.story.progress.what == "actor_train started"
    assert snapshot.story.last_line_at is not None
    assert snapshot.story.last_line_at - snapshot.story.progress.at > 1700
    assert "py-spy" in alert(snapshot, "stalled").advice


def test_o03_an_engine_killed_while_it_compiles(case: Read) -> None:
    snapshot = case("o03")

    assert snapshot.verdict.state is RunState.STARTING
    assert "engine-killed-in-warm-up" in snapshot.verdict.degraded
    assert "first wait 0 s" in alert(snapshot, "engine-killed-in-warm-up").line
    assert "300" in alert(snapshot, "engine-killed-in-warm-up").advice
    assert engine_states(snapshot) == {"0": EngineState.DEAD}
    unwell = [each for each in snapshot.story.timeline if "failed its health check" in each.text]
    assert len(unwell) == 1


def test_o04_a_busy_engine_is_not_dead(case: Read) -> None:
    busy, killed = case("o04", until="health_monitor.py:154"), case("o04")

    assert engine_states(busy) == {"0": EngineState.BUSY}
    assert "engine-dead" not in codes(busy)
    assert engine_states(killed) == {"1": EngineState.DEAD}
    assert "while it worked" in alert(killed, "engine-dead").line
    assert "timeout" in alert(killed, "engine-dead").advice


def test_o05_two_hundred_is_one_vote(case: Read) -> None:
    snapshot = case("o05")

    assert engine_states(snapshot) == {"0": EngineState.GENERATING, "1": EngineState.SUSPECT}
    assert alert(snapshot, "engine-suspect").subject == "1"


def test_o06_a_recovered_engine_serves_old_weights(case: Read) -> None:
    recovered, after = case("o06", until="update_weights start"), case("o06")

    assert engine_states(recovered) == {"2": EngineState.RECOVERED}
    assert "old weights" in recovered.verdict.engines[0].reason
    assert engine_states(after)["2"] is not EngineState.RECOVERED
    line = alert(after, "mixed-weights").line
    assert line == "rollout 14: 6% of the samples mix weights, oldest version 0"
    assert not after.verdict.degraded


def test_o07_a_retry_loop_counts_down_and_then_fails(case: Read) -> None:
    counting, over = case("o07", until="attempt 60/60"), case("o07")

    assert "requests-failing" in counting.verdict.degraded
    assert "attempt 8/60, given up in about 52 s" in alert(counting, "requests-failing").line
    assert counting.story.retries is not None
    assert counting.story.retries.count == 16
    assert "the router has no worker" in alert(counting, "requests-failing").advice
    assert over.verdict.state is RunState.FAILED
    assert over.verdict.cause is not None
    assert over.verdict.cause.kind == "engines cannot be reached"


def test_o08_a_checkpoint_loaded_and_the_counter_at_zero(case: Read) -> None:
    snapshot = case("o08")

    assert snapshot.verdict.resume.outcome is Resume.WRONG_NUMBER
    assert snapshot.verdict.resume.expected_rollout == 20
    found = alert(snapshot, "resume-wrong-rollout")
    assert found.level is Level.CRITICAL
    assert "--start-rollout-id 20" in found.advice
    assert "copy of the tracker" in found.advice


def save(root: Path, iteration: int, last: Stage | None = None) -> None:
    """A real checkpoint, or one whose save ended after the stage `last`."""
    model = Model(total_mb=0.1, seed=1)
    for stage in checkpoint.save(root, iteration - 1, model, seed=1):
        if stage is last:
            return
    checkpoint.save_data_source(root, iteration - 1, samples=8, groups=4)


@pytest.fixture
def with_tree(tmp_path: Path) -> Callable[[], Snapshot]:
    """A run that goes on, with the save folder of the test."""

    def read() -> Snapshot:
        log = tmp_path / "plain.log"
        log.write_text(logs.step("10:00:00", 60) + "\n")
        return explained(log, checkpoints=tmp_path)

    return read


def test_o09_checkpoints_without_a_tracker(
    tmp_path: Path, with_tree: Callable[[], Snapshot]
) -> None:
    for iteration in (20, 40, 60):
        save(tmp_path, iteration)
    (tmp_path / "latest_checkpointed_iteration.txt").unlink()
    found = alert(with_tree(), "tracker-missing")

    assert found.level is Level.CRITICAL
    assert found.line == "3 whole checkpoints, no tracker file: a restart would begin fresh"
    assert "60" in found.advice


def test_o10_no_space_although_df_shows_plenty(case: Read, tmp_path: Path) -> None:
    shard = tmp_path / "iter_0000000" / "__0_0.distcp"
    shard.parent.mkdir()
    shard.write_bytes(b"x" * 100)
    (tmp_path / "iter_0000000" / "common.pt").write_bytes(b"x")
    snapshot = case("o10", checkpoints=tmp_path)

    assert snapshot.verdict.state is RunState.FAILED
    assert snapshot.verdict.cause is not None
    assert snapshot.verdict.cause.kind == "disk full"
    assert "quota" in snapshot.verdict.cause.line
    assert "while saving a checkpoint" in snapshot.verdict.cause.line
    assert any("unexpected pos" in line for line in snapshot.verdict.cause.evidence)
    assert snapshot.story.saves[-1].saved_at is None
    assert isinstance(snapshot.checkpoints, Known)
    assert snapshot.checkpoints.value.checkpoints[0].state is not CheckpointState.WHOLE


def test_o11_a_crash_of_the_writer(case: Read, tmp_path: Path) -> None:
    shell = tmp_path / "iter_0000004" / "__0_0.distcp"
    shell.parent.mkdir()
    shell.write_bytes(b"x")
    snapshot = case("o11", checkpoints=tmp_path)

    assert snapshot.verdict.state is RunState.FAILED
    assert snapshot.verdict.cause is not None
    assert snapshot.verdict.cause.line == "segmentation fault while saving a checkpoint"
    assert not any("OOM" in line for line in snapshot.verdict.cause.evidence)
    assert "checkpoint-partial" in codes(snapshot)


def test_o12_an_interrupted_save_newer_than_the_tracker(
    tmp_path: Path, with_tree: Callable[[], Snapshot]
) -> None:
    save(tmp_path, 40)
    save(tmp_path, 60, last=Stage.OPTIMIZER)
    for path in tmp_path.rglob("*"):
        os.utime(path, (1_700_000_000.0, 1_700_000_000.0))
    snapshot = with_tree()

    assert isinstance(snapshot.checkpoints, Known)
    newest, tracked = snapshot.checkpoints.value.checkpoints
    assert (newest.iteration, newest.state) == (60, CheckpointState.PARTIAL)
    assert (tracked.iteration, tracked.tracked) == (40, True)
    assert snapshot.verdict.risk is not None
    assert snapshot.verdict.risk.checkpoint == 40
    found = alert(snapshot, "checkpoint-partial")
    assert "a resume loads 40" in found.line
    assert "move it aside" in found.advice


def test_o13_the_wrong_converter(case: Read) -> None:
    cause = case("o13").verdict.cause

    assert cause is not None
    assert cause.kind == "wrong converter"
    assert "convert_fsdp_to_hf" in cause.line


def test_o14_what_ray_folds_is_neither_a_gap_nor_a_death(case: Read) -> None:
    snapshot = case("o14")

    assert snapshot.verdict.state is RunState.RUNNING
    assert snapshot.story.step == 41
    assert [x for x, _ in snapshot.story.series["train/loss"].points] == [40.0, 41.0]
    assert EngineState.SUSPECT not in engine_states(snapshot).values()
    assert codes(snapshot) == {"ray-memory-kill"}
    assert not any("repeated" in line.text for line in snapshot.lines)


def test_o15_colour_in_every_state_of_decay(case: Read) -> None:
    snapshot = case("o15")

    assert (snapshot.story.step, snapshot.story.rollout) == (8, 8)
    assert not any("pyarro" in line.source for line in snapshot.lines)
    assert not any("36m" in line.text for line in snapshot.lines)


def test_o16_bars_with_carriage_returns(case: Read) -> None:
    snapshot = case("o16")

    assert snapshot.story.bar is not None
    assert (snapshot.story.bar.done, snapshot.story.bar.total) == (32, 256)
    assert snapshot.story.rollout == 3
    assert len(snapshot.lines) <= 5


def test_o17_docker_frames(data: Path) -> None:
    frames = FrameDemultiplexer()
    text = frames.feed((data / "cases" / "o17.log").read_bytes()) + frames.flush()
    found, shown = logs.parsed(text.decode().split("\n"))

    assert [e.number for e in found if isinstance(e, events.MetricsLogged)] == [11]
    lines = [line.text for line in shown]
    assert {"stdout line one", "stdout line two", "ABC"} <= set(lines)
    assert any("🚀" in line for line in lines)


def test_o18_diverged_and_running(case: Read) -> None:
    snapshot = case("o18")

    assert snapshot.verdict.state is RunState.RUNNING
    found = alert(snapshot, "non-finite")
    assert "since step 22" in found.line
    assert any("step 21" in line and "2.96e+09" in line for line in found.evidence)
    assert "stop it" in found.advice
    assert snapshot.story.latest["rollout/response_len/mean"] == 4096.0


def test_o19_boilerplate_is_no_cause(case: Read) -> None:
    snapshot = case("o19")

    assert snapshot.verdict.state is RunState.FAILED
    assert snapshot.verdict.cause is not None
    assert snapshot.verdict.cause.line == "thread limit reached (EAGAIN)"
    assert "OOM" not in " ".join(snapshot.verdict.cause.evidence)


def test_o20_one_standing_warning(case: Read) -> None:
    snapshot = case("o20")

    assert snapshot.verdict.state is RunState.RUNNING
    assert not snapshot.verdict.degraded
    assert "27.4 GB left (42.7 GB → 27.4 GB in 3 min)" in alert(snapshot, "disk-filling").line
    assert len([each for each in snapshot.alert_log if each.alert.code == "disk-filling"]) == 1


def test_o21_memory_not_supported() -> None:
    """The reader itself is tested against the table; here: it is no fault."""
    snapshot = fakes.running()

    assert isinstance(snapshot.gpus, Known)
    assert snapshot.gpus.value.devices[0].unified
    assert not {"gpu-lost", "gpu-unreadable"} & codes(snapshot)


def test_o22_leftovers_of_a_ray_cluster(case: Read) -> None:
    snapshot = case("o22")

    assert snapshot.verdict.state is RunState.FAILED
    assert snapshot.verdict.cause is not None
    assert snapshot.verdict.cause.kind == "stale Ray address"
    assert "`ray stop`" in snapshot.verdict.cause.line


def test_o23_orphans_hold_gpu_and_port(case: Read) -> None:
    assert case("o23").verdict.state is RunState.FAILED
    base = fakes.failed()
    left = tuple(
        Process(pid=pid, started_at=1.0, role="scheduler", title="sglang::scheduler")
        for pid in (2505781, 2505782)
    )
    device = replace(
        fake_box.gpu(),
        processes=known(
            tuple(GpuProcess(pid=each.pid, memory_bytes=known(2**30, 1.0)) for each in left), 1.0
        ),
    )
    snapshot = replace(
        base,
        processes=known(ProcessTree(processes=left, driver_exited_at=base.now), base.now),
        gpus=known(fake_box.report(device), base.now),
    )
    assert base.story.ending is not None
    early = replace(snapshot, now=base.story.ending.at + 2)
    assert "leftover-processes" not in codes(reduce(early, events.TimePassed(at=early.now)))
    snapshot = reduce(snapshot, events.TimePassed(at=base.now + 60))
    found = alert(snapshot, "leftover-processes")

    assert found.line == "2 processes of the run outlived it, no live owner: 2.0 GiB of GPU memory"
    assert "2505781" in found.evidence[0]
    assert "exactly these" in found.advice


PS_LINE = re.compile(
    r" *(?P<pid>\d+) +\d+ +\d+ \w+ +(?P<title>[^#]*[^# ]) *(?:# contains: (?P<script>.*))?$"
)


def test_o24_a_clean_up_that_kills_too_much(data: Path) -> None:
    rows = [
        match
        for line in logs.lines_of(data / "cases" / "o24.log")[1:]
        if (match := PS_LINE.match(line.split("   # this tool")[0]))
    ]
    processes = [
        Process(pid=int(row["pid"]), started_at=1.0, role="", title=row["title"]) for row in rows
    ]
    (script,) = (row["script"] for row in rows if row["script"])
    own = {
        each.pid for each in processes if each.title.startswith(("ray::", "sglang::", "/opt/ray"))
    }
    cleanup = cleanup_of(script)

    assert own == {400, 410, 420}
    assert {each.pid for each in processes if cleanup.hits(each)} >= own
    assert {each.pid for each in strangers_hit(cleanup, processes, own)} == {90, 120, 131}
    shell = next(each.title for each in processes if each.pid == 430)
    assert ends_its_own_shell(shell)
    assert not ends_its_own_shell("bash -c 'pkill -9 ray; pkill -9 sglang'")


@pytest.mark.parametrize(
    ("auto_remove", "exit_code", "state"),
    [(True, None, RunState.CRASHED), (True, 3, RunState.FAILED)],
)
def test_o25_rm_takes_log_and_exit_code_along(
    auto_remove: bool, exit_code: int | None, state: RunState
) -> None:
    base = fakes.running()
    running = replace(fake_box.container(), auto_remove=auto_remove)
    seen = reduce(base, events.ContainerRead(at=base.now, container=known(running, base.now)))
    seen = reduce(seen, events.TimePassed(at=base.now + 1))
    assert "container-auto-remove" in codes(seen)

    gone = replace(running, status="gone", exit_code=exit_code)
    after = reduce(seen, events.ContainerRead(at=base.now + 2, container=known(gone, base.now + 2)))
    after = reduce(after, events.TimePassed(at=base.now + 2))
    assert after.verdict.state is state
    assert "exit code unknown" in after.verdict.reason or exit_code is not None
    assert after.lines == base.lines


@pytest.mark.parametrize(
    ("status", "use"),
    [
        ("exited", NameUse.RENAME_ASIDE),
        ("dead", NameUse.RENAME_ASIDE),
        ("created", NameUse.RENAME_ASIDE),
        ("removing", NameUse.WAIT),
        ("running", NameUse.REFUSE),
        ("paused", NameUse.REFUSE),
        ("restarting", NameUse.REFUSE),
        ("gone", NameUse.FREE),
    ],
)
def test_o26_a_name_that_is_taken(status: str, use: NameUse) -> None:
    assert name_use(replace(fake_box.container(), status=status)) is use
    assert name_use(None) is NameUse.FREE


def test_o27_model_text_is_text(case: Read) -> None:
    snapshot = case("o27")
    rows = log_view.rows(snapshot.lines, 400, 10, Look())
    shown = "\n".join(plain(row) for row in rows)

    assert "[/{nestedType}...]/read then [bold]done[/bold] [link=x]y[/]" in shown
    assert "数学推理" in shown
    assert snapshot.story.rollout == 5


# The table of short reports


def test_success_of_the_client_is_not_success_of_the_job() -> None:
    lines = [f"{logs.DAY} 10:00:00,000\tSUCC cli.py:67 -- Job 'j' submitted successfully"]
    lines += ["Running entrypoint for job j: python3 train.py --num-rollout 4"]
    done = f"{logs.DAY} 10:00:09,000\tSUCC cli.py:67 -- Job 'j' succeeded"
    snapshot = told([*lines, done])

    assert snapshot.verdict.state is RunState.FAILED
    assert "no rollout was trained" in snapshot.verdict.reason


@pytest.mark.parametrize(("minutes", "state"), [(5, RunState.STARTING), (45, RunState.STALLED)])
def test_a_job_that_prints_nothing_is_starting_then_stalled(minutes: int, state: RunState) -> None:
    snapshot = told([f"{logs.DAY} 10:00:00,000\tSUCC cli.py:67 -- Job 'j' submitted successfully"])
    driver = Process(pid=7, started_at=1.0, role="driver")
    snapshot = replace(snapshot, processes=known(ProcessTree(processes=(driver,)), snapshot.now))
    snapshot = reduce(snapshot, events.TimePassed(at=snapshot.now + minutes * 60))

    assert snapshot.verdict.state is state


def test_health_monitoring_that_stays_paused() -> None:
    snapshot = told(
        [
            logs.rollout("10:00:00", "Pausing health monitor...", "health_monitor.py:89"),
            logs.trainer("10:00:01", "Timer update_weights start"),
            logs.trainer("10:00:03", "Timer update_weights end (elapsed: 2.0s)"),
            logs.engine("10:04:00", DECODE.format(3000.0)),
        ]
    )

    assert "not being checked for 4 min" in alert(snapshot, "engines-unchecked").line
    assert not snapshot.verdict.degraded


DECODE = (
    "Decode batch, #running-req: 40, #token: 79000, token usage: 0.94, cuda graph: True, "
    "gen throughput (token/s): {}, #queue-req: 9, "
)


def test_decoding_that_stays_slow_is_degraded_not_dead() -> None:
    lines = [logs.engine(f"10:00:{n:02d}", DECODE.format(2100.0)) for n in range(12)]
    lines += [logs.engine(f"10:0{n}:00", DECODE.format(150.0)) for n in range(1, 5)]
    snapshot = told(lines)

    assert "decodes at 150 tokens/s, usual 2100" in alert(snapshot, "engine-slow").line
    assert engine_states(snapshot) == {"0": EngineState.GENERATING}


def test_a_hang_with_an_idle_gpu_shows_both_signs() -> None:
    snapshot = fakes.stalled()
    evidence = alert(reduce(snapshot, events.TimePassed(at=snapshot.now)), "stalled").evidence

    assert "GPU0 idle for a minute" in evidence


def test_a_metric_that_is_absent_is_no_stall() -> None:
    snapshot = told(
        [
            logs.rollout(f"10:{n:02d}:00", f"perf {n}: {{'perf/rollout_time': 50.0}}")
            for n in range(5)
        ]
    )

    assert snapshot.verdict.state is RunState.RUNNING


def test_the_cause_at_the_end_of_a_huge_line_is_found() -> None:
    prompts = "lorem ipsum " * 5000
    snapshot = told(
        [
            "Traceback (most recent call last):",
            f"RuntimeError: could not process [{prompts}]: No space left on device",
        ]
    )

    assert snapshot.verdict.cause is not None
    assert snapshot.verdict.cause.kind == "disk full"
    assert all(len(line) < 1000 for line in snapshot.verdict.cause.evidence)
    assert all(len(line.text) <= 2000 for line in snapshot.lines)


@pytest.mark.parametrize(
    "line", ["RuntimeError: PytorchStreamWriter failed writing file", "OSError: file write failed"]
)
def test_a_failed_write_is_a_full_disk(line: str) -> None:
    snapshot = told(["Traceback (most recent call last):", line])

    assert snapshot.verdict.cause is not None
    assert snapshot.verdict.cause.kind == "disk full"


def test_a_tracker_that_says_zero(tmp_path: Path, with_tree: Callable[[], Snapshot]) -> None:
    save(tmp_path, 1)
    folder = tmp_path / "iter_0000000"
    (tmp_path / "iter_0000001" / "model").rename(folder)
    shutil.rmtree(tmp_path / "iter_0000001")
    for name in ("common.pt", "metadata.json"):
        (folder / name).write_bytes(b"{}")
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("0")

    assert "tracked-zero" in codes(with_tree())


def test_an_engine_stuck_in_its_start_is_starting() -> None:
    snapshot = told(
        [
            logs.rollout("10:00:00", "Ports for engine 0: {'host': '192.0.2.1', 'port': 15000}"),
            logs.rollout("10:05:00", "wait_all_engines_alive looping..."),
        ]
    )

    assert engine_states(snapshot) == {"0": EngineState.STARTING}
    assert snapshot.verdict.state is RunState.STARTING


def test_noise_after_a_good_end_is_no_failure(data: Path) -> None:
    lines = logs.lines_of(data / "captures" / "fresh.log")
    noise = [
        "Exception ignored in: <function ActorHandle.__del__ at 0x7f>",
        "Traceback (most recent call last):",
        '  File "/usr/lib/python3.12/threading.py", line 1590, in _shutdown',
        "KeyboardInterrupt: ",
        "\x1b[33m(raylet)\x1b[0m A worker died or was killed while executing a task",
    ]
    snapshot = told([*lines, *noise])

    assert snapshot.verdict.state is RunState.FINISHED
    assert snapshot.verdict.cause is None
    assert all(line.kind is not LineKind.MARK for line in snapshot.lines)
