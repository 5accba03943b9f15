"""What a save folder holds: names, layouts, and the parts that a whole checkpoint has.

Names and the order of writing: Miles' fsdp_utils/checkpoint.py and megatron_utils/lora_utils.py,
Megatron-LM's training/checkpointing.py. Newer Miles writes one `rng_rank_N.pt` a rank for `rng.pt`.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Set
from dataclasses import dataclass

from tui.model.checkpoint import Layout

TRACKER_NAME = "latest_checkpointed_iteration.txt"
DATA_FOLDER = "rollout"
EVENTS_FOLDER = "debug_events"
"""Written by `--dump-details` under the unshifted number; alone it is no checkpoint."""
META_NAME = "meta.json"

_ITERATION = re.compile(r"iter_([0-9]{7,})")
_DATA_STATE = re.compile(r"global_dataset_state_dict_([0-9]+)\.pt")
_SHARD = re.compile(r"__([0-9]+)_[0-9]+\.distcp")
_RNG = re.compile(r"rng(_rank_[0-9]+)?\.pt")
_NATIVE = re.compile(r"adapter_megatron_(.+)\.pt")
_SECTIONS = ("model", "optimizer", "lr_scheduler")
_MISSING_LIMIT = 8
_RANK_LIMIT = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class FileSeen:
    """One file below a checkpoint folder."""

    path: str
    """Below the folder: `model/.metadata`."""
    size_bytes: int
    written_at: float
    """Modification time."""
    inode: int = 0
    """Another number under the same name is another file."""


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderSeen:
    """A checkpoint folder as a listing two levels deep shows it, without `debug_events`."""

    name: str
    files: tuple[FileSeen, ...] = ()
    folders: tuple[str, ...] = ()
    """Folders directly below, empty ones too."""
    written_at: float = 0.0
    """Modification time of the folder itself."""
    meta_text: str = ""
    """Start of `meta.json`."""
    fault: str = ""
    """Why the listing is not complete; empty when it is."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Meta:
    """What `meta.json` says, as far as it can be used."""

    readable: bool = False
    rollout: int | None = None
    next_rollout: int | None = None
    world_size: int = 0
    stamped_at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """One thing that a whole checkpoint has."""

    label: str
    files: tuple[FileSeen, ...]
    missing: tuple[str, ...]
    index: FileSeen | None = None
    """What says that the rest of the part is done."""
    idle_ranks: bool = False
    """A rank with nothing to write leaves an empty shard, as torch does for small parts."""


def iteration_of(name: str) -> int | None:
    """The number in a folder's name. A converted base model's `release` counts as 0."""
    if name == "release":
        return 0
    found = _ITERATION.fullmatch(name)
    return int(found[1]) if found else None


def tracked_name(tracker: str | None) -> str | None:
    """The folder that a tracker's text names."""
    text = (tracker or "").strip()
    if text == "release":
        return text
    return f"iter_{int(text):07d}" if re.fullmatch(r"[0-9]{1,18}", text) else None


def data_state_of(name: str) -> int | None:
    """The rollout after which a data source's position was saved, by its file's name."""
    found = _DATA_STATE.fullmatch(name)
    return int(found[1]) if found else None


def rank_of(path: str) -> int | None:
    """Which rank wrote a shard, by its name."""
    found = _SHARD.fullmatch(path.rpartition("/")[2])
    return int(found[1]) if found else None


def folder_note(root: str, names: Iterable[str]) -> str:
    """What is wrong with `root` as a save folder that holds `names`; empty when nothing is."""
    held = frozenset(names)
    if any(iteration_of(name) is not None for name in held):
        return ""
    above, _, name = root.rstrip("/").rpartition("/")
    if name in _SECTIONS and (".metadata" in held or _shards_in(held)):
        outer = above.rpartition("/")[0] or "the folder two levels up"
        return f"this is a part of one checkpoint; the save folder is {outer}"
    if layout_of(held) is not Layout.UNKNOWN or _ITERATION.fullmatch(name):
        return f"this is one checkpoint; the save folder is {above or 'the folder above'}"
    return "no checkpoint here: no folder is named iter_ and a number"


def tops_of(seen: FolderSeen) -> frozenset[str]:
    """Names directly below the folder."""
    return frozenset(file.path.partition("/")[0] for file in seen.files) | set(seen.folders)


def _shards_in(names: Iterable[str]) -> bool:
    return any(_SHARD.fullmatch(name) for name in names)


def layout_of(tops: Set[str]) -> Layout:
    """Who writes a folder that holds these names."""
    if "adapter" in tops:
        return Layout.LORA
    if tops & {*_SECTIONS, META_NAME} or any(_RNG.fullmatch(name) for name in tops):
        return Layout.FSDP
    if tops & {"common.pt", ".metadata", "metadata.json"} or _shards_in(tops):
        return Layout.MEGATRON
    return Layout.UNKNOWN


def meta_of(seen: FolderSeen) -> Meta:
    """What can be used of `meta.json`; it was written by a run, but may be cut or edited."""
    try:
        stated = json.loads(seen.meta_text)
    except (ValueError, RecursionError):
        return Meta()
    if not isinstance(stated, dict):
        return Meta()

    def number(key: str) -> int | float | None:
        value: object = stated.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return value if -1 <= value < 2**53 else None

    def whole_number(key: str) -> int | None:
        value = number(key)
        return value if isinstance(value, int) else None

    return Meta(
        readable=True,
        rollout=whole_number("rollout_id"),
        next_rollout=whole_number("next_rollout_id"),
        world_size=whole_number("world_size") or 0,
        stamped_at=max(0.0, number("timestamp") or 0.0),
    )


def parts_of(seen: FolderSeen, layout: Layout, meta: Meta) -> tuple[Part, ...]:
    """The parts of a whole checkpoint, in the order in which they are written."""
    match layout:
        case Layout.FSDP:
            model, optimizer, scheduler = (
                _section(seen, name, name, meta.world_size) for name in _SECTIONS
            )
            rng = _single(seen, "rng.pt", _RNG)
            return model, optimizer, scheduler, rng, _single(seen, META_NAME)
        case Layout.MEGATRON:
            common, closing = _single(seen, "common.pt"), _single(seen, "metadata.json")
            return common, _section(seen, "", "shards", 0), closing
        case Layout.LORA:
            return _adapter(seen)
        case Layout.UNKNOWN:
            return ()


def _in_folder(seen: FolderSeen, folder: str) -> Iterator[tuple[str, FileSeen]]:
    for file in seen.files:
        parent, _, name = file.path.rpartition("/")
        if parent == folder:
            yield name, file


def _single(seen: FolderSeen, name: str, pattern: re.Pattern[str] | None = None) -> Part:
    matching = pattern or re.compile(re.escape(name))
    files = tuple(file for inside, file in _in_folder(seen, "") if matching.fullmatch(inside))
    return Part(label=name, files=files, missing=() if files else (name,))


def _section(seen: FolderSeen, folder: str, label: str, world_size: int) -> Part:
    """Shards, one or more a rank, and the index that is written when all ranks are done."""
    prefix = f"{folder}/" if folder else ""
    inside = dict(_in_folder(seen, folder))
    shards = {name: found for name in inside if (found := _SHARD.fullmatch(name))}
    ranks = {int(found[1]) for found in shards.values()}
    wanted = range(max(0 if ranks else 1, min(world_size, _RANK_LIMIT)))
    absent = [rank for rank in wanted if rank not in ranks]
    missing = [f"{prefix}__{rank}_0.distcp" for rank in absent[:_MISSING_LIMIT]]
    index = inside.get(".metadata")
    return Part(
        label=label,
        files=tuple(inside[name] for name in shards),
        missing=(*missing, *([] if index else [f"{prefix}.metadata"])),
        index=index,
        idle_ranks=folder == "lr_scheduler",
    )


def _adapter(seen: FolderSeen) -> tuple[Part, ...]:
    """Each rank needs its weights and its training state; the HF copy is optional."""
    inside = dict(_in_folder(seen, "adapter"))
    native = {found[1]: name for name in inside if (found := _NATIVE.fullmatch(name))}
    wanted = [f"training_state_{rank}.pt" for rank in sorted(native) if rank.startswith("rank")]
    gone = [f"adapter/{name}" for name in wanted if name not in inside]
    return (
        Part(
            label="adapter",
            files=tuple(inside[name] for name in native.values()),
            missing=() if native else ("adapter/adapter_megatron_rank0.pt",),
        ),
        Part(
            label="training state",
            files=tuple(inside[name] for name in wanted if name in inside),
            missing=tuple(gone[:_MISSING_LIMIT]),
        ),
    )
