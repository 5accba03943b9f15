"""Alerts about checkpoints, work at risk and the disk they go to."""

from __future__ import annotations

from collections.abc import Iterator

from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.model.events import ClueKind
from tui.model.judge.risk import newest_whole
from tui.model.judge.standing import Standing
from tui.model.judge.words import counted, gib, gigabytes, span
from tui.model.judge.would_load import is_trusted, would_load_of
from tui.model.memory import Disk
from tui.model.reading import Absence, Known, Unknown
from tui.model.snapshot import Alert, Level, Loads, Snapshot, WorkAtRisk

SAVE_MARGIN = 1.2
"""A save needs its size and a bit: temporary files, metadata, a growing optimizer."""
_INODES_LOW_RATIO = 0.01
_FULL_SHARE, _FEW_SAVES = 0.1, 20.0
_NOTICE_ACTIVE_S = 120.0
_DATA_STATE_GRACE_S = 120.0
_TRACKER_GRACE_S = 60.0


def save_alerts(snapshot: Snapshot, standing: Standing, risk: WorkAtRisk | None) -> Iterator[Alert]:
    """Alerts of saves."""
    yield from _risk(snapshot, risk)
    if isinstance(snapshot.checkpoints, Known):
        tree = snapshot.checkpoints.value
        yield from _tracker(snapshot, tree)
        yield from _loads(snapshot, tree)
        is_final = standing.has_ended and snapshot.checkpoints.at > standing.since
        yield from _broken(snapshot, tree, is_final=is_final)
        yield from _without_data_state(snapshot, tree, has_ended=standing.has_ended)
    if isinstance(snapshot.disk, Known):
        yield from _disk(snapshot, snapshot.disk.value)
    yield from _quota(snapshot)
    if not standing.has_ended:
        yield from _ray_notice(snapshot)


def _risk(snapshot: Snapshot, risk: WorkAtRisk | None) -> Iterator[Alert]:
    if risk is None or risk.seconds is None or risk.seconds <= risk.limit_s:
        return
    launch = snapshot.story.launch
    advice = "save now, or lower --save-interval at the next start"
    if launch.argv and launch.save is None:
        advice = "this run has no --save: nothing can be saved; give it one at the next start"
    yield Alert(
        code="work-at-risk",
        level=Level.WARNING,
        line=f"{risk.line}; the limit is {span(risk.limit_s)}",
        evidence=()
        if risk.checkpoint is None
        else (f"newest whole checkpoint: {risk.checkpoint}",),
        advice=advice,
    )


def _tracker(snapshot: Snapshot, tree: CheckpointTree) -> Iterator[Alert]:
    whole = newest_whole(snapshot)
    tracker = tree.tracker
    if whole is None:
        return
    if _is_just_written(snapshot, whole):
        return
    if isinstance(tracker, Unknown) and tracker.why is Absence.MISSING:
        count = sum(each.state is CheckpointState.WHOLE for each in tree.checkpoints)
        yield Alert(
            code="tracker-missing",
            level=Level.CRITICAL,
            line=f"{count} whole checkpoints, no tracker file: a restart would begin fresh",
            evidence=(f"{tree.root}/latest_checkpointed_iteration.txt is not there",),
            advice=f"write {whole.iteration} into the tracker file before a restart",
        )
        return
    tracked = next((each for each in tree.checkpoints if each.tracked), None)
    if isinstance(tracker, Known) and tracked is None:
        yield Alert(
            code="tracker-wrong",
            level=Level.CRITICAL,
            line=f"the tracker says {tracker.value[:40]!r}, and there is no such checkpoint",
            evidence=(f"newest whole: {whole.iteration}",),
            advice=f"a resume would fail; write {whole.iteration} into the tracker file",
        )
    elif tracked is not None and tracked.iteration == 0 and tracked.layout is Layout.MEGATRON:
        yield Alert(
            code="tracked-zero",
            level=Level.WARNING,
            line="the tracker says 0: Megatron may refuse to load iteration 0",
            evidence=(tracked.path,),
            advice="wait for the next save before a restart",
            degrades=False,
        )
    elif tracked is not None and tracked.state is not CheckpointState.WHOLE:
        yield Alert(
            code="tracked-not-whole",
            level=Level.CRITICAL,
            line=f"a resume would load {tracked.iteration}, which is {tracked.state.value}: "
            f"{tracked.reason}",
            evidence=tracked.missing[:4],
            advice=f"the newest whole one is {whole.iteration}: roll back to it before a resume",
        )


def _loads(snapshot: Snapshot, tree: CheckpointTree) -> Iterator[Alert]:
    """A restart would load something, and it is not the best there is."""
    loads = would_load_of(snapshot)
    launch = snapshot.story.launch
    if loads.loads is Loads.NOTHING and loads.best is not None and launch.load is None:
        yield Alert(
            code="load-missing",
            level=Level.WARNING,
            line=loads.line,
            evidence=(f"newest whole: {loads.best}",),
            advice=f"add --load {launch.save or tree.root} before a restart",
            degrades=False,
        )
    tracked = next((each for each in tree.checkpoints if each.tracked), None)
    if loads.loads is not Loads.CHECKPOINT or tracked is None:
        return
    seen = tracked.verification
    if seen is not None and not is_trusted(tracked):
        better = f"go back to {loads.best}" if loads.best is not None else "there is no sound one"
        yield Alert(
            code="tracked-not-sound",
            level=Level.CRITICAL,
            line=f"a restart would load {tracked.iteration}, which is {seen.soundness.value}",
            evidence=seen.faults[:4] or (f"{seen.non_finite} values are nan or inf",),
            advice=better,
        )
    elif _is_behind(snapshot, tracked):
        yield Alert(
            code="tracker-behind",
            level=Level.WARNING,
            line=f"a restart would load {tracked.iteration}, but {loads.best} is whole and newer",
            evidence=(f"{tree.root}/latest_checkpointed_iteration.txt",),
            advice=f"write {loads.best} into the tracker file before a restart",
            degrades=False,
        )


def _is_behind(snapshot: Snapshot, tracked: Checkpoint) -> bool:
    best = newest_whole(snapshot)
    is_newer = best is not None and best.iteration > tracked.iteration
    return is_newer and best is not None and not _is_just_written(snapshot, best)


def _is_just_written(snapshot: Snapshot, checkpoint: Checkpoint) -> bool:
    """The tracker is written a moment after the checkpoint is whole."""
    return snapshot.live and snapshot.now - checkpoint.taken_at < _TRACKER_GRACE_S


def _broken(snapshot: Snapshot, tree: CheckpointTree, *, is_final: bool) -> Iterator[Alert]:
    """`is_final`: the scan is younger than the end of the run, so nobody is saving any more."""
    if not tree.checkpoints:
        return
    newest = tree.checkpoints[0]
    is_left = newest.state is CheckpointState.SAVING and is_final
    is_broken = newest.state in (CheckpointState.PARTIAL, CheckpointState.DAMAGED) or is_left
    if is_broken and not newest.tracked:
        state = CheckpointState.PARTIAL if is_left else newest.state
        whole = newest_whole(snapshot)
        then = (
            f"a resume loads {whole.iteration}" if whole else "there is no whole one to resume from"
        )
        yield Alert(
            code=f"checkpoint-{state.value}",
            level=Level.WARNING,
            subject=str(newest.iteration),
            line=f"checkpoint {newest.iteration} is {state.value}: "
            f"{newest.reason.removeprefix('being written: ')}; {then}",
            evidence=newest.missing[:4],
            advice="move it aside before the next save; nothing needs to be deleted",
            degrades=False,
        )


def _without_data_state(
    snapshot: Snapshot, tree: CheckpointTree, *, has_ended: bool
) -> Iterator[Alert]:
    tracked = next((each for each in tree.checkpoints if each.tracked), None)
    if tracked is None or tracked.has_data_state or tracked.state is not CheckpointState.WHOLE:
        return
    # The data position is the last thing a save writes: a moment later it is there.
    if has_ended or snapshot.now - tracked.taken_at > _DATA_STATE_GRACE_S:
        yield Alert(
            code="data-state-missing",
            level=Level.WARNING,
            subject=str(tracked.iteration),
            line=f"checkpoint {tracked.iteration} was saved without the data position: "
            "a resume starts the data order again",
            advice="go back to an older checkpoint if samples must not repeat",
            degrades=False,
        )


def _disk(snapshot: Snapshot, disk: Disk) -> Iterator[Alert]:
    if disk.read_only:
        yield Alert(
            code="disk-read-only",
            level=Level.CRITICAL,
            line=f"{disk.mount} is mounted read-only: the next save fails",
            evidence=(f"{disk.filesystem} at {disk.mount}",),
            advice="look at the kernel log; remount it before the next save",
        )
    size = _last_size(snapshot)
    if size and disk.free_bytes < size * SAVE_MARGIN:
        yield Alert(
            code="disk-full-at-next-save",
            level=Level.CRITICAL,
            line=f"the next save needs about {gib(size * SAVE_MARGIN)}, {disk.mount} has "
            f"{gib(disk.free_bytes)}",
            evidence=(f"last checkpoint {gib(size)}",),
            advice="make room before the next save; on FSDP Miles never removes old ones",
        )
    elif disk.free_bytes < _FULL_SHARE * disk.total_bytes and _saves_left(disk, size) < _FEW_SAVES:
        yield Alert(
            code="disk-nearly-full",
            level=Level.WARNING,
            line=f"{disk.mount} is {1 - disk.free_bytes / disk.total_bytes:.0%} full, "
            f"{gib(disk.free_bytes)} left",
            evidence=(f"room for {counted(int(_saves_left(disk, size)), 'save')}",) if size else (),
            advice="a shared disk can refuse a write long before it is full",
            degrades=False,
        )
    if disk.inodes_free_ratio < _INODES_LOW_RATIO:
        yield Alert(
            code="disk-inodes",
            level=Level.WARNING,
            line=f"{disk.mount} has {disk.inodes_free_ratio:.1%} of its inodes left",
            advice="remove small files; free bytes do not help",
        )


def _quota(snapshot: Snapshot) -> Iterator[Alert]:
    """A write was refused for a quota, and no save has gone well since."""
    story = snapshot.story
    refused = [clue for clue in story.clues if clue.kind == ClueKind.QUOTA.value]
    saved_at = max((save.saved_at or 0.0 for save in story.saves), default=0.0)
    if not refused or saved_at > refused[-1].at:
        return
    line = "the quota is used up: a write was refused"
    if isinstance(snapshot.disk, Known):
        disk = snapshot.disk.value
        line += f", although {disk.mount} has {gib(disk.free_bytes)} free"
    yield Alert(
        code="disk-quota",
        level=Level.CRITICAL,
        line=line,
        evidence=(refused[-1].line[:300],),
        advice="raise the quota, or make room within it: free bytes of the disk do not help",
    )


def _saves_left(disk: Disk, size: int) -> float:
    return disk.free_bytes / size if size else 0.0


def _last_size(snapshot: Snapshot) -> int:
    if not isinstance(snapshot.checkpoints, Known):
        return 0
    whole: list[Checkpoint] = [
        each
        for each in snapshot.checkpoints.value.checkpoints
        if each.state is CheckpointState.WHOLE
    ]
    return whole[0].size_bytes if whole else 0


def _ray_notice(snapshot: Snapshot) -> Iterator[Alert]:
    notice = snapshot.story.disk_notice
    if notice is None or snapshot.now - notice.at > _NOTICE_ACTIVE_S:
        return
    trend = ""
    if notice.count > 1:
        trend = (
            f" ({gigabytes(notice.first_free_bytes)} → {gigabytes(notice.free_bytes)} in "
            f"{span(notice.at - notice.since)})"
        )
    size = _last_size(snapshot)
    level = Level.CRITICAL if size and notice.free_bytes < size * SAVE_MARGIN else Level.WARNING
    yield Alert(
        code="disk-filling",
        level=level,
        line=f"{notice.path} has {gigabytes(notice.free_bytes)} left{trend}",
        evidence=(f"Ray's warning, {notice.count} times",),
        advice="training goes on until a spill or a save fails: make room",
        degrades=False,
    )
