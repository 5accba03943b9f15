"""Watch a started run until its log proves what it began with, or that it began wrong.

The judge is the monitor's own: a resume is never good because a process started. One that began
wrong is stopped before its first save overwrites what is good.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path

from tui.actions import run_stopping
from tui.actions.context import Context, Done
from tui.actions.errors import StepFailed
from tui.actions.expected import Expected, expected
from tui.actions.moving import tracker_text, write_tracker
from tui.actions.started import goes_on
from tui.actions.targets import run_target
from tui.attach import Target, found
from tui.config import Config
from tui.errors import MilepostError
from tui.miles.layout import TRACKER_NAME
from tui.model.judge.words import span
from tui.model.launch import Attachment, Found
from tui.model.plan import ProveStart, StopRun, WriteTracker
from tui.model.snapshot import Resume, RunState, Snapshot
from tui.monitor import Monitor
from tui.watch import monitor_of

_LOOK_S = 0.2
_GRACE_S = 10.0
_LAST_WORDS_S = 2.0
_LIFE_S = 1.0
_ENDED = frozenset({RunState.FAILED, RunState.CRASHED, RunState.STOPPED, RunState.FINISHED})
_WRONG = frozenset({Resume.FRESH, Resume.SILENT_FRESH, Resume.WRONG_NUMBER})
_DATA_ONLY = "data source"


def perform(step: ProveStart, context: Context) -> Done:
    """Wait for the proof."""
    wanted = expected(step, context)
    with _watched(step, context) as monitor:
        end = time.monotonic() + step.deadline_s
        told, life = "", _Life(context)
        while time.monotonic() < end:
            snapshot = monitor.latest
            proof = snapshot.verdict.resume
            if proof.line != told:
                told = proof.line
                context.note(told)
            verdict = _judged(snapshot, wanted.first_rollout) or life.lost(snapshot)
            if verdict is not None:
                return _ended(verdict, wanted, step, context)
            context.pause(_LOOK_S)
        snapshot = monitor.latest
    raise StepFailed(
        f"no first step within {span(step.deadline_s)}: {snapshot.verdict.resume.line}",
        "it goes on; nothing proves yet that it resumed. Watch it, or stop it with `K`",
        _facts(step, "not proven"),
    )


@dataclass(frozen=True, slots=True)
class _Verdict:
    """How the start ended."""

    line: str
    failure: str = ""
    """In a word; empty: it is what was wanted."""
    lives: bool = True


class _Life:
    """Whether what was started lives, which its log need not tell: a client may die at once."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._looked = 0.0
        self._gone_since: float | None = None

    def lost(self, snapshot: Snapshot) -> _Verdict | None:
        """That it is gone, once its last words are read."""
        now = time.monotonic()
        if now - self._looked >= _LIFE_S:
            self._looked = now
            if goes_on(self._context.facts, self._context.clock()):
                self._gone_since = None
            elif self._gone_since is None:
                self._gone_since = now
        if self._gone_since is None or now - self._gone_since < _LAST_WORDS_S:
            return None
        last = next((line.text for line in reversed(snapshot.lines) if line.text.strip()), "")
        said = f", and said last: {last[:200]}" if last else " without a word"
        return _Verdict(f"it ended before its first step{said}", "gone", lives=False)


def _judged(snapshot: Snapshot, expected: int | None) -> _Verdict | None:
    """The proof, or what it came to instead; None: not yet."""
    proof = snapshot.verdict.resume
    if proof.outcome is Resume.INCOMPLETE:
        if _DATA_ONLY in proof.line and "optimizer" not in proof.line:
            return _Verdict(proof.line)
        return _Verdict(proof.line, "incomplete")
    if proof.outcome in _WRONG:
        return _Verdict(proof.line, proof.outcome.value)
    if proof.outcome is Resume.RESUMED:
        if expected is not None and proof.first_rollout != expected:
            line = f"began at rollout {proof.first_rollout}, not at {expected}: {proof.line}"
            return _Verdict(line, Resume.WRONG_NUMBER.value)
        return _Verdict(proof.line)
    if snapshot.verdict.state in _ENDED:
        cause = snapshot.verdict.cause
        line = cause.line if cause is not None else snapshot.verdict.reason
        failure = cause.kind if cause is not None else snapshot.verdict.state.value
        return _Verdict(f"it ended before its first step: {line}", failure, lives=False)
    return None


def _ended(verdict: _Verdict, wanted: Expected, step: ProveStart, context: Context) -> Done:
    if not verdict.failure:
        return Done(line=verdict.line)
    facts = _facts(step, verdict.failure)
    if not verdict.lives:
        raise StepFailed(verdict.line, f"its log: {step.log or 'see the run'}", facts)
    context.note(f"began wrong: {verdict.line}")
    if not step.stop_if_wrong:
        raise StepFailed(verdict.line, "it goes on, as you chose", facts)
    stopped = _stopped(step, context)
    _put_back(step, wanted.tracker, context)
    raise StepFailed(f"{verdict.line}; {stopped}", "look at its command and at --load", facts)


@contextmanager
def _watched(step: ProveStart, context: Context) -> Iterator[Monitor]:
    """A monitor of what was started, which goes on looking for its processes."""
    target = _target(step, context)
    attachment = Attachment()
    with suppress(MilepostError):
        attachment = found(target, at=context.clock()).attachment
    if step.log and attachment.log is None:
        attachment = replace(attachment, log=Found(value=step.log, source="started"))
    save = Found(value=step.save_folder, source="started")
    attachment = replace(attachment, checkpoints=save)
    monitor = monitor_of(attachment, Config(interval_s=_LOOK_S), at=context.clock(), target=target)
    monitor.start(lambda _: None)
    try:
        yield monitor
    finally:
        monitor.stop()


def _target(step: ProveStart, context: Context) -> Target:
    if step.log:
        return Target(log=Path(step.log))
    if container := context.facts.get("container_id"):
        return Target(container=container)
    return Target(name=context.facts.get("submission_id"))


def _put_back(step: ProveStart, text: str | None, context: Context) -> None:
    path = Path(step.save_folder) / TRACKER_NAME
    now = tracker_text(path)
    if now != text:
        write_tracker(WriteTracker(path=str(path), text=text, old_text=now), context)


def _stopped(step: ProveStart, context: Context) -> str:
    run = None
    with suppress(MilepostError):
        run = found(_target(step, context), at=context.clock()).run
    target = run_target(run) if run is not None else None
    if target is None:
        return "it was gone before it could be stopped"
    run_stopping.perform(StopRun(target=target, grace_s=_GRACE_S, free_s=0.0), context)
    return "it was stopped before its first save"


def _facts(step: ProveStart, failure: str) -> Mapping[str, str]:
    return {"failure": failure, "signature": step.signature}
