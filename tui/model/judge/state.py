"""The run state: from the log's own words, the container, the processes, and progress."""

from __future__ import annotations

from dataclasses import replace

from tui.model.action import ActionRecord
from tui.model.engine import EngineState, EngineVerdict
from tui.model.events import ClueKind, End
from tui.model.judge.standing import Standing
from tui.model.judge.words import span
from tui.model.launch import Attachment, Container
from tui.model.plan import StopRun
from tui.model.progress import Story
from tui.model.reading import Known
from tui.model.snapshot import RunState, Snapshot
from tui.model.story.phases import EVAL, GENERATE, SAVE

STARTUP_LIMIT_S = 20 * 60.0
"""Loading weights and the first compilation can be silent for long."""
UNSEEN_LIMITS_S = {GENERATE: 900.0, EVAL: 1800.0, SAVE: 1200.0}
"""Silence allowed in a phase that this run has not been through yet."""
UNSEEN_LIMIT_S = 600.0
SIGKILL_CODE = 137
_SIGNALS = {
    SIGKILL_CODE: "killed (SIGKILL), not by its own memory limit",
    139: "segmentation fault (SIGSEGV)",
    143: "asked to end (SIGTERM)",
}
"""What Docker's exit codes above 128 say."""
_DEADLY = frozenset(
    {
        ClueKind.WORKER_DIED.value,
        ClueKind.SEGFAULT.value,
        ClueKind.BAD_ARGUMENTS.value,
        ClueKind.STALE_RAY.value,
        ClueKind.PORT_TAKEN.value,
    }
)
"""Clues that a log can end with when nobody is left to say that it is over."""
_STOPS = StopRun.name
"""The step of an action that ends a run."""
_NOTICED_S = 5.0
"""An end is noticed, and dated, that long after it at most."""
_ALIVE_STATUS = frozenset({"running", "created", "restarting", "paused"})


def end_of(snapshot: Snapshot) -> Standing | None:
    """How it ended, None while it goes on. The run's own last word counts first."""
    return (
        _by_its_word(snapshot.story)
        or _by_us(snapshot, _by_container(snapshot) or _by_processes(snapshot))
        or _by_last_words(snapshot)
    )


def _by_its_word(story: Story) -> Standing | None:
    ending = story.ending
    if ending is None:
        return None
    match End(ending.end):
        case End.SUCCEEDED:
            return _succeeded(story, ending.at)
        case End.STOPPED:
            return Standing(state=RunState.STOPPED, since=ending.at, reason="the job was stopped")
        case End.FAILED:
            reason = ending.detail or "the job failed"
            return Standing(state=RunState.FAILED, since=ending.at, reason=reason)
        case End.DRIVER_ERROR:
            reason = f"the driver ended with an error: {ending.detail}"
            return Standing(state=RunState.FAILED, since=ending.at, reason=reason)


def _succeeded(story: Story, at: float) -> Standing:
    if story.attempt and not story.rollouts_done and not story.steps_seen and not story.evals:
        reason = "ended at once and reports success, but no rollout was trained"
        return Standing(state=RunState.FAILED, since=at, reason=reason)
    return Standing(state=RunState.FINISHED, since=at, reason="the job reports success")


def _by_container(snapshot: Snapshot) -> Standing | None:
    if not isinstance(snapshot.container, Known):
        return None
    container, at = snapshot.container.value, snapshot.container.at
    if container.status in _ALIVE_STATUS:
        return None
    if container.status == "removing":
        return Standing(state=RunState.STOPPING, since=at, reason="the container is being removed")
    since = container.finished_at or at
    if container.exit_code is None:
        told = "container gone, exit code unknown"
        if container.auto_remove:
            told += " (started with --rm)"
        return Standing(state=RunState.CRASHED, since=since, reason=told)
    return _exited(snapshot.story, container, since)


def _exited(story: Story, container: Container, since: float) -> Standing:
    if container.exit_code == 0 and (story.rollouts_done or not story.attempt):
        return Standing(state=RunState.FINISHED, since=since, reason="the container exited with 0")
    reason = f"the container exited with {container.exit_code}"
    if container.oom_killed and container.exit_code == SIGKILL_CODE:
        reason += ", killed for memory"
    elif container.oom_killed:
        reason += ", and a process in it was killed for memory"
    elif container.exit_code in _SIGNALS:
        reason += f", {_SIGNALS[container.exit_code]}"
    return Standing(state=RunState.FAILED, since=since, reason=reason)


def _by_processes(snapshot: Snapshot) -> Standing | None:
    if not isinstance(snapshot.processes, Known):
        return None
    tree = snapshot.processes.value
    if not tree.driver_exited_at:
        return None
    reason = "the driver process is gone, exit code unknown"
    return Standing(state=RunState.CRASHED, since=tree.driver_exited_at, reason=reason)


def _by_us(snapshot: Snapshot, end: Standing | None) -> Standing | None:
    """What an action of ours ended is no crash."""
    if end is None or end.state not in (RunState.FAILED, RunState.CRASHED):
        return end
    record = _stop_of(snapshot)
    if record is None or record.began_at > end.since:
        return end
    if not record.is_open and record.changed_at < end.since - _NOTICED_S:
        return end
    return replace(end, state=RunState.STOPPED, reason=f"ended by milepost: {record.title}")


def _stop_of(snapshot: Snapshot) -> ActionRecord | None:
    """The newest action that ends a run, unless it or one since began what is watched."""
    for record in reversed(snapshot.actions):
        if has_started(record, snapshot.attachment):
            return None
        if _STOPS in record.steps:
            return record
    return None


def has_started(record: ActionRecord, attachment: Attachment) -> bool:
    """What is watched is what that action began."""
    pairs = (
        (attachment.log, "log"),
        (attachment.container, "container_id"),
        (attachment.job, "submission_id"),
    )
    return any(found and found.value == record.facts.get(key) for found, key in pairs)


def _by_last_words(snapshot: Snapshot) -> Standing | None:
    """A log that ends in a death and can say no more: nobody is left who would."""
    story = snapshot.story
    if snapshot.live or not story.clues or _is_witnessed(snapshot):
        return None
    clue = next((clue for clue in reversed(story.clues) if clue.kind in _DEADLY), None)
    if clue is None or (story.progress is not None and story.progress.at > clue.at):
        return None
    return Standing(state=RunState.FAILED, since=clue.at, reason=f"last words: {clue.line[:200]}")


def standing_of(snapshot: Snapshot, engines: tuple[EngineVerdict, ...]) -> Standing:
    """The state of a run that has not ended, by its progress and the age of that."""
    story = snapshot.story
    progress = story.progress
    if progress is None:
        return _without_progress(snapshot)
    limit = stall_limit_s(snapshot)
    moved_at = _moved_at(snapshot, engines)
    idle = snapshot.now - moved_at
    if idle <= limit:
        if has_begun(story):
            state, reason = RunState.RUNNING, f"last progress: {progress.what}"
        else:
            state, reason = RunState.STARTING, f"no rollout yet; last sign: {progress.what}"
        since = story.started_at or moved_at
        return Standing(state=state, since=since, reason=reason, stall_limit_s=limit)
    return _silent(snapshot, moved_at, limit)


def _silent(snapshot: Snapshot, moved_at: float, limit: float) -> Standing:
    story, idle = snapshot.story, snapshot.now - moved_at
    where = "and no rollout yet"
    if story.phase is not None and has_begun(story):
        where = f"in {story.phase.name}"
    deaf = _deaf(snapshot)
    if deaf is not None:
        told = f"no progress heard for {span(idle)} {where}, and the log cannot be read: {deaf}"
        return Standing(
            state=RunState.UNKNOWN, since=moved_at + limit, reason=told, stall_limit_s=limit
        )
    if _is_alive(snapshot, limit) is None:
        told = f"no progress for {span(idle)} {where}, and nothing tells whether it still lives"
        return Standing(
            state=RunState.UNKNOWN, since=moved_at + limit, reason=told, stall_limit_s=limit
        )
    usual = usual_s(story)
    told = f"no progress for {span(idle)} {where}"
    if usual is not None:
        told += f" (usual {span(usual)})"
    return Standing(
        state=RunState.STALLED, since=moved_at + limit, reason=told, stall_limit_s=limit
    )


def _deaf(snapshot: Snapshot) -> str | None:
    """Why what the run says is not heard now: then its silence tells nothing of it."""
    if not snapshot.live or snapshot.attachment.log is None:
        return None
    fault = snapshot.log.fault or snapshot.missed.get("log")
    return fault.reason if fault is not None else None


def _without_progress(snapshot: Snapshot) -> Standing:
    alive = _is_alive(snapshot)
    if alive:
        since = snapshot.story.started_at or snapshot.now
        return Standing(state=RunState.STARTING, since=since, reason="alive, nothing said yet")
    reason = "nothing that was read tells about a run"
    return Standing(state=RunState.UNKNOWN, since=snapshot.now, reason=reason)


def has_begun(story: Story) -> bool:
    """The first rollout is being generated, or more has been seen."""
    if story.rollouts_done or story.steps_seen or story.first_rollout is not None:
        return True
    return story.phase is not None and story.phase.name not in ("train_wait", "update_weights")


def usual_s(story: Story) -> float | None:
    """Median duration of the present phase, None when it was not seen before."""
    if story.phase is None:
        return None
    durations = story.durations.get(story.phase.name)
    return durations.median_s() if durations else None


def stall_limit_s(snapshot: Snapshot) -> float:
    """Silence that is called a stall: the phase's own long case times a factor, with a floor."""
    story, limits = snapshot.story, snapshot.limits
    if not has_begun(story) or story.phase is None:
        return STARTUP_LIMIT_S
    durations = story.durations.get(story.phase.name)
    longest = durations.p95_s() if durations else None
    if longest is None:
        return UNSEEN_LIMITS_S.get(story.phase.name, UNSEEN_LIMIT_S)
    return max(limits.stall_floor_s, limits.stall_factor * longest)


def _moved_at(snapshot: Snapshot, engines: tuple[EngineVerdict, ...]) -> float:
    """Last progress. Tokens count while the run waits for tokens, and only then."""
    progress = snapshot.story.progress
    moved_at = progress.at if progress is not None else 0.0
    phase = snapshot.story.phase
    if phase is not None and phase.name in (GENERATE, EVAL):
        working = (EngineState.GENERATING, EngineState.BUSY, EngineState.RECOVERED)
        for engine in engines:
            if engine.state in working:
                moved_at = max(moved_at, engine.tokens_moved_at)
    return max(min(moved_at, snapshot.now), _written_at(snapshot))


def _written_at(snapshot: Snapshot) -> float:
    """Newest write to a checkpoint: a save says nothing until it is done, however long it takes.

    A file that is dated ahead of the clock tells of a clock that was set back, and of nothing else.
    """
    if not snapshot.live or not isinstance(snapshot.checkpoints, Known):
        return 0.0
    taken = (each.taken_at for each in snapshot.checkpoints.value.checkpoints)
    return max((at for at in taken if at <= snapshot.now), default=0.0)


def _is_witnessed(snapshot: Snapshot) -> bool:
    """The container engine or the process table shows it alive."""
    if isinstance(snapshot.container, Known) and snapshot.container.value.status in _ALIVE_STATUS:
        return True
    return isinstance(snapshot.processes, Known) and any(
        process.role in ("driver", "trainer") for process in snapshot.processes.value.processes
    )


def _is_alive(snapshot: Snapshot, silence_s: float = 120.0) -> bool | None:
    """True: something shows it lives. None: nothing can tell."""
    if _is_witnessed(snapshot):
        return True
    last = snapshot.story.last_line_at
    if last is not None and snapshot.now - last <= silence_s and _is_of_a_run(snapshot.story):
        return True
    return None


def _is_of_a_run(story: Story) -> bool:
    """Something in the log was said by a run; any text can be a log."""
    return bool(story.progress or story.attempt or story.engines or story.checking is not None)
