"""The plan of a roll back, which makes another checkpoint the one that a resume loads.

Order is safety: the tracker is written before anything is moved aside, so that at every moment it
names a checkpoint that is there.
"""

from __future__ import annotations

import os
import posixpath
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tui.actions.errors import Refused
from tui.actions.launch import new_id
from tui.actions.moving import quarantine_name, tracker_text, words_of
from tui.actions.save_listing import is_folder, listing_of
from tui.actions.save_plan import launch_of
from tui.actions.situation import Situation
from tui.checkpoints.rollback import newer_than, tracker_for
from tui.miles.layout import TRACKER_NAME, tracked_name
from tui.model.action import ActionKind
from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.model.judge.words import counted, span
from tui.model.judge.would_load import is_trusted
from tui.model.plan import ActionPlan, MoveAside, Refusal, Row, Step, WriteTracker
from tui.model.reading import Unknown
from tui.model.snapshot import Level
from tui.probes.memory import mounts
from tui.probes.save_folder import SaveFolder

_FORCE = "`--force` does it all the same"
_SHOWN = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class _Folder:
    """What is to be done in one save folder."""

    root: Path
    chosen: Checkpoint
    tracker: str | None
    """What it says now."""
    text: str
    """What it has to say."""
    newer: tuple[str, ...]

    @property
    def is_named(self) -> bool:
        """The tracker names it already, with or without a line feed behind."""
        return tracked_name(self.tracker) == tracked_name(self.text)


def plan_rollback(
    situation: Situation, iteration: int, *, after_stop: bool = False, force: bool = False
) -> ActionPlan | Refusal:
    """Have a resume load that checkpoint, and move what came after it aside.

    Args:
        situation: the run.
        iteration: which checkpoint.
        after_stop: it is part of a plan that ends the run first.
        force: also one that is not whole, or that a verify spoke against.
    """
    try:
        if situation.lives and not after_stop:
            raise _runs(situation)
        return _planned(situation, iteration, force=force, after_stop=after_stop)
    except Refused as refused:
        return refused.refusal
    except OSError as error:
        return Refusal(reason=f"{error.filename}: {error.strerror}")


def _runs(situation: Situation) -> Refused:
    return Refused(
        f"{situation.name} runs: it reads the tracker only when it starts, and goes on saving",
        "stop it first, or kill and resume it from this checkpoint",
    )


def _planned(situation: Situation, iteration: int, *, force: bool, after_stop: bool) -> ActionPlan:
    tree = situation.snapshot.checkpoints
    if isinstance(tree, Unknown):
        raise Refused(f"no checkpoints can be seen: {tree.reason}")
    root = Path(tree.value.root)
    chosen = _chosen(tree.value, iteration, force=force)
    folders = [_folder(root, chosen), *_critic(root, chosen, situation.at, force=force)]
    if all(folder.is_named and not folder.newer for folder in folders):
        raise Refused(f"a resume loads {iteration} already, and nothing newer is there")
    for folder in folders:
        _check_disk(folder)
    name = quarantine_name(root, situation.at)
    return ActionPlan(
        id=new_id(ActionKind.ROLLBACK, situation.at),
        kind=ActionKind.ROLLBACK,
        title=f"Roll {situation.name} back to checkpoint {iteration}",
        run_id=situation.run_id,
        run_name=situation.name,
        made_at=situation.at,
        rows=tuple(_rows(situation, chosen, folders, name)),
        steps=tuple(_steps(folders, name, saves_on=after_stop and situation.lives)),
        go="roll back",
    )


def _chosen(tree: CheckpointTree, iteration: int, *, force: bool) -> Checkpoint:
    found = next((each for each in tree.checkpoints if each.iteration == iteration), None)
    if found is None:
        there = ", ".join(str(each.iteration) for each in tree.checkpoints[:8]) or "none at all"
        raise Refused(f"there is no checkpoint {iteration} in {tree.root}", f"there is: {there}")
    if found.layout is Layout.LORA:
        raise Refused(
            "adapters have no tracker: a resume loads the one that its command names",
            f"start with --lora-adapter-path {found.path}/adapter",
        )
    if found.layout is Layout.UNKNOWN:
        raise Refused(f"{found.path} holds nothing that a resume could load")
    if found.state is not CheckpointState.WHOLE and not force:
        raise Refused(f"checkpoint {iteration} is {found.state.value}: {found.reason}", _FORCE)
    if not is_trusted(found) and found.verification is not None and not force:
        seen = found.verification
        fault = f": {seen.faults[0]}" if seen.faults else ""
        raise Refused(f"checkpoint {iteration} is {seen.soundness.value}{fault}", _FORCE)
    return found


def _folder(root: Path, chosen: Checkpoint) -> _Folder:
    path = root / TRACKER_NAME
    if path.is_symlink():
        raise Refused(f"{path} is a link: it would be replaced by a file", "put the file there")
    return _Folder(
        root=root,
        chosen=chosen,
        tracker=tracker_text(path),
        text=tracker_for(chosen),
        newer=newer_than(chosen, listing_of(root)),
    )


def _critic_root(root: Path) -> Path:
    """Where Megatron's PPO saves its critic, unless it is told otherwise."""
    return root.with_name(f"{root.name}_critic")


def _critic(root: Path, actor: Checkpoint, at: float, *, force: bool) -> Iterator[_Folder]:
    critic = _critic_of(root, actor.iteration, at)
    if critic is None:
        return
    if critic.state is not CheckpointState.WHOLE and not force:
        reason = f"the critic's checkpoint {critic.iteration} is {critic.state.value}"
        raise Refused(f"{reason}: {critic.reason}", _FORCE)
    yield _folder(_critic_root(root), critic)


def _critic_of(root: Path, iteration: int, at: float) -> Checkpoint | None:
    folder = _critic_root(root)
    if not is_folder(folder):
        return None
    status = folder.stat()
    tree = SaveFolder((str(folder), status.st_dev, status.st_ino)).scan(status, at)
    return next((each for each in tree.checkpoints if each.iteration == iteration), None)


# What speaks against it on disk


def _check_disk(folder: _Folder) -> None:
    root = folder.root
    if os.statvfs(root).f_flag & os.ST_RDONLY:
        raise Refused(f"{root} is on a filesystem mounted read-only", "remount it first")
    table = Path("/proc/self/mountinfo").read_bytes().decode(errors="surrogateescape")
    points = {mount.point for mount in mounts(table)}
    places = [root / path for path in folder.newer]
    for place in places:
        if f"{os.path.realpath(place.parent)}/{place.name}" in points:
            raise Refused(f"{place} is a mount point and cannot be moved", "unmount it first")
    for place in (root, *(place.parent for place in places), *places):
        # A folder that is given another parent is written to.
        if is_folder(place) and not os.access(place, os.W_OK | os.X_OK):
            raise Refused(f"{place} may not be changed", "do it as its owner or as root")


# What is shown and done


def _rows(
    situation: Situation, chosen: Checkpoint, folders: Sequence[_Folder], quarantine: str
) -> Iterator[Row]:
    age = span(max(0.0, situation.at - chosen.taken_at))
    text = f"loads {chosen.iteration}, {age} old, and begins at rollout {chosen.resumes_at}"
    yield Row(label="A resume", text=text)
    yield from _lost(situation, chosen)
    for folder in folders:
        if not folder.is_named:
            change = f"{words_of(folder.tracker)} → {folder.text}"
            yield Row(label="Tracker", text=f"{change}, in {folder.root}")
        if folder.newer:
            shown = ", ".join(folder.newer[:_SHOWN])
            more = f" and {len(folder.newer) - _SHOWN} more" if len(folder.newer) > _SHOWN else ""
            yield Row(label="Moves", text=f"{shown}{more} → {folder.root}/{quarantine}")
    yield Row(label="Deletes", text="nothing; `milepost rollback --undo` puts all of it back")
    yield from _warnings(situation, chosen, folders)


def _lost(situation: Situation, chosen: Checkpoint) -> Iterator[Row]:
    done = situation.snapshot.story.training_rollout
    if done is not None and done >= chosen.resumes_at:
        again = counted(done + 1 - chosen.resumes_at, "rollout")
        yield Row(label="You lose", text=f"{again}, to be trained again", level=Level.WARNING)


def _warnings(
    situation: Situation, chosen: Checkpoint, folders: Sequence[_Folder]
) -> Iterator[Row]:
    for text in _doubts(situation, chosen, folders):
        yield Row(label="But", text=text, level=Level.WARNING)


def _doubts(situation: Situation, chosen: Checkpoint, folders: Sequence[_Folder]) -> Iterator[str]:
    seen, launch = chosen.verification, launch_of(situation.snapshot)
    if chosen.state is not CheckpointState.WHOLE:
        yield f"{chosen.iteration} is {chosen.state.value}: {chosen.reason}"
    if seen is None:
        yield f"{chosen.iteration} was never verified: `milepost verify` reads every byte of it"
    elif not is_trusted(chosen):
        yield f"{chosen.iteration} is {seen.soundness.value}"
    if not chosen.has_data_state:
        yield "the data source's position was not saved with it: the data order starts again"
    critic = _critic_root(folders[0].root)
    if len(folders) == 1 and is_folder(critic):
        yield f"the critic has no checkpoint {chosen.iteration}: {critic} is left as it is"
    if launch.argv and (launch.load or "").rstrip("/") != (launch.save or "").rstrip("/"):
        what = f"--load {launch.load}" if launch.load else "no --load"
        yield f"the command has {what}, which `milepost resume` puts right"
    if launch.start_rollout_id is not None:
        yield f"the command has --start-rollout-id {launch.start_rollout_id}, whatever is loaded"
    words = {word.partition("=")[0] for word in launch.argv}
    if "--ckpt-step" in words:
        yield "the command has --ckpt-step: Megatron loads that one, whatever the tracker says"
    if "--critic-save" in words:
        yield "the command has --critic-save: the critic is rolled back only beside the save folder"


def _steps(folders: Sequence[_Folder], quarantine: str, *, saves_on: bool) -> Iterator[Step]:
    """With `saves_on`, what the run saves until it is stopped is moved aside too."""
    for folder in folders:
        if not folder.is_named or saves_on:
            path = posixpath.join(folder.root, TRACKER_NAME)
            yield WriteTracker(
                path=path, text=folder.text, old_text=folder.tracker, saved_since=saves_on
            )
    for folder in folders:
        if folder.newer or saves_on:
            yield MoveAside(
                root=str(folder.root),
                paths=folder.newer,
                quarantine=quarantine,
                keeps=folder.chosen if saves_on else None,
            )
