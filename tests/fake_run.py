"""A healthy run as values with defaults: launch, log, story, checkpoints, alerts, verdict."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from fake_box import ENGINE_URL, HOUR, MIN, NOW, ROUTER_URL, SAVE_ROOT, engine_verdict, ramp, wave

from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.model.launch import Attachment, Found, LaunchArgs
from tui.model.memory import GIB
from tui.model.progress import (
    Bar,
    LineKind,
    LogEngine,
    LogLine,
    Moment,
    PhaseClock,
    Progress,
    RolloutSpan,
    SaveRecord,
    Story,
)
from tui.model.reading import known
from tui.model.series import Durations
from tui.model.snapshot import (
    Alert,
    AlertRecord,
    Forecast,
    Level,
    Resume,
    ResumeProof,
    RunState,
    Verdict,
    WorkAtRisk,
)


def durations(first_s: float, *rest_s: float) -> Durations:
    return Durations(first_s=first_s, rest_s=rest_s)


def launch(**changes: Any) -> LaunchArgs:
    return replace(
        LaunchArgs(
            argv=("python3", "train.py", "--save", SAVE_ROOT, "--num-rollout", "200"),
            script="train.py",
            save=SAVE_ROOT,
            load=SAVE_ROOT,
            hf_checkpoint="/models/base",
            save_interval=20,
            eval_interval=20,
            num_rollout=200,
            save_trigger="/ckpt/run-a.save-now",
            rollout_batch_size=32,
            samples_per_prompt=8,
            steps_per_rollout=1,
            backend="fsdp",
            colocate=True,
        ),
        **changes,
    )


def attachment(**changes: Any) -> Attachment:
    return replace(
        Attachment(
            name="run-a",
            log=Found(value="runs/plain.log", source="stdout of the driver"),
            checkpoints=Found(value=SAVE_ROOT, source="--save of the run"),
            engines=(Found(value=ENGINE_URL, source="log line “Ports for engine 0”"),),
            container=Found(value="miles-run-a", source="the one Miles container"),
            driver_pid=Found(value="4100", source="container miles-run-a"),
            launch=launch(),
        ),
        **changes,
    )


def checkpoint(iteration: int = 60, **changes: Any) -> Checkpoint:
    """A whole FSDP checkpoint, saved after the rollout before its number."""
    return replace(
        Checkpoint(
            iteration=iteration,
            path=f"{SAVE_ROOT}/iter_{iteration:07d}",
            layout=Layout.FSDP,
            state=CheckpointState.WHOLE,
            size_bytes=int(7.1 * GIB),
            taken_at=NOW - 14 * MIN - (60 - iteration) * 141,
            after_rollout=iteration - 1,
            resumes_at=iteration,
        ),
        **changes,
    )


def tree(*checkpoints: Checkpoint, **changes: Any) -> CheckpointTree:
    listed = checkpoints or (
        checkpoint(60, tracked=True),
        checkpoint(40),
        checkpoint(
            20,
            state=CheckpointState.PARTIAL,
            missing=("optimizer/.metadata",),
            reason="save ended early: optimizer/.metadata is missing",
        ),
    )
    tracked = next((str(c.iteration) for c in listed if c.tracked), "")
    return replace(
        CheckpointTree(root=SAVE_ROOT, tracker=known(tracked, NOW - 5), checkpoints=listed),
        **changes,
    )


def alert(**changes: Any) -> Alert:
    return replace(
        Alert(
            code="checkpoint-partial",
            level=Level.WARNING,
            line="iter 20 cannot be resumed from: optimizer/.metadata is missing. "
            "A resume loads 60, which is whole.",
            subject="20",
            evidence=("missing: optimizer/.metadata",),
            advice="Nothing to do; iter 20 can be moved aside when disk is short.",
        ),
        **changes,
    )


def record(of: Alert | None = None, **changes: Any) -> AlertRecord:
    return replace(
        AlertRecord(
            alert=of or alert(), first_at=NOW - HOUR, last_at=NOW - 1, since=NOW - HOUR, count=1
        ),
        **changes,
    )


def cleared_record() -> AlertRecord:
    return record(
        alert(
            code="engine-busy",
            level=Level.INFO,
            subject="0",
            line="engine 0 answered slowly for 40 s during a long prefill, tokens moved.",
            evidence=(),
            advice="",
            degrades=False,
        ),
        first_at=NOW - 5 * HOUR,
        since=NOW - 3 * HOUR,
        last_at=NOW - 3 * HOUR + 40,
        cleared_at=NOW - 3 * HOUR + 41,
        count=3,
    )


def lines() -> tuple[LogLine, ...]:
    rows: tuple[tuple[float, str, str, LineKind, int], ...] = (
        (-120, "rollout", "Rollout generation: 100%| 256/256 [01:32<00:00]", LineKind.BAR, 0),
        (-60, "rollout", "perf 61: {'perf/rollout_time': 92.1}", LineKind.METRIC, 0),
        (-52, "engine 4242", "Decode batch, #running-req: 0", LineKind.ENGINE, 31),
        (-50, "trainer", "Timer log_probs end (elapsed: 9.1s)", LineKind.PHASE, 0),
        (-34, "trainer", "Timer actor_train start", LineKind.PHASE, 0),
        (-30, "rollout", "回答は 42 です 👍", LineKind.PLAIN, 0),
        (-20, "driver", "WARNING: slow answer of the router", LineKind.WARNING, 0),
        (-3, "trainer", "actor_train:  84%| 27/32 [00:34<00:07]", LineKind.BAR, 0),
    )
    return tuple(
        LogLine(at=NOW + dt, source=source, text=text, kind=kind, repeated=repeated)
        for dt, source, text, kind, repeated in rows
    )


def story(**changes: Any) -> Story:
    """In the training of rollout 61 of 200, 34 s into actor_train."""
    return replace(
        Story(
            attempt=1,
            started_at=NOW - 2.5 * HOUR,
            job_id="raysubmit_1",
            launch=launch(),
            backend="fsdp",
            rollout=61,
            rollouts_done=61,
            first_rollout=0,
            first_step=0,
            step=60,
            steps_seen=61,
            steps_per_rollout=1,
            phase=PhaseClock(name="actor_train", since=NOW - 34),
            open_timers=(
                PhaseClock(name="train", since=NOW - 44),
                PhaseClock(name="actor_train", since=NOW - 34),
            ),
            bar=Bar(name="actor_train", done=27, total=32, moved_at=NOW - 3),
            progress=Progress(at=NOW - 3, what="actor_train 27/32"),
            last_line_at=NOW - 3,
            trained_at=NOW - 141,
            training_rollout=61,
            durations={
                "generate": durations(140.0, 90.0, 91.5, 92.1, 92.0),
                "log_probs": durations(12.0, 9.0, 9.2, 9.1),
                "actor_train": durations(55.0, 41.0, 40.5, 41.2),
                "update_weights": durations(4.0, 2.1, 2.0, 2.2),
                "save": durations(47.0, 46.5),
            },
            spans=tuple(
                RolloutSpan(
                    number=n, seconds=141.0 + n % 3, saved=False, evaluated=False, first=n == 0
                )
                for n in range(40, 61)
            ),
            latest={
                "rollout/raw_reward": 0.412,
                "train/loss": 0.0029,
                "train/grad_norm": 0.9,
                "train/kl_loss": 0.0011,
                "train/lr-pg_0": 1e-06,
                "rollout/response_len/mean": 512.0,
                "rollout/response_len/max": 2048.0,
                "rollout/truncated_ratio": 0.1,
                "rollout/weight_version/max": 61.0,
                "perf/tokens_per_gpu_per_sec": 3120.0,
                "perf/step_time": 141.0,
            },
            series={
                "rollout/raw_reward": ramp(61, 0.12, 0.41, last_x=60),
                "train/loss": wave(61, 0.001, 0.006, last_x=60),
                "train/grad_norm": wave(61, 0.6, 1.2, last_x=60, turns=5),
                "train/kl_loss": ramp(61, 0.0001, 0.0011, last_x=60),
                "rollout/response_len/mean": ramp(61, 380, 512, last_x=60),
                "rollout/truncated_ratio": wave(61, 0.05, 0.15, last_x=60),
                "perf/tokens_per_gpu_per_sec": wave(61, 2900, 3200, last_x=60),
                "perf/step_time": wave(61, 138, 146, last_x=60),
            },
            evals=(("aime", 0.2, 60),),
            saves=(
                SaveRecord(
                    iteration=60,
                    path=f"{SAVE_ROOT}/iter_0000060",
                    started_at=NOW - 14 * MIN - 47,
                    saved_at=NOW - 14 * MIN,
                ),
            ),
            engines=(LogEngine(index=0, host="192.0.2.2", port=15000, pid=4242),),
            router_url=ROUTER_URL,
            weights_updated_at=NOW - 139,
            timeline=(
                Moment(at=NOW - 2.5 * HOUR, text="launched raysubmit_1"),
                Moment(at=NOW - 2.45 * HOUR, text="engine 0 ready"),
                Moment(at=NOW - 14 * MIN, text="saved iter 60"),
            ),
        ),
        **changes,
    )


def risk(**changes: Any) -> WorkAtRisk:
    return replace(
        WorkAtRisk(
            seconds=14 * MIN,
            rollouts=6,
            checkpoint=60,
            limit_s=HOUR,
            line="a crash now costs 6 rollouts, 14 min",
        ),
        **changes,
    )


def verdict(**changes: Any) -> Verdict:
    return replace(
        Verdict(
            state=RunState.RUNNING,
            since=NOW - 2.4 * HOUR,
            reason="actor_train 27/32 moved 3 s ago",
            engines=(engine_verdict(),),
            resume=ResumeProof(outcome=Resume.FRESH, line="started at rollout 0", first_rollout=0),
            risk=risk(),
            forecast=Forecast(
                remaining_rollouts=139,
                seconds=28 * HOUR + 8 * MIN,
                usual_rollout_s=141.0,
                basis="median of rollouts 40–60",
            ),
            stall_limit_s=124.0,
        ),
        **changes,
    )
