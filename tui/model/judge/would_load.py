"""What a restart would load now, by Miles' own rules, from the save folder as it stands.

Sources: Miles' arguments.py (validation swaps `--load` for the base model when there is no
tracker), fsdp_utils/checkpoint.py, Megatron-LM's checkpointing.py.
"""

from __future__ import annotations

from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout, Soundness
from tui.model.reading import Absence, Known, Unknown
from tui.model.snapshot import Loads, Snapshot, WouldLoad

_NO_PLACE = Unknown(why=Absence.MISSING, reason="no save folder is known")


def would_load_of(snapshot: Snapshot) -> WouldLoad:
    """One line, always true."""
    tree = snapshot.checkpoints
    best = best_of(tree.value) if isinstance(tree, Known) else None
    launch = snapshot.story.launch
    if launch.argv and launch.load is None:
        return WouldLoad(
            loads=Loads.NOTHING,
            best=best.iteration if best else None,
            line="a restart would begin fresh: the command has no --load",
        )
    if launch.load is not None and launch.save is not None and launch.load != launch.save:
        return WouldLoad(
            loads=Loads.UNKNOWN,
            best=best.iteration if best else None,
            line=f"a restart loads from {launch.load}, not from the save folder",
        )
    if not isinstance(tree, Known):
        why = tree.reason or _NO_PLACE.reason
        return WouldLoad(loads=Loads.UNKNOWN, best=None, line=f"cannot tell what loads: {why}")
    return _of_tree(tree.value, best)


def best_of(tree: CheckpointTree) -> Checkpoint | None:
    """The newest whole checkpoint that is not known to be damaged or not finite."""
    for checkpoint in tree.checkpoints:
        if checkpoint.state is CheckpointState.WHOLE and is_trusted(checkpoint):
            return checkpoint
    return None


def is_trusted(checkpoint: Checkpoint) -> bool:
    """Nothing that was checked speaks against it; an unchecked one has the benefit of the doubt."""
    seen = checkpoint.verification
    return seen is None or seen.soundness in (Soundness.SOUND, Soundness.NO_SUMS)


def _of_tree(tree: CheckpointTree, best: Checkpoint | None) -> WouldLoad:
    number = best.iteration if best else None
    tracker = tree.tracker
    if isinstance(tracker, Unknown):
        if tracker.why is not Absence.MISSING:
            line = f"cannot tell what loads: the tracker file: {tracker.reason}"
            return WouldLoad(loads=Loads.UNKNOWN, best=number, line=line)
        line = "a restart would begin fresh at rollout 0: no tracker file"
        if tree.note and not tree.checkpoints:
            line += f" ({tree.note})"
        return WouldLoad(loads=Loads.NOTHING, best=number, line=line)
    text = tracker.value.strip()
    if text == "release" or not text.isdecimal():
        return _odd_tracker(text, tree, number)
    tracked = next((each for each in tree.checkpoints if each.tracked), None)
    return _of_tracked(int(text), tracked, best)


def _odd_tracker(text: str, tree: CheckpointTree, best: int | None) -> WouldLoad:
    is_megatron = any(each.layout is Layout.MEGATRON for each in tree.checkpoints)
    if text == "release" and is_megatron:
        line = "a restart loads the converted base model and begins at rollout 1"
        return WouldLoad(loads=Loads.NOTHING, best=best, line=line)
    shown = repr(text[:40]) if text else "empty"
    line = f"a restart fails: the tracker is {shown}, no number"
    return WouldLoad(loads=Loads.FAILS, best=best, line=line)


def _of_tracked(number: int, tracked: Checkpoint | None, best: Checkpoint | None) -> WouldLoad:
    newest = best.iteration if best else None
    if tracked is None:
        line = f"a restart would begin fresh or fail: the tracker says {number}, which is not there"
        return WouldLoad(loads=Loads.FAILS, best=newest, line=line)
    if tracked.state is not CheckpointState.WHOLE:
        fate = f"a restart would try {number}, which is {tracked.state.value}: {tracked.reason}"
        return WouldLoad(loads=Loads.FAILS, iteration=number, best=newest, line=fate)
    line = f"a restart loads {number} and begins at rollout {tracked.resumes_at}"
    if not is_trusted(tracked) and tracked.verification is not None:
        line += f"; it is {tracked.verification.soundness.value}"
    elif not tracked.has_data_state:
        line += ", the data order from its beginning"
    return WouldLoad(loads=Loads.CHECKPOINT, iteration=number, best=newest, line=line)
