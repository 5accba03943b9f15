"""Engines and router as the log tells them."""

from __future__ import annotations

from dataclasses import replace

from tui.model.events import (
    EngineAddressed,
    EngineKilled,
    EngineListening,
    EngineReady,
    EnginesRecovered,
    EngineUnwell,
    EngineWorked,
    HealthChecking,
    RequestRetried,
    RetriesExhausted,
    RouterAddressed,
)
from tui.model.progress import LogEngine, RetryStorm, Story
from tui.model.series import Durations
from tui.model.story.moments import moved, noted

_STORM_GAP_S = 120.0
_SLOW_FACTOR = 5.0


def engine_addressed(story: Story, event: EngineAddressed) -> Story:
    """Where an engine listens; said again, with another port, when a slot gets a new engine."""
    old = _slot(story, event.index)
    return _with(story, replace(old, is_numbered=True, host=event.host, port=event.port))


def router_addressed(story: Story, event: RouterAddressed) -> Story:
    """Where the router listens."""
    return replace(moved(story, event.at, "router launched"), router_url=event.url)


def engine_ready(story: Story, event: EngineReady) -> Story:
    """A server is up: its process takes the slot that waits for one."""
    story = moved(story, event.at, "engine ready")
    engine = _engine_of(story, event.pid)
    return _with(story, replace(engine, pid=event.pid, ready_at=event.at))


def engine_listening(story: Story, event: EngineListening) -> Story:
    """Which process serves which port: the one sure link between the two."""
    for engine in story.engines:
        if engine.port == event.port:
            return _with(story, replace(engine, pid=event.pid))
    return story


def engine_worked(story: Story, event: EngineWorked) -> Story:
    """Tokens moved in an engine; a health check's own token is no work."""
    if event.probe_only:
        return story
    if event.repeated:
        story = replace(story, batches_folded_at=max(story.batches_folded_at, event.at))
    engine = replace(
        _with_rate(_engine_of(story, event.pid), event),
        pid=event.pid,
        running=event.running,
        queued=event.queued,
        token_usage_ratio=event.token_usage_ratio,
        throughput_tokens_per_s=event.throughput_tokens_per_s,
    )
    story = _with(story, replace(engine, worked_at=max(engine.worked_at, event.at)))
    return moved(story, event.at, "tokens generated")


def _with_rate(engine: LogEngine, event: EngineWorked) -> LogEngine:
    """With the rate of a decode line, and since when such lines are far below the usual."""
    rate = event.throughput_tokens_per_s
    if rate <= 0 or not event.running:
        return engine
    each = rate / event.running
    is_slow = _is_far_below(rate, engine.throughputs) and _is_far_below(each, engine.request_rates)
    return replace(
        engine,
        throughputs=engine.throughputs.add(rate),
        request_rates=engine.request_rates.add(each),
        slow_since=(engine.slow_since or event.at) if is_slow else 0.0,
    )


def _is_far_below(rate: float, seen: Durations) -> bool:
    usual = seen.median_s()
    return usual is not None and rate < usual / _SLOW_FACTOR


def engine_unwell(story: Story, event: EngineUnwell) -> Story:
    """A health check failed, by Miles' word (with an index) or by SGLang's own (with a process)."""
    if event.index is None:
        if event.pid is None:
            return story
        engine = _engine_of(story, event.pid)
        return _with(story, replace(engine, pid=event.pid, unwell_at=event.at))
    story, engine = _numbered(story, event.index, event)
    text = f"engine {event.index} failed its health check"
    story = noted(story, event.at, text, "warning")
    return _with(story, replace(engine, unwell_at=event.at, kill_detail=event.detail))


def _numbered(story: Story, index: int, event: EngineUnwell) -> tuple[Story, LogEngine]:
    """The slot Miles speaks of.

    A process that has no number yet may be it: the one the message names, or one that was unwell
    just before.
    """
    engine = _slot(story, index)
    if engine.is_numbered or (engine.pid is not None and _says(event.detail, engine)):
        return story, replace(engine, is_numbered=True)
    for other in story.engines:
        was_unwell = 0 <= event.at - other.unwell_at <= _STORM_GAP_S
        if not other.is_numbered and (_says(event.detail, other) or was_unwell):
            left = tuple(each for each in story.engines if each.index != other.index)
            return replace(story, engines=left), replace(other, index=index, is_numbered=True)
    return story, LogEngine(index=index, is_numbered=True)


def _says(detail: str, engine: LogEngine) -> bool:
    """The message names this engine's process or port."""
    by_pid = engine.pid is not None and f"pid={engine.pid}," in detail
    return by_pid or (bool(engine.port) and f"port={engine.port}" in detail)


def engine_killed(story: Story, event: EngineKilled) -> Story:
    """The engine of a slot was killed by Miles."""
    story = noted(story, event.at, f"engine {event.index} killed by Miles", "warning")
    return _with(story, replace(_slot(story, event.index), killed_at=event.at))


def engines_recovered(story: Story, event: EnginesRecovered) -> Story:
    """Killed slots have new engines; they serve old weights until the next update."""
    if event.count == 0:
        return story
    for engine in story.engines:
        if engine.killed_at > engine.recovered_at:
            story = _with(story, replace(engine, recovered_at=event.at))
    text = f"{event.count} engine{'s' if event.count > 1 else ''} recovered"
    return noted(moved(story, event.at, text), event.at, text)


def health_checking(story: Story, event: HealthChecking) -> Story:
    """Miles' own health monitor was paused or resumed."""
    wait = story.first_wait_s if event.first_wait_s is None else event.first_wait_s
    if story.checking == event.active:
        return replace(story, first_wait_s=wait)
    return replace(story, checking=event.active, checking_since=event.at, first_wait_s=wait)


def request_retried(story: Story, event: RequestRetried) -> Story:
    """One of many requests failed; all of them are one storm."""
    storm = story.retries
    if storm is None or event.at - storm.at > _STORM_GAP_S:
        story = noted(story, event.at, "generate requests fail and are retried", "warning")
        storm = RetryStorm(
            since=event.at, at=event.at, attempt=0, limit=0, url="", response="", count=0
        )
    response = event.response if event.response != "None" or not storm.response else storm.response
    storm = replace(
        storm,
        at=max(storm.at, event.at),
        attempt=max(storm.attempt, event.attempt),
        limit=event.limit,
        url=event.url,
        response=response,
        count=storm.count + 1,
    )
    return replace(story, retries=storm)


def retries_exhausted(story: Story, event: RetriesExhausted) -> Story:
    """A request was given up."""
    storm = story.retries or RetryStorm(
        since=event.at, at=event.at, attempt=0, limit=0, url=event.url, response="", count=0
    )
    if not storm.exhausted_at:
        story = noted(story, event.at, "a generate request was given up", "critical")
    return replace(story, retries=replace(storm, at=event.at, exhausted_at=event.at))


def _slot(story: Story, index: int) -> LogEngine:
    for engine in story.engines:
        if engine.index == index:
            return engine
    return LogEngine(index=index)


def _engine_of(story: Story, pid: int) -> LogEngine:
    """The slot of a process: its own, a killed one's, the first without a process, a new one."""
    for engine in story.engines:
        if engine.pid == pid:
            return engine
    for engine in story.engines:
        if engine.killed_at > engine.ready_at and engine.killed_at >= engine.recovered_at:
            return engine
    for engine in story.engines:
        if engine.pid is None:
            return engine
    return LogEngine(index=max((engine.index for engine in story.engines), default=-1) + 1)


def _with(story: Story, engine: LogEngine) -> Story:
    others = tuple(other for other in story.engines if other.index != engine.index)
    ordered = tuple(sorted((*others, engine), key=lambda each: each.index))
    return replace(story, engines=ordered)
