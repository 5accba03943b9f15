"""The only maker of snapshots: one snapshot and one event in, one snapshot out. Reads no clock."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tui.model import events
from tui.model.checkpoint import Verifying
from tui.model.clock import stepped
from tui.model.engine import EngineMetrics, EngineProbe, EngineTrack
from tui.model.judge import judge
from tui.model.launch import Found
from tui.model.progress import LineKind, LogLine
from tui.model.reading import NOT_ASKED, Absence, Known, Unknown
from tui.model.series import LONG, LONG_STEP_S, Series
from tui.model.snapshot import Alert, AlertRecord, LogStatus, Snapshot
from tui.model.story import FOLDS, told
from tui.model.story.launches import told_before
from tui.model.story.phases import EVAL, GENERATE

LINES_LIMIT = 2000
ALERT_LOG_LIMIT = 100
ALERT_HOLD_S = 10.0
"""An alert that is gone for less than this is not over: it flickers."""

Fold = Callable[[Snapshot, Any], Snapshot]


def reduce(snapshot: Snapshot, event: events.Event) -> Snapshot:
    """The snapshot after `event`. Only `TimePassed` judges, and of a live run it tells the time."""
    if event.at > snapshot.now:
        snapshot = replace(snapshot, now=event.at)
    if type(event) in FOLDS:
        return replace(snapshot, story=told(snapshot.story, event))
    return _READINGS[type(event)](snapshot, event)


def reduced(snapshot: Snapshot, many: Iterable[events.Event]) -> Snapshot:
    """The snapshot after all of `many`, in order."""
    for event in many:
        snapshot = reduce(snapshot, event)
    return snapshot


def _time_passed(snapshot: Snapshot, event: events.TimePassed) -> Snapshot:
    if snapshot.live:
        # An answer that was on its way while the clock was set back is stamped ahead of it.
        snapshot = replace(snapshot, now=event.at)
    verdict = judge(snapshot)
    return replace(
        snapshot,
        verdict=verdict,
        alert_log=_logged(snapshot.alert_log, verdict.alerts, snapshot.now),
    )


def _logged(
    log: tuple[AlertRecord, ...], alerts: tuple[Alert, ...], now: float
) -> tuple[AlertRecord, ...]:
    """The alert log brought up to date: one record an alert, however often it comes and goes."""
    open_now = {(alert.code, alert.subject): alert for alert in alerts}
    records = []
    for record in log:
        alert = open_now.pop((record.alert.code, record.alert.subject), None)
        records.append(_seen_again(record, alert, now) if alert else _not_seen(record, now))
    records.extend(
        AlertRecord(alert=alert, first_at=now, last_at=now, since=now)
        for alert in open_now.values()
    )
    records.sort(key=lambda record: (record.cleared_at is not None, -record.since))
    return tuple(records[:ALERT_LOG_LIMIT])


def _seen_again(record: AlertRecord, alert: Alert, now: float) -> AlertRecord:
    if record.cleared_at is None:
        return replace(record, alert=alert, last_at=now)
    return replace(
        record, alert=alert, last_at=now, since=now, cleared_at=None, count=record.count + 1
    )


def _not_seen(record: AlertRecord, now: float) -> AlertRecord:
    if record.cleared_at is None and now - record.last_at >= ALERT_HOLD_S:
        return replace(record, cleared_at=now)
    return record


def _attached(snapshot: Snapshot, event: events.Attached) -> Snapshot:
    if event.succeeds:
        snapshot = _succeeded(snapshot)
    launch = event.attachment.launch
    story = snapshot.story
    if launch.argv and not story.launch.argv:
        story = replace(story, launch=launch, backend=story.backend or launch.backend)
    return replace(snapshot, attachment=event.attachment, choices=(), story=story)


def _succeeded(snapshot: Snapshot) -> Snapshot:
    """Without what was read of the start before; what it trained and saved stays."""
    return replace(
        snapshot,
        story=told_before(snapshot.story),
        log=LogStatus(),
        lines=(),
        engines=(),
        router=None,
        container=NOT_ASKED,
        processes=NOT_ASKED,
    )


def _clock_stepped(snapshot: Snapshot, event: events.ClockStepped) -> Snapshot:
    return stepped(snapshot, event.at, event.by_s)


def _runs_found(snapshot: Snapshot, event: events.RunsFound) -> Snapshot:
    return replace(snapshot, choices=event.runs)


def _journal_read(snapshot: Snapshot, event: events.JournalRead) -> Snapshot:
    return replace(snapshot, actions=event.actions, action_holder=event.holder)


def _guard_read(snapshot: Snapshot, event: events.GuardRead) -> Snapshot:
    return replace(snapshot, guard=event.guard)


def _gpus_read(snapshot: Snapshot, event: events.GpusRead) -> Snapshot:
    history = dict(snapshot.history)
    if isinstance(event.report, Known):
        for gpu in event.report.value.devices:
            for name in ("utilisation_ratio", "power_w", "sm_clock_mhz", "temperature_c"):
                reading = getattr(gpu, name)
                if isinstance(reading, Known):
                    _sample(history, f"gpu{gpu.index}.{name}", reading.at, reading.value)
    missed = {name: fault for name, fault in snapshot.missed.items() if name != "gpu"}
    return replace(snapshot, gpus=event.report, history=history, missed=missed)


def _sample(history: dict[str, Series], key: str, at: float, value: float) -> None:
    history[key] = history.get(key, Series()).add(at, value)
    long = history.get(key + LONG, Series())
    if not long.points or at - long.points[-1][0] >= LONG_STEP_S:
        history[key + LONG] = long.add(at, value)


def _history_recalled(snapshot: Snapshot, event: events.HistoryRecalled) -> Snapshot:
    recalled = {**event.short, **{key + LONG: series for key, series in event.long.items()}}
    history = dict(snapshot.history)
    for key, past in recalled.items():
        history[key] = past.joined(history.get(key, Series()))
    return replace(snapshot, history=history)


def _loss_found(snapshot: Snapshot, event: events.LossFound) -> Snapshot:
    return replace(snapshot, loss=event.loss)


def _memory_read(snapshot: Snapshot, event: events.MemoryRead) -> Snapshot:
    history = dict(snapshot.history)
    if isinstance(event.memory, Known):
        memory = event.memory.value
        _sample(history, "memory.available_bytes", event.memory.at, memory.available_bytes)
        used = memory.swap_total_bytes - memory.swap_free_bytes
        _sample(history, "memory.swap_used_bytes", event.memory.at, used)
    return replace(snapshot, memory=event.memory, history=history)


def _disk_read(snapshot: Snapshot, event: events.DiskRead) -> Snapshot:
    return replace(snapshot, disk=event.disk)


def _engines_probed(snapshot: Snapshot, event: events.EnginesProbed) -> Snapshot:
    old = {track.probe.url: track for track in snapshot.engines}
    tracks = tuple(_tracked(old.get(probe.url), probe, event.at) for probe in event.engines)
    phase = snapshot.story.phase
    if phase is not None and phase.name not in (GENERATE, EVAL):
        # An engine that fell quiet goes on to show its last requests as open.
        tracks = tuple(replace(track, open_since=0.0) for track in tracks)
    return replace(snapshot, engines=tracks, router=event.router or snapshot.router)


def _tracked(old: EngineTrack | None, probe: EngineProbe, at: float) -> EngineTrack:
    track = EngineTrack(probe=probe, first_seen_at=at) if old is None else replace(old, probe=probe)
    reachable = probe.reachable
    if isinstance(reachable, Known) and reachable.value:
        track = replace(track, answered_at=reachable.at, unreachable_since=0.0)
    elif isinstance(reachable, Known) or reachable.why is not Absence.NOT_ASKED:
        track = replace(track, unreachable_since=track.unreachable_since or at)
    track = replace(track, mute_since=(track.mute_since or at) if _is_mute(probe) else 0.0)
    if isinstance(probe.metrics, Known):
        before = old.probe.metrics if old is not None else None
        known_before = before if isinstance(before, Known) else None
        track = _counted(track, known_before, probe.metrics)
    return track


def _is_mute(probe: EngineProbe) -> bool:
    """It takes a connection, and nothing that was asked over one is answered."""
    metrics, health = probe.metrics, probe.health_status
    return (
        isinstance(probe.reachable, Known)
        and probe.reachable.value
        and isinstance(metrics, Unknown)
        and metrics.why in (Absence.TIMED_OUT, Absence.ERROR)
        and isinstance(health, Unknown)
        and health.why is not Absence.NOT_ASKED
    )


def _counted(
    track: EngineTrack, before: Known[EngineMetrics] | None, after: Known[EngineMetrics]
) -> EngineTrack:
    """With what the counters tell: tokens moved, a restart, requests open."""
    metrics = after.value
    if before is not None and after.at > before.at:
        moved = metrics.tokens_total - before.value.tokens_total
        if moved > 0:
            track = replace(_with_gap(track, after.at), tokens_moved_at=after.at)
        elif moved < 0:
            track = replace(track, restarted_at=after.at, tokens_moved_at=0.0)
    is_open = metrics.running_requests + metrics.queued_requests > 0
    return replace(track, open_since=(track.open_since or after.at) if is_open else 0.0)


def _with_gap(track: EngineTrack, at: float) -> EngineTrack:
    """With the time since tokens moved before, if requests were open all the while."""
    if not track.tokens_moved_at or not 0.0 < track.open_since <= track.tokens_moved_at:
        return track
    return replace(track, token_gaps=track.token_gaps.add(at - track.tokens_moved_at))


def _checkpoints_scanned(snapshot: Snapshot, event: events.CheckpointsScanned) -> Snapshot:
    attachment = snapshot.attachment
    if attachment.checkpoints is None and isinstance(event.tree, Known):
        # From here on it is this folder that the run is known by.
        save = Found(value=event.tree.value.root, source="--save in its log")
        attachment = replace(attachment, checkpoints=save)
    return replace(snapshot, checkpoints=event.tree, attachment=attachment)


def _verify_asked(snapshot: Snapshot, event: events.VerifyAsked) -> Snapshot:
    path = event.path
    return replace(
        snapshot,
        verifying=None if path is None else Verifying(path=path, asked_at=event.at),
    )


def _verify_told(snapshot: Snapshot, event: events.VerifyTold) -> Snapshot:
    """What is told of one that is not wanted any more changes nothing."""
    current = snapshot.verifying
    if current is None or current.asked_at != event.asked_at:
        return snapshot
    return replace(snapshot, verifying=event.verifying)


def _container_read(snapshot: Snapshot, event: events.ContainerRead) -> Snapshot:
    return replace(snapshot, container=event.container)


def _processes_read(snapshot: Snapshot, event: events.ProcessesRead) -> Snapshot:
    return replace(snapshot, processes=event.tree)


def _job_ended(snapshot: Snapshot, event: events.JobEnded) -> Snapshot:
    """As if its log said so. Of a job that was watched before it is no news."""
    job = snapshot.attachment.job
    if job is None or job.value != event.submission_id:
        return snapshot
    ended = events.RunEnded(
        at=event.at, end=event.end, detail=event.detail, job_id=event.submission_id
    )
    return replace(snapshot, story=told(snapshot.story, ended))


def _probe_missed(snapshot: Snapshot, event: events.ProbeMissed) -> Snapshot:
    return replace(snapshot, missed={**snapshot.missed, event.probe: event.fault})


def _probe_recovered(snapshot: Snapshot, event: events.ProbeRecovered) -> Snapshot:
    missed = {name: fault for name, fault in snapshot.missed.items() if name != event.probe}
    return replace(snapshot, missed=missed)


def _log_read(snapshot: Snapshot, event: events.LogRead) -> Snapshot:
    log = replace(
        snapshot.log,
        path=event.path,
        size_bytes=event.size_bytes,
        written_at=event.written_at,
        read_at=event.at,
        history_ratio=event.history_ratio,
        fault=None,
    )
    return replace(snapshot, log=log)


def _log_unreadable(snapshot: Snapshot, event: events.LogUnreadable) -> Snapshot:
    return replace(snapshot, log=replace(snapshot.log, path=event.path, fault=event.fault))


def _log_broken(snapshot: Snapshot, event: events.LogBroken) -> Snapshot:
    mark = LogLine(at=event.at, source="milepost", text=event.what, kind=LineKind.MARK)
    return replace(snapshot, lines=(*snapshot.lines[-(LINES_LIMIT - 1) :], mark))


def _history_read(snapshot: Snapshot, event: events.HistoryRead) -> Snapshot:
    story = event.story
    if not story.launch.argv and snapshot.story.launch.argv:
        launch = snapshot.story.launch
        story = replace(story, launch=launch, backend=story.backend or launch.backend)
    return replace(snapshot, story=story)


def _lines_read(snapshot: Snapshot, event: events.LinesRead) -> Snapshot:
    lines = list(snapshot.lines[-LINES_LIMIT:])
    for line in event.lines:
        if not _folded(lines, line):
            lines.append(line)
    story = snapshot.story
    newest = max((line.at for line in event.lines), default=0.0)
    if event.lines and newest > (story.last_line_at or 0.0):
        story = replace(story, last_line_at=newest)
    return replace(snapshot, lines=tuple(lines[-LINES_LIMIT:]), story=story)


def _folded(lines: list[LogLine], line: LogLine) -> bool:
    """Redraws of a bar and rows of access lines take one line, not hundreds."""
    if not lines or lines[-1].kind is not line.kind or lines[-1].source != line.source:
        return False
    last = lines[-1]
    if line.kind is LineKind.BAR:
        if last.text.split(":")[0] != line.text.split(":")[0]:
            return False
        lines[-1] = line
        return True
    if line.kind is LineKind.HTTP and last.text.split('"')[1:] == line.text.split('"')[1:]:
        lines[-1] = replace(line, repeated=last.repeated + 1 + line.repeated)
        return True
    return False


_READINGS: Mapping[type[events.Event], Fold] = {
    events.TimePassed: _time_passed,
    events.ClockStepped: _clock_stepped,
    events.Attached: _attached,
    events.RunsFound: _runs_found,
    events.JournalRead: _journal_read,
    events.HistoryRecalled: _history_recalled,
    events.LossFound: _loss_found,
    events.GuardRead: _guard_read,
    events.GpusRead: _gpus_read,
    events.MemoryRead: _memory_read,
    events.DiskRead: _disk_read,
    events.EnginesProbed: _engines_probed,
    events.CheckpointsScanned: _checkpoints_scanned,
    events.VerifyAsked: _verify_asked,
    events.VerifyTold: _verify_told,
    events.ContainerRead: _container_read,
    events.ProcessesRead: _processes_read,
    events.JobEnded: _job_ended,
    events.ProbeMissed: _probe_missed,
    events.ProbeRecovered: _probe_recovered,
    events.LogRead: _log_read,
    events.LogUnreadable: _log_unreadable,
    events.LogBroken: _log_broken,
    events.HistoryRead: _history_read,
    events.LinesRead: _lines_read,
}
"""Each takes its own kind of event; the table pairs them."""
