"""Whether a checkpoint folder is whole, judged by presence, size and order of its files.

Every layout closes a save with one small file, and no file of the save is written after it. So a
part that is newer than its index, or than the closing file, belongs to a later save that did not
finish: the old index lies beside new shards.
"""

from __future__ import annotations

from collections.abc import Iterator, Set
from itertools import islice

from tui.miles.layout import (
    EVENTS_FOLDER,
    META_NAME,
    FolderSeen,
    Meta,
    Part,
    iteration_of,
    layout_of,
    meta_of,
    parts_of,
    tops_of,
    tracked_name,
)
from tui.model.checkpoint import Checkpoint, CheckpointState, Layout

SAVING_S = 120.0
"""A save whose newest file is older than this is no longer being written."""
MOMENT_S = 5.0
"""How much later a file may be than the one that closes it, where times are those of the save."""
COPY_S = 600.0
"""The same where they may be those of a copy, which writes files in any order."""
STAMP_S = 5.0
"""`meta.json` is written this soon after the time it states, unless it was copied."""


def checkpoint_of(
    seen: FolderSeen, *, path: str, tracker: str | None, data_states: Set[int], now: float
) -> Checkpoint | None:
    """The checkpoint in a folder, or None where the folder is none.

    `tracker` is the tracker file's text, `data_states` the rollouts with a data source's position.
    """
    iteration = iteration_of(seen.name)
    tops = tops_of(seen)
    if iteration is None or (tops == {EVENTS_FOLDER} and not seen.fault):
        return None
    layout = layout_of(tops)
    meta = meta_of(seen) if layout is Layout.FSDP else Meta()
    after, resumes = _numbers(seen.name, iteration, layout, meta)
    tracked = tracked_name(tracker)
    is_awaited = tracked is None or iteration > (iteration_of(tracked) or 0)
    state, missing, reason = _judged(
        seen, layout, meta, is_saving=is_awaited and _is_fresh(seen, now)
    )
    is_whole = state is CheckpointState.WHOLE
    return Checkpoint(
        iteration=iteration,
        path=path,
        layout=layout,
        state=state,
        missing=missing,
        reason=_remark(layout, is_awaited, after in data_states) if is_whole else reason,
        size_bytes=sum(file.size_bytes for file in seen.files),
        taken_at=meta.stamped_at if is_whole and meta.stamped_at else _newest(seen),
        after_rollout=after,
        resumes_at=resumes,
        tracked=seen.name == tracked,
        has_data_state=after in data_states,
    )


def _numbers(name: str, iteration: int, layout: Layout, meta: Meta) -> tuple[int, int]:
    """Last rollout trained, first rollout of a resume. FSDP counts one ahead of Megatron."""
    if layout is Layout.UNKNOWN:
        return -1, 0
    if layout is Layout.FSDP:
        after = iteration - 1 if meta.rollout is None else meta.rollout
        return after, iteration if meta.next_rollout is None else meta.next_rollout
    return (-1 if name == "release" else iteration), iteration + 1


def _newest(seen: FolderSeen) -> float:
    """When something last changed; the folder's own time where it holds no file."""
    return max((file.written_at for file in seen.files), default=seen.written_at)


def _is_fresh(seen: FolderSeen, now: float) -> bool:
    return abs(now - _newest(seen)) < SAVING_S


def _judged(
    seen: FolderSeen, layout: Layout, meta: Meta, *, is_saving: bool
) -> tuple[CheckpointState, tuple[str, ...], str]:
    """State, what is missing, and why it is not whole."""
    if seen.fault:
        return CheckpointState.PARTIAL, (), f"cannot be read: {seen.fault}"
    unfinished = CheckpointState.SAVING if is_saving else CheckpointState.PARTIAL
    parts = parts_of(seen, layout, meta)
    if not parts:
        reason = "holds nothing that milepost knows" if tops_of(seen) else "empty folder"
        return unfinished, (), reason
    missing = tuple(name for part in parts for name in part.missing)
    reasons = []
    if missing:
        being_written = f"being written: {_stage(parts)}"
        reasons.append(being_written if is_saving else _why_partial(seen, layout, parts))
    if layout is not Layout.LORA:
        reasons.extend(islice(_overwritten(meta, parts), 1))
    if missing or (reasons and is_saving):
        return unfinished, missing, "; ".join(reasons)
    reasons.extend(islice(_flaws(layout, meta, parts), 1))
    state = CheckpointState.DAMAGED if reasons else CheckpointState.WHOLE
    return state, (), "; ".join(reasons)


def _stage(parts: tuple[Part, ...]) -> str:
    """How far the save came."""
    if not any(part.files or part.index for part in parts):
        return "no file yet"
    first = next(part for part in parts if part.missing)
    if not first.files and not first.index:
        return f"{first.label} not written yet"
    if first.files and not first.index and first.missing[-1].endswith(".metadata"):
        return f"{first.label} begun, {first.missing[-1]} not written yet"
    return f"{first.missing[0]} not written yet"


def _why_partial(seen: FolderSeen, layout: Layout, parts: tuple[Part, ...]) -> str:
    if parts[-1].missing or layout is Layout.LORA:
        hint = " (an async save is closed by the next save)" if layout is Layout.MEGATRON else ""
        return f"the save did not finish: {_stage(parts)}{hint}"
    lacking = [part for part in parts if part.missing]
    is_bare = not any(part.files or part.index for part in lacking)
    if is_bare and [part.label for part in lacking] == ["optimizer", "lr_scheduler"]:
        if {"optimizer", "lr_scheduler"} & set(seen.folders):
            return "saved without optimizer: its empty folders crash a resume"
        return "saved without optimizer: a resume starts it anew"
    return f"{lacking[0].missing[0]} is gone, though the save had finished"


def _overwritten(meta: Meta, parts: tuple[Part, ...]) -> Iterator[str]:
    """Signs of a later save over this one that did not finish."""
    closing = next(iter(parts[-1].files), None)
    is_original = closing is not None and abs(closing.written_at - meta.stamped_at) <= STAMP_S
    margin_s = MOMENT_S if is_original else COPY_S
    for part in parts[:-1]:
        pairs = [(shard, part.index) for shard in part.files]
        pairs += [(file, closing) for file in (part.index, *part.files) if file]
        for later, earlier in pairs:
            if earlier and later.written_at > earlier.written_at + margin_s:
                yield (
                    "a save over an older one did not finish: "
                    f"{later.path} is newer than {earlier.path}"
                )


def _flaws(layout: Layout, meta: Meta, parts: tuple[Part, ...]) -> Iterator[str]:
    for part in parts:
        is_written = any(file.size_bytes for file in part.files)
        for file in (*part.files, *([part.index] if part.index else [])):
            if file.size_bytes == 0 and not (part.idle_ranks and is_written and file != part.index):
                yield f"{file.path} is empty"
    if layout is Layout.FSDP and not meta.readable:
        yield f"{META_NAME} cannot be read: a resume would count from rollout 0"


def _remark(layout: Layout, is_awaited: bool, has_data_state: bool) -> str:
    """What a whole checkpoint lacks outside its folder."""
    remarks = []
    if layout is Layout.LORA:
        remarks.append("adapters have no tracker: a resume needs --lora-adapter-path")
    elif is_awaited:
        remarks.append("no tracker names it: a resume would not load it")
    if not has_data_state:
        remarks.append("the data source's position was not saved: data order would start again")
    return "; ".join(remarks)
