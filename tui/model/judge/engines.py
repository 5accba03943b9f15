"""What each engine is doing: health is one vote, tokens that move the other."""

from __future__ import annotations

from dataclasses import replace

from tui.model.engine import EngineMetrics, EngineState, EngineTrack, EngineVerdict
from tui.model.judge.standing import Standing
from tui.model.judge.words import span
from tui.model.progress import LogEngine, Story
from tui.model.reading import Known, value_or
from tui.model.snapshot import Snapshot
from tui.model.story.phases import EVAL, GENERATE

MOVING_S = 25.0
"""Tokens moved within this time still move: metrics are asked for every ten seconds."""
_GAPS = 3.0
"""Open requests without a token are suspect past the limit, or past this many usual gaps."""
_UNWELL_S = 60.0
_NO_TRAFFIC_S = 120.0
_FOLDED_S = 600.0
UNREACHABLE_S = 4.0
"""One refused connection is an accident, two looks in a row are a fact."""
_MADE_AHEAD_S = 5.0
MUTE = "takes connections, and has answered nothing"


def engines_of(snapshot: Snapshot, end: Standing | None) -> tuple[EngineVerdict, ...]:
    """A verdict on every engine that the log or a probe knows."""
    story = snapshot.story
    by_url = {track.probe.url: track for track in snapshot.engines}
    rows = []
    for engine in story.engines:
        track = by_url.pop(engine.url, None)
        rows.append(_verdict(snapshot, end, engine, track))
    rows.extend(_verdict(snapshot, end, None, track) for track in by_url.values())
    return _with_traffic(snapshot, tuple(rows))


def _verdict(
    snapshot: Snapshot,
    end: Standing | None,
    engine: LogEngine | None,
    track: EngineTrack | None,
) -> EngineVerdict:
    metrics = _metrics(engine, track)
    moved_at = max(track.tokens_moved_at if track else 0.0, engine.worked_at if engine else 0.0)
    if end is not None:
        metrics = EngineMetrics()
        state, since, reason = _ended(end, track)
    else:
        state, since, reason = _state(snapshot, engine, track, metrics, moved_at)
    before = {each.url or each.label: each for each in snapshot.verdict.engines}
    label = str(engine.index) if engine else _address(track)
    url = (engine.url if engine else "") or (track.probe.url if track else "")
    old = before.get(url or label)
    return EngineVerdict(
        label=label,
        url=url,
        state=state,
        since=old.since if old is not None and old.state is state else since,
        reason=reason,
        throughput_tokens_per_s=metrics.throughput_tokens_per_s,
        running_requests=metrics.running_requests,
        queued_requests=metrics.queued_requests,
        token_usage_ratio=metrics.token_usage_ratio,
        cache_hit_ratio=metrics.cache_hit_ratio,
        tokens_moved_at=moved_at,
        weight_version=value_or(track.probe.weight_version, "") if track else "",
    )


def _metrics(engine: LogEngine | None, track: EngineTrack | None) -> EngineMetrics:
    """By its own word where it was asked, else by its lines in the log."""
    if track is not None and isinstance(track.probe.metrics, Known):
        return track.probe.metrics.value
    if engine is None:
        return EngineMetrics()
    return EngineMetrics(
        running_requests=float(engine.running),
        queued_requests=float(engine.queued),
        token_usage_ratio=engine.token_usage_ratio,
        throughput_tokens_per_s=engine.throughput_tokens_per_s,
    )


def _address(track: EngineTrack | None) -> str:
    return track.probe.url.removeprefix("http://") if track else "?"


Told = tuple[EngineState, float, str]


def _state(
    snapshot: Snapshot,
    engine: LogEngine | None,
    track: EngineTrack | None,
    metrics: EngineMetrics,
    moved_at: float,
) -> Told:
    return (
        _killed(engine)
        or _unreachable(snapshot, engine, track)
        or _recovered(snapshot.story, engine)
        or _starting(snapshot, engine, track)
        or _moving(snapshot, engine, moved_at)
        or _paused(snapshot)
        or _mute(snapshot, track, moved_at)
        or _silent(snapshot, engine, track, metrics, moved_at)
    )


def _ended(end: Standing, track: EngineTrack | None) -> Told:
    """After the end an engine that is gone is no news, and one that still answers is."""
    if track is not None and track.answered_at > end.since and not track.unreachable_since:
        return EngineState.IDLE, end.since, "still answers after the run has ended"
    return EngineState.UNKNOWN, end.since, "the run has ended"


def _killed(engine: LogEngine | None) -> Told | None:
    if engine is None or engine.killed_at <= max(engine.ready_at, engine.recovered_at):
        return None
    told = "killed by Miles' health check, slot empty"
    if engine.worked_at and engine.killed_at - engine.worked_at < _UNWELL_S:
        told = "killed by Miles' health check while it worked, slot empty"
    return EngineState.DEAD, engine.killed_at, told


def _unreachable(
    snapshot: Snapshot, engine: LogEngine | None, track: EngineTrack | None
) -> Told | None:
    if track is None or not track.unreachable_since:
        return None
    since = track.unreachable_since
    reading = track.probe.reachable
    detail = "connection refused" if isinstance(reading, Known) else reading.reason
    was_ready = engine is not None and engine.ready_at > 0
    if not track.answered_at and not was_ready:
        if not snapshot.story.rollouts_done and snapshot.story.phase is None:
            return EngineState.STARTING, since, "not listening yet"
        return EngineState.UNKNOWN, since, f"never reached from here: {detail}"
    if snapshot.now - since < UNREACHABLE_S:
        return None
    if not track.answered_at:
        return EngineState.UNKNOWN, since, f"never reached from here: {detail}"
    return EngineState.DEAD, since, f"{detail} for {span(snapshot.now - since)}"


def _recovered(story: Story, engine: LogEngine | None) -> Told | None:
    if engine is None or engine.recovered_at <= story.weights_updated_at:
        return None
    return (
        EngineState.RECOVERED,
        engine.recovered_at,
        "new engine, old weights until the next update",
    )


def _starting(
    snapshot: Snapshot, engine: LogEngine | None, track: EngineTrack | None
) -> Told | None:
    status = track.probe.health_status if track else None
    if isinstance(status, Known) and status.value == 503 and snapshot.story.phase is None:
        return EngineState.STARTING, status.at, "answers 503: starting"
    if engine is None or track is not None or engine.ready_at or engine.worked_at:
        return None
    if snapshot.story.phase is not None:
        return None
    return EngineState.STARTING, snapshot.now, "no sign of life in the log yet"


def _moving(snapshot: Snapshot, engine: LogEngine | None, moved_at: float) -> Told | None:
    age = snapshot.now - moved_at
    limit = min(MOVING_S, snapshot.limits.engine_silent_s)
    if not moved_at or age > limit or age < -_MADE_AHEAD_S or _is_offloaded(snapshot):
        return None
    if engine is not None and snapshot.now - engine.unwell_at < _UNWELL_S and engine.unwell_at:
        return EngineState.BUSY, engine.unwell_at, "slow to answer a health check while tokens move"
    return EngineState.GENERATING, moved_at, "tokens move"


def _trains(snapshot: Snapshot) -> bool:
    phase = snapshot.story.phase
    return phase is not None and phase.name not in (GENERATE, EVAL)


def _is_offloaded(snapshot: Snapshot) -> bool:
    """A colocated engine has no memory to work with while the trainer has it.

    Counters cannot tell: the look that finds them risen may come after generation has ended.
    """
    launch = snapshot.story.launch
    is_async = launch.script.endswith("train_async.py")
    return _trains(snapshot) and not is_async and (launch.colocate or not launch.argv)


def _paused(snapshot: Snapshot) -> Told | None:
    """While the trainer works, nothing is asked of the engines."""
    phase = snapshot.story.phase
    if phase is None or not _trains(snapshot):
        return None
    told = "offloaded while training" if _is_offloaded(snapshot) else "not asked while training"
    return EngineState.PAUSED, phase.since, told


def _mute(snapshot: Snapshot, track: EngineTrack | None, moved_at: float) -> Told | None:
    """Its port is open and nobody behind it answers: not idle, and perhaps only very busy."""
    if track is None or not track.mute_since:
        return None
    silent_s = snapshot.now - max(track.mute_since, moved_at)
    if silent_s <= snapshot.limits.engine_silent_s:
        return EngineState.UNKNOWN, track.mute_since, f"no answer for {span(silent_s)} yet"
    return EngineState.SUSPECT, track.mute_since, f"{MUTE} for {span(silent_s)}"


def _silent(
    snapshot: Snapshot,
    engine: LogEngine | None,
    track: EngineTrack | None,
    metrics: EngineMetrics,
    moved_at: float,
) -> Told:
    now = snapshot.now
    since = moved_at or (track.first_seen_at if track else now)
    is_open = metrics.running_requests + metrics.queued_requests > 0
    open_since = track.open_since if track else 0.0
    if track is None and engine is not None:
        is_open = not _may_be_folded(snapshot) and engine.running + engine.queued > 0
        open_since = engine.worked_at
    phase = snapshot.story.phase
    asked_since = max(open_since, phase.since if phase else 0.0)
    patience = snapshot.limits.engine_silent_s
    if track is not None:
        patience = max(patience, _GAPS * track.usual_gap_s)
    silent_s = now - max(moved_at, asked_since)
    if is_open and silent_s > patience:
        told = f"{metrics.running_requests:.0f} requests open" if track else "requests open"
        return EngineState.SUSPECT, since, f"answers, {told}, no token for {span(silent_s)}"
    if is_open:
        return EngineState.GENERATING, since, f"requests open, no token seen for {span(silent_s)}"
    if track is not None and track.answered_at:
        return EngineState.IDLE, since, "nothing asked"
    if engine is not None and (engine.worked_at or engine.ready_at):
        if _may_be_folded(snapshot):
            return EngineState.UNKNOWN, since, "its lines may be folded into another's by Ray"
        return EngineState.IDLE, since, "no batch line lately"
    return EngineState.UNKNOWN, since, "neither the log nor a probe tells"


def _may_be_folded(snapshot: Snapshot) -> bool:
    """Ray prints one line for many engines: an engine without a line has not fallen silent."""
    folded_at = snapshot.story.batches_folded_at
    return folded_at > 0 and snapshot.now - folded_at < _FOLDED_S


def _with_traffic(snapshot: Snapshot, rows: tuple[EngineVerdict, ...]) -> tuple[EngineVerdict, ...]:
    """An engine that idles while the others work is getting nothing from the router."""
    phase = snapshot.story.phase
    works = any(row.state in (EngineState.GENERATING, EngineState.BUSY) for row in rows)
    if not works or phase is None or phase.name != GENERATE:
        return rows
    if snapshot.now - phase.since < _NO_TRAFFIC_S:
        return rows
    return tuple(
        replace(row, state=EngineState.NO_TRAFFIC, reason="others work, nothing comes here")
        if row.state is EngineState.IDLE and snapshot.now - row.tokens_moved_at > _NO_TRAFFIC_S
        else row
        for row in rows
    )
