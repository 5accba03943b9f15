"""Snapshots of a GB10 box and a run on it, in each of the states worth a look.

`running()` is healthy; the others start from it and change what their name says. All of them are
judged at `NOW`, a Monday, 14:02:11 UTC. Their parts are in `fake_box` and `fake_run`.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import replace
from typing import Any

from fake_box import (
    MIN,
    NO_GPU,
    NOW,
    ROUTER_URL,
    SAVE_ROOT,
    container,
    discrete_gpu,
    disk,
    engine_track,
    engine_verdict,
    generating_engine,
    gpu,
    history,
    memory,
    processes,
    report,
    router,
    wave,
)
from fake_run import (
    alert,
    attachment,
    cleared_record,
    launch,
    lines,
    record,
    story,
    tree,
    verdict,
)

from tui.model.engine import EngineState
from tui.model.guard import GuardState, GuardStatus
from tui.model.launch import Attachment, Found, ListedRun
from tui.model.progress import (
    Bar,
    Clue,
    Ending,
    LoadRecord,
    LogEngine,
    Moment,
    NonFinite,
    PhaseClock,
    Progress,
    Story,
)
from tui.model.reading import known
from tui.model.series import Series
from tui.model.snapshot import (
    Cause,
    Level,
    LogStatus,
    Resume,
    ResumeProof,
    RunState,
    Snapshot,
    Verdict,
)


def running(**changes: Any) -> Snapshot:
    """A healthy run on a GB10, in actor_train of rollout 61."""
    return replace(
        Snapshot(
            now=NOW,
            attachment=attachment(),
            story=story(),
            log=LogStatus(
                path="runs/plain.log",
                size_bytes=412 * 2**20,
                written_at=NOW - 3,
                read_at=NOW,
            ),
            lines=lines(),
            gpus=known(report(), NOW),
            memory=known(memory(), NOW),
            disk=known(disk(), NOW - 10),
            engines=(engine_track(),),
            router=router(),
            checkpoints=known(tree(), NOW - 5),
            container=known(container(), NOW - 2),
            processes=known(processes(), NOW - 2),
            history=history(),
            verdict=verdict(),
        ),
        **changes,
    )


def degraded() -> Snapshot:
    """Running, with one warning that stands and one note that has cleared."""
    warning = alert()
    return running(
        verdict=verdict(degraded=(warning.code,), alerts=(warning,)),
        alert_log=(record(warning), cleared_record()),
    )


def generating() -> Snapshot:
    """The other half of a rollout: the engine works, the trainer waits."""
    return running(
        story=story(
            phase=PhaseClock(name="generate", since=NOW - 62),
            open_timers=(PhaseClock(name="train_wait", since=NOW - 70),),
            bar=Bar(name="Rollout generation", done=128, total=256, moved_at=NOW - 2),
            progress=Progress(at=NOW - 2, what="Rollout generation 128/256"),
        ),
        verdict=verdict(engines=(generating_engine(),)),
    )


def stalled() -> Snapshot:
    """No progress in actor_train for 14 minutes, GPU idle, process alive."""
    stall = alert(
        code="stalled",
        level=Level.CRITICAL,
        subject="",
        line="stalled in actor_train for 14 min (usual 0:41)",
        evidence=("GPU 0 %", "no log line for 14 min", "no disk write"),
        advice="Look at the trainer with py-spy, then stop and resume; 6 rollouts would be lost.",
    )
    return running(
        story=story(
            phase=PhaseClock(name="actor_train", since=NOW - 14 * MIN),
            bar=Bar(name="actor_train", done=27, total=32, moved_at=NOW - 14 * MIN),
            progress=Progress(at=NOW - 14 * MIN, what="actor_train 27/32"),
            last_line_at=NOW - 14 * MIN,
        ),
        gpus=known(
            report(gpu(utilisation_ratio=known(0.0, NOW), power_w=known(11.0, NOW))),
            NOW,
        ),
        history={
            **history(),
            "gpu0.utilisation_ratio": wave(600, 0.0, 0.0, last_x=NOW),
            "gpu0.power_w": wave(600, 10.8, 11.2, last_x=NOW),
        },
        lines=tuple(replace(line, at=line.at - 14 * MIN) for line in lines()),
        verdict=verdict(
            state=RunState.STALLED,
            since=NOW - 12 * MIN,
            reason=stall.line,
            degraded=(stall.code,),
            alerts=(stall,),
            forecast=None,
        ),
        alert_log=(record(stall, since=NOW - 12 * MIN, first_at=NOW - 12 * MIN),),
    )


def failed() -> Snapshot:
    """Ended badly: the trainer died of a full disk."""
    broken = alert(
        code="run-failed",
        level=Level.CRITICAL,
        subject="",
        line="the run failed: disk full while saving iter 80",
        evidence=("OSError: [Errno 28] No space left on device",),
        advice="Free disk, then start again; a resume loads 60.",
    )
    return running(
        story=story(
            phase=None,
            open_timers=(),
            bar=None,
            progress=Progress(at=NOW - 5 * MIN - 20, what="save started"),
            last_line_at=NOW - 5 * MIN,
            ending=Ending(end="failed", detail="Job 'raysubmit_1' failed", at=NOW - 5 * MIN),
            clues=(
                Clue(
                    kind="disk full",
                    line="OSError: [Errno 28] No space left on device",
                    source="trainer",
                    at=NOW - 5 * MIN - 3,
                ),
            ),
        ),
        container=known(container(status="exited", exit_code=1, finished_at=NOW - 5 * MIN), NOW),
        verdict=verdict(
            state=RunState.FAILED,
            since=NOW - 5 * MIN,
            reason="Job 'raysubmit_1' failed",
            degraded=(),
            cause=Cause(
                line="disk full while saving iter 80",
                kind="disk full",
                evidence=(
                    "trainer: OSError: [Errno 28] No space left on device",
                    "iter_0000080 has no .metadata",
                ),
            ),
            alerts=(broken,),
            risk=None,
            engines=(
                engine_verdict(
                    state=EngineState.DEAD, since=NOW - 5 * MIN, reason="connection refused"
                ),
            ),
            forecast=None,
        ),
        alert_log=(record(broken, since=NOW - 5 * MIN, first_at=NOW - 5 * MIN),),
    )


def diverged() -> Snapshot:
    """The loss became nan at step 58 and has not come back."""
    nan = alert(
        code="metric-non-finite",
        level=Level.CRITICAL,
        subject="train/loss",
        line="train/loss is nan since step 58",
        evidence=("step 58: 'train/loss': nan",),
        advice="Stop the run and go back to checkpoint 40, from before step 58.",
    )
    told = story()
    loss = told.series["train/loss"].points
    grad = told.series["train/grad_norm"].points
    series = dict(told.series)
    series["train/loss"] = Series(points=loss[:-3] + tuple((x, math.nan) for x, _ in loss[-3:]))
    series["train/grad_norm"] = Series(
        points=(*grad[:-4], (grad[-4][0], 9.1e6), *((x, math.inf) for x, _ in grad[-3:]))
    )
    return running(
        story=replace(
            told,
            latest={**told.latest, "train/loss": math.nan, "train/grad_norm": math.inf},
            series=series,
            non_finite=NonFinite(key="train/loss", number=58, at=NOW - 7 * MIN, value="nan"),
        ),
        verdict=verdict(degraded=(nan.code,), alerts=(nan,)),
        alert_log=(record(nan, since=NOW - 7 * MIN, first_at=NOW - 7 * MIN),),
    )


def starting() -> Snapshot:
    """Launched four minutes ago as a resume; the first rollout has not begun."""
    return running(
        story=Story(
            attempt=2,
            started_at=NOW - 4 * MIN,
            job_id="raysubmit_2",
            launch=launch(),
            backend="fsdp",
            progress=Progress(at=NOW - 20, what="engine 0 addressed"),
            last_line_at=NOW - 20,
            loads=(
                LoadRecord(
                    part="model",
                    result="loaded",
                    path=f"{SAVE_ROOT}/iter_0000060/model",
                    iteration=60,
                    detail="",
                    at=NOW - 90,
                ),
                LoadRecord(
                    part="optimizer",
                    result="loaded",
                    path=f"{SAVE_ROOT}/iter_0000060/optimizer",
                    iteration=60,
                    detail="",
                    at=NOW - 85,
                ),
            ),
            engines=(LogEngine(index=0, host="192.0.2.2", port=15000),),
            router_url=ROUTER_URL,
            timeline=(
                Moment(at=NOW - 4 * MIN, text="launched raysubmit_2"),
                Moment(at=NOW - 90, text="loaded model of iter 60"),
                Moment(at=NOW - 85, text="loaded optimizer of iter 60"),
            ),
        ),
        verdict=verdict(
            state=RunState.STARTING,
            since=NOW - 4 * MIN,
            reason="engines are starting",
            engines=(
                engine_verdict(
                    state=EngineState.STARTING,
                    since=NOW - 20,
                    reason="/health answers 503",
                    throughput_tokens_per_s=0.0,
                    tokens_moved_at=0.0,
                    weight_version="",
                ),
            ),
            resume=ResumeProof(
                outcome=Resume.PENDING,
                line="model and optimizer of iter 60 loaded; first rollout not seen yet",
                checkpoint=f"{SAVE_ROOT}/iter_0000060",
                expected_rollout=60,
            ),
            forecast=None,
            stall_limit_s=None,
        ),
    )


def finished() -> Snapshot:
    """Ended by itself, well, ten minutes ago."""
    return running(
        story=story(
            rollout=199,
            rollouts_done=200,
            phase=None,
            open_timers=(),
            bar=None,
            progress=Progress(at=NOW - 10 * MIN, what="rollout 199 trained"),
            ending=Ending(end="succeeded", detail="Job 'raysubmit_1' succeeded", at=NOW - 10 * MIN),
        ),
        verdict=verdict(
            state=RunState.FINISHED,
            since=NOW - 10 * MIN,
            reason="Job 'raysubmit_1' succeeded",
            engines=(),
            risk=None,
            forecast=None,
        ),
    )


def no_gpu() -> Snapshot:
    """A running run on a box whose GPU cannot be read."""
    kept = {k: v for k, v in history().items() if not k.startswith("gpu")}
    return running(gpus=NO_GPU, history=kept)


def many_gpus(count: int = 8) -> Snapshot:
    """A box of discrete cards."""
    return running(gpus=known(report(*(discrete_gpu(i) for i in range(count))), NOW))


def guarded(**changes: Any) -> Snapshot:
    """A guard watches, and may resume."""
    guard = GuardStatus(
        state=GuardState.ON,
        pid=5150,
        policy="resume",
        since=NOW - 131.0,
        seen_at=NOW - 2.0,
        words="watches",
        said_at=NOW - 131.0,
        channels=("ntfy://•••",),
    )
    return running(guard=replace(guard, **changes))


def empty() -> Snapshot:
    """Nothing was found to watch."""
    return Snapshot(
        now=NOW,
        attachment=Attachment(
            notes=(
                "no container of Miles is running (asked Docker at /var/run/docker.sock)",
                "no process runs train.py",
                "no log was named; name one with --log FILE",
            )
        ),
        verdict=Verdict(since=NOW, reason="no run was found"),
    )


def several() -> Snapshot:
    """Two runs to choose from, the newer one with something that could not be read."""
    newer = Attachment(
        name="miles-run-b",
        log=Found(value="/home/me/runs/plain-2.log", source="output of `docker run`, process 4200"),
        notes=("checkpoints: --save /root/saved is on no mount of container miles-run-b",),
    )
    older = Attachment(
        name="plain",
        log=Found(value="/home/me/runs/plain.log", source="output of the driver, process 4100"),
        checkpoints=Found(value="/data/ckpt/run-a", source="--save of process 4100"),
    )
    return replace(
        empty(),
        choices=(
            ListedRun(
                handle="miles-run-b",
                attachment=newer,
                state="running",
                started_at=NOW - 120.0,
                log_written_at=NOW - 2.0,
                found_by=("container miles-run-b", "docker run, process 4200"),
            ),
            ListedRun(
                handle="4100",
                attachment=older,
                state="running",
                started_at=NOW - 9000.0,
                log_written_at=NOW - 30.0,
                found_by=("driver, process 4100",),
            ),
        ),
    )


def all_snapshots() -> Iterable[tuple[str, Snapshot]]:
    """Every state above by name."""
    for make in (
        running,
        degraded,
        generating,
        stalled,
        failed,
        diverged,
        starting,
        finished,
        no_gpu,
        many_gpus,
        guarded,
        empty,
        several,
    ):
        yield make.__name__, make()
