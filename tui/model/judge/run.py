"""Alerts about the run itself: its state, its numbers, its engines, how it began."""

from __future__ import annotations

from collections.abc import Iterator

from tui.model.engine import EngineState, EngineVerdict
from tui.model.judge.engines import MUTE
from tui.model.judge.signs import idle_devices, lines_since_progress
from tui.model.judge.standing import Standing
from tui.model.judge.state import has_begun
from tui.model.judge.words import span
from tui.model.series import quantile
from tui.model.snapshot import Alert, Cause, Level, Resume, ResumeProof, RunState, Snapshot
from tui.model.story.phases import GENERATE

SPIKE_FACTOR = 1000.0
"""A gradient norm this many times its own median is no training any more."""
_RETRIES_ACTIVE_S = 90.0
_SLOW_S = _FRESH_S = 120.0
_UNCHECKED_S = 120.0


_HUNG = ("its health check proves only that its HTTP process lives",)
_MUTE = ("neither /metrics nor /health is answered, and its log lines tell of no token",)
_STALLED_ADVICE = "take stack dumps (py-spy) first; then resume from the newest whole checkpoint"
_STARTUP_ADVICE = "compare the script's GPU count with the box, and ask the router for its workers"


def run_alerts(
    snapshot: Snapshot,
    standing: Standing,
    engines: tuple[EngineVerdict, ...],
    resume: ResumeProof,
    cause: Cause | None,
) -> Iterator[Alert]:
    """Alerts of the run."""
    yield from _state(snapshot, standing, cause)
    yield from _resume(resume)
    yield from _numbers(snapshot)
    yield from _mixed_weights(snapshot)
    if standing.has_ended:
        return
    yield from _engines(snapshot, engines)
    yield from _retries(snapshot)
    yield from _memory_kills(snapshot)


def _state(snapshot: Snapshot, standing: Standing, cause: Cause | None) -> Iterator[Alert]:
    if standing.state is RunState.STALLED:
        is_started = has_begun(snapshot.story)
        yield Alert(
            code="stalled",
            level=Level.CRITICAL,
            line=f"stalled: {standing.reason}",
            evidence=(
                f"limit {span(standing.stall_limit_s or 0.0)}",
                *lines_since_progress(snapshot),
                *idle_devices(snapshot),
            ),
            advice=_STALLED_ADVICE if is_started else _STARTUP_ADVICE,
        )
    elif standing.state in (RunState.FAILED, RunState.CRASHED) and cause is not None:
        yield Alert(
            code=f"run-{standing.state.value}",
            level=Level.CRITICAL,
            line=f"{standing.state.value}: {cause.line}",
            evidence=cause.evidence[:1],
            advice="read the last error (key e); a resume loads the tracked checkpoint",
        )


def _resume(resume: ResumeProof) -> Iterator[Alert]:
    if resume.outcome is Resume.SILENT_FRESH:
        yield Alert(
            code="silent-fresh-start",
            level=Level.CRITICAL,
            line=resume.line,
            evidence=resume.evidence,
            advice="stop it before its first save; --load must name the folder with the tracker",
        )
    elif resume.outcome is Resume.WRONG_NUMBER:
        yield Alert(
            code="resume-wrong-rollout",
            level=Level.CRITICAL,
            line=resume.line,
            evidence=resume.evidence,
            advice="stop it before it overwrites checkpoints, keep a copy of the tracker, restart "
            f"with --start-rollout-id {resume.expected_rollout}",
        )
    elif resume.outcome is Resume.INCOMPLETE:
        yield Alert(
            code="resume-incomplete",
            level=Level.WARNING,
            line=resume.line,
            evidence=resume.evidence,
            advice="the run goes on, but not as it would have without the stop",
            degrades=False,
        )


def _numbers(snapshot: Snapshot) -> Iterator[Alert]:
    story = snapshot.story
    bad = story.non_finite
    if bad is not None:
        yield Alert(
            code="non-finite",
            level=Level.CRITICAL,
            line=f"{bad.key} is {bad.value} since step {bad.number}: the run has diverged",
            evidence=(f"step {bad.number}: {bad.key} = {bad.value}", *_spikes(snapshot)),
            advice=_advice_before(snapshot, bad.number),
        )
        return
    norms = story.series.get("train/grad_norm")
    finite = norms.finite() if norms else ()
    if len(finite) < 2:
        return
    usual = quantile(tuple(value for _, value in finite[:-1]), 0.5) or 0.0
    step, value = finite[-1]
    if usual > 0 and value > SPIKE_FACTOR * usual:
        yield Alert(
            code="gradient-spike",
            level=Level.WARNING,
            line=f"gradient norm {value:.3g} at step {step:.0f}, usual {usual:.3g}",
            evidence=(f"step {step:.0f}: train/grad_norm = {value}",),
            advice=_advice_before(snapshot, int(step)),
        )


def _mixed_weights(snapshot: Snapshot) -> Iterator[Alert]:
    """A recovered engine answers before its first weight update."""
    latest = snapshot.story.latest
    ratio = latest.get("rollout/weight_version/mixed_version_ratio", 0.0)
    oldest = latest.get("rollout/weight_version/min")
    if ratio > 0 and oldest is not None and snapshot.story.rollout is not None:
        yield Alert(
            code="mixed-weights",
            level=Level.INFO,
            line=f"rollout {snapshot.story.rollout}: {ratio:.0%} of the samples mix weights, "
            f"oldest version {oldest:.0f}",
            advice="no failure; read this rollout's numbers with it in mind",
            degrades=False,
        )


def _spikes(snapshot: Snapshot) -> tuple[str, ...]:
    """Gradient norms out of all bounds: where it began."""
    norms = snapshot.story.series.get("train/grad_norm")
    finite = norms.finite() if norms else ()
    usual = quantile(tuple(value for _, value in finite), 0.5) or 0.0
    least = min((value for _, value in finite), default=0.0)
    bound = SPIKE_FACTOR * (usual if usual < SPIKE_FACTOR * least else least)
    return tuple(
        f"step {step:.0f}: train/grad_norm = {value:.3g}"
        for step, value in finite
        if bound > 0 and value > bound
    )[:2]


def _advice_before(snapshot: Snapshot, step: int) -> str:
    """Which checkpoint was saved before the damage."""
    per_rollout = snapshot.story.steps_per_rollout or 1
    rollout = step // per_rollout
    shift = 0 if snapshot.story.backend == "megatron" else 1
    sane = [
        save.iteration
        for save in snapshot.story.saves
        if save.saved_at is not None and save.iteration - shift < rollout
    ]
    if sane:
        return f"stop it and go back to checkpoint {max(sane)}, saved before the damage"
    return "stop it; no checkpoint of this log was saved before the damage"


def _engines(snapshot: Snapshot, engines: tuple[EngineVerdict, ...]) -> Iterator[Alert]:
    story = snapshot.story
    tolerant = story.launch.fault_tolerance or story.checking is not None
    tolerant = tolerant or any(engine.killed_at for engine in story.engines)
    alive = [engine for engine in engines if engine.state is not EngineState.DEAD]
    for engine in engines:
        if engine.state is EngineState.DEAD:
            advice = "Miles restarts it at the next weight update"
            if not tolerant:
                advice = "without fault tolerance the trainer keeps asking it; resume the run"
            elif not alive:
                advice = "no engine is left, so the update that would restart it is never reached"
            if "while it worked" in engine.reason:
                advice += "; it was only slow: raise --rollout-health-check-timeout"
            yield Alert(
                code="engine-dead",
                level=Level.CRITICAL if not tolerant or not alive else Level.WARNING,
                subject=engine.label,
                line=f"engine {engine.label} is dead: {engine.reason}",
                evidence=(engine.url,) if engine.url else (),
                advice=advice,
            )
        elif engine.state is EngineState.SUSPECT:
            yield Alert(
                code="engine-suspect",
                level=Level.WARNING,
                subject=engine.label,
                line=f"engine {engine.label} may hang: {engine.reason}",
                evidence=_MUTE if engine.reason.startswith(MUTE) else _HUNG,
                advice="look again in a minute; without fault tolerance resume the run",
            )
        elif engine.state in (EngineState.RECOVERED, EngineState.NO_TRAFFIC, EngineState.BUSY):
            yield Alert(
                code=f"engine-{engine.state.value.replace(' ', '-')}",
                level=Level.INFO,
                subject=engine.label,
                line=f"engine {engine.label}: {engine.reason}",
                degrades=False,
            )
    yield from _killed_in_warmup(snapshot)
    yield from _slow(snapshot)
    yield from _unchecked(snapshot)


def _killed_in_warmup(snapshot: Snapshot) -> Iterator[Alert]:
    story = snapshot.story
    if story.first_wait_s is None or story.first_wait_s > 0 or story.rollouts_done:
        return
    for engine in story.engines:
        if engine.killed_at and not engine.worked_at:
            yield Alert(
                code="engine-killed-in-warm-up",
                level=Level.WARNING,
                subject=str(engine.index),
                line=f"engine {engine.index} was killed by its health check during warm-up "
                "(first wait 0 s); likely a false alarm",
                evidence=(engine.kill_detail,) if engine.kill_detail else (),
                advice="set --rollout-health-check-first-wait to 300 or more for the restart",
            )


def _slow(snapshot: Snapshot) -> Iterator[Alert]:
    """Decoding far below its own usual, in all and for each request: slow, not dead."""
    for engine in snapshot.story.engines:
        usual = engine.throughputs.median_s()
        is_old = snapshot.now - engine.worked_at > _FRESH_S
        if usual is None or not engine.slow_since or is_old:
            continue
        # While prompts are read in, few tokens come out: that passes.
        if engine.worked_at - engine.slow_since >= _SLOW_S:
            yield Alert(
                code="engine-slow",
                level=Level.WARNING,
                subject=str(engine.index),
                line=f"engine {engine.index} decodes at {engine.throughput_tokens_per_s:.0f} "
                f"tokens/s, usual {usual:.0f}",
                evidence=(f"{engine.running} running, {engine.queued} queued",),
                advice="look for retractions (KV cache full); fewer requests at once help",
            )


def _unchecked(snapshot: Snapshot) -> Iterator[Alert]:
    """Miles' health monitor should be resumed by the time it generates."""
    story = snapshot.story
    if story.checking is not False or story.phase is None or story.phase.name != GENERATE:
        return
    since = max(story.checking_since, story.phase.since)
    if snapshot.now - since > _UNCHECKED_S:
        yield Alert(
            code="engines-unchecked",
            level=Level.WARNING,
            line=f"engines are not being checked for {span(snapshot.now - story.checking_since)}: "
            "Miles' health monitor is still paused",
            advice="a dead engine would go unnoticed by Miles until the next weight update",
            degrades=False,
        )


def _retries(snapshot: Snapshot) -> Iterator[Alert]:
    storm = snapshot.story.retries
    if storm is None or snapshot.now - storm.at > _RETRIES_ACTIVE_S:
        return
    if storm.exhausted_at:
        line = f"generate requests are given up after {storm.limit} attempts"
        level = Level.CRITICAL
    else:
        left = max(0, storm.limit - storm.attempt)
        line = f"generate requests fail: attempt {storm.attempt}/{storm.limit}, "
        line += f"given up in about {left} s"
        level = Level.WARNING
    yield Alert(
        code="requests-failing",
        level=level,
        line=line,
        evidence=(f"{storm.url} answered {storm.response or 'nothing'}", f"{storm.count} failures"),
        advice="the router has no worker"
        if "No available" in storm.response
        else "an engine or the router is gone",
    )


def _memory_kills(snapshot: Snapshot) -> Iterator[Alert]:
    kills = snapshot.story.memory_kills
    if kills:
        yield Alert(
            code="ray-memory-kill",
            level=Level.WARNING,
            line="Ray killed a worker because the box ran out of memory",
            evidence=(f"{kills} lines of Ray's memory monitor",),
            advice="lower the engines' memory share or the batch; Ray's line is 95 % of the pool",
        )
