"""Checkpoint folders judged by presence, size and order of their files."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.miles.layout import (
    FileSeen,
    FolderSeen,
    data_state_of,
    folder_note,
    iteration_of,
    tracked_name,
)
from tui.miles.wholeness import COPY_S, SAVING_S, checkpoint_of
from tui.model.checkpoint import Checkpoint, CheckpointState, Layout

SAVED_AT = 1_795_954_259.0
LONG_AFTER = SAVED_AT + 3600.0
META = {
    "global_step": 4,
    "iteration": 4,
    "micro_step": 0,
    "next_rollout_id": 4,
    "rollout_id": 3,
    "timestamp": SAVED_AT + 15.0,
    "world_size": 1,
}
FSDP_ORDER = (
    "model/__0_0.distcp",
    "model/.metadata",
    "optimizer/__0_0.distcp",
    "optimizer/.metadata",
    "lr_scheduler/__0_0.distcp",
    "lr_scheduler/.metadata",
    "rng.pt",
    "meta.json",
)
MEGATRON_ORDER = ("common.pt", "__0_0.distcp", "__0_1.distcp", ".metadata", "metadata.json")
LORA_ORDER = ("adapter/adapter_megatron_rank0.pt", "adapter/training_state_rank0.pt")
SECTIONS = ("lr_scheduler", "model", "optimizer")


def written(*paths: str, at: float = SAVED_AT, step_s: float = 2.0) -> tuple[FileSeen, ...]:
    """Files written one after the other."""
    return tuple(
        FileSeen(path=path, size_bytes=100, written_at=at + (place + 1) * step_s)
        for place, path in enumerate(paths)
    )


def fsdp(*paths: str, name: str = "iter_0000004", **changes: object) -> FolderSeen:
    meta_text = json.dumps({**META, **changes}) if "meta.json" in paths else ""
    return FolderSeen(
        name=name,
        files=written(*paths),
        folders=SECTIONS,
        written_at=SAVED_AT,
        meta_text=meta_text,
    )


def retouched(seen: FolderSeen, path: str, **changes: float) -> FolderSeen:
    """The same folder with one file changed; `later_s` counts from the time it had."""

    def touch(file: FileSeen) -> FileSeen:
        later_s = changes.get("later_s", 0.0)
        size_bytes = int(changes.get("size_bytes", file.size_bytes))
        return replace(file, written_at=file.written_at + later_s, size_bytes=size_bytes)

    assert any(file.path == path for file in seen.files)
    files = tuple(touch(file) if file.path == path else file for file in seen.files)
    return replace(seen, files=files)


def judged(
    seen: FolderSeen,
    *,
    tracker: str | None = "4",
    data_states: frozenset[int] = frozenset({3}),
    now: float = LONG_AFTER,
) -> Checkpoint:
    found = checkpoint_of(
        seen, path=f"/ckpt/{seen.name}", tracker=tracker, data_states=data_states, now=now
    )
    assert found is not None
    return found


def test_a_whole_fsdp_checkpoint() -> None:
    found = judged(fsdp(*FSDP_ORDER))
    assert found == Checkpoint(
        iteration=4,
        path="/ckpt/iter_0000004",
        layout=Layout.FSDP,
        state=CheckpointState.WHOLE,
        size_bytes=800,
        taken_at=META["timestamp"],
        after_rollout=3,
        resumes_at=4,
        tracked=True,
        has_data_state=True,
    )


STAGES = (
    (0, "no file yet"),
    (1, "model begun, model/.metadata not written yet"),
    (2, "optimizer not written yet"),
    (3, "optimizer begun, optimizer/.metadata not written yet"),
    (4, "lr_scheduler not written yet"),
    (5, "lr_scheduler begun, lr_scheduler/.metadata not written yet"),
    (6, "rng.pt not written yet"),
    (7, "meta.json not written yet"),
)


@pytest.mark.parametrize(("count", "stage"), STAGES)
def test_an_interrupted_fsdp_save_says_how_far_it_came(count: int, stage: str) -> None:
    found = judged(fsdp(*FSDP_ORDER[:count]), tracker="2")
    assert found.state is CheckpointState.PARTIAL
    assert found.reason == f"the save did not finish: {stage}"
    assert set(found.missing) == set(FSDP_ORDER[count:])
    assert found.layout is Layout.FSDP


@pytest.mark.parametrize(("count", "stage"), STAGES)
def test_a_save_under_way_is_not_called_broken(count: int, stage: str) -> None:
    seen = fsdp(*FSDP_ORDER[:count])
    newest = max((file.written_at for file in seen.files), default=seen.written_at)
    found = judged(seen, tracker="2", now=newest + SAVING_S - 1)
    assert found.state is CheckpointState.SAVING
    assert found.reason == f"being written: {stage}"
    assert judged(seen, tracker="2", now=newest + SAVING_S + 1).state is CheckpointState.PARTIAL


def test_judged_as_of_an_earlier_time_nothing_is_under_way() -> None:
    found = judged(fsdp(*FSDP_ORDER[:3]), tracker="2", now=SAVED_AT - SAVING_S - 60.0)
    assert found.state is CheckpointState.PARTIAL


def test_missing_parts_behind_the_tracker_are_no_save_under_way() -> None:
    assert judged(fsdp(*FSDP_ORDER[:3]), tracker="4", now=SAVED_AT).state is CheckpointState.PARTIAL


@pytest.mark.parametrize("tracker", [None, "", "2", "release"])
def test_stage_6_complete_but_not_tracked(tracker: str | None) -> None:
    found = judged(fsdp(*FSDP_ORDER), tracker=tracker)
    assert found.state is CheckpointState.WHOLE
    assert not found.tracked
    assert found.reason == "no tracker names it: a resume would not load it"


def test_an_older_one_than_the_tracked_lacks_nothing() -> None:
    found = judged(fsdp(*FSDP_ORDER), tracker="6")
    assert (found.tracked, found.reason) == (False, "")


def test_stage_7_tracked_but_without_the_position_in_the_data() -> None:
    found = judged(fsdp(*FSDP_ORDER), data_states=frozenset({1, 4}))
    assert found.state is CheckpointState.WHOLE
    assert (found.tracked, found.has_data_state) == (True, False)
    assert found.reason.startswith("the data source's position was not saved")


def test_stage_9_events_alone_are_no_checkpoint() -> None:
    seen = FolderSeen(name="iter_0000003", folders=("debug_events",), written_at=SAVED_AT)
    assert checkpoint_of(seen, path="", tracker="4", data_states=frozenset(), now=0.0) is None
    beside = replace(fsdp(*FSDP_ORDER), folders=(*SECTIONS, "debug_events"))
    assert judged(beside).state is CheckpointState.WHOLE


def test_other_names_are_no_checkpoint() -> None:
    for name in ("iter_4", "iter_0000004.aside", "rollout", "iter_"):
        seen = replace(fsdp(*FSDP_ORDER), name=name)
        assert checkpoint_of(seen, path="", tracker=None, data_states=frozenset(), now=0.0) is None


@pytest.mark.parametrize("path", ["model/__0_0.distcp", "optimizer/__0_0.distcp"])
def test_a_shard_newer_than_its_index_is_a_save_over_an_older_one(path: str) -> None:
    seen = retouched(fsdp(*FSDP_ORDER), path, later_s=600.0)
    found = judged(seen)
    assert found.state is CheckpointState.DAMAGED
    assert found.reason.startswith(f"a save over an older one did not finish: {path} is newer")
    under_way = judged(seen, tracker="2", now=SAVED_AT + 620.0)
    assert under_way.state is CheckpointState.SAVING


@pytest.mark.parametrize("path", ["model/.metadata", "lr_scheduler/.metadata", "rng.pt"])
def test_a_part_newer_than_the_closing_file_is_not_whole(path: str) -> None:
    found = judged(retouched(fsdp(*FSDP_ORDER), path, later_s=60.0))
    assert found.state is CheckpointState.DAMAGED
    assert f"{path} is newer than meta.json" in found.reason


def test_a_save_over_an_old_partial_tells_both() -> None:
    seen = retouched(fsdp(*FSDP_ORDER[:5]), "model/__0_0.distcp", later_s=COPY_S + 10)
    found = judged(seen, tracker="2")
    assert found.state is CheckpointState.PARTIAL
    assert "lr_scheduler/.metadata not written yet; a save over an older one" in found.reason


def test_near_equal_times_are_no_sign() -> None:
    found = judged(retouched(fsdp(*FSDP_ORDER), "model/__0_0.distcp", later_s=4.0))
    assert found.state is CheckpointState.WHOLE


def test_a_copy_writes_in_any_order() -> None:
    copied_at = SAVED_AT + 86400.0
    files = tuple(
        replace(file, written_at=copied_at - place * 30.0)
        for place, file in enumerate(fsdp(*FSDP_ORDER).files)
    )
    found = judged(replace(fsdp(*FSDP_ORDER), files=files), now=copied_at + 3600.0)
    assert found.state is CheckpointState.WHOLE
    assert found.taken_at == META["timestamp"], "a copy is no younger than what was copied"


@pytest.mark.parametrize("path", FSDP_ORDER)
def test_an_empty_file_is_damage(path: str) -> None:
    seen = retouched(fsdp(*FSDP_ORDER), path, size_bytes=0)
    found = judged(replace(seen, meta_text="") if path == "meta.json" else seen)
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == f"{path} is empty"


def two_ranks(*left_out: str) -> FolderSeen:
    paths = [
        path.replace("__0", f"__{rank}")
        for path in FSDP_ORDER
        for rank in (range(2) if "__0" in path else range(1))
    ]
    return fsdp(*(path for path in paths if path not in left_out), world_size=2)


def test_every_rank_has_its_shard() -> None:
    assert judged(two_ranks()).state is CheckpointState.WHOLE
    found = judged(two_ranks("optimizer/__1_0.distcp"))
    assert found.state is CheckpointState.PARTIAL
    assert found.missing == ("optimizer/__1_0.distcp",)
    assert found.reason == "optimizer/__1_0.distcp is gone, though the save had finished"


def test_a_rank_with_nothing_to_write_leaves_an_empty_scheduler_shard() -> None:
    seen = retouched(two_ranks(), "lr_scheduler/__1_0.distcp", size_bytes=0)
    assert judged(seen).state is CheckpointState.WHOLE
    seen = retouched(two_ranks(), "model/__1_0.distcp", size_bytes=0)
    assert judged(seen).state is CheckpointState.DAMAGED


def test_leftovers_of_a_larger_world_do_no_harm() -> None:
    seen = two_ranks()
    assert judged(replace(seen, meta_text=json.dumps(META))).state is CheckpointState.WHOLE


def test_an_absurd_world_size_stays_bounded() -> None:
    found = judged(fsdp(*FSDP_ORDER, world_size=10**12))
    assert found.state is CheckpointState.PARTIAL
    assert len(found.missing) < 30


@pytest.mark.parametrize("text", ["", "{", "[]", "[" * 60000, "nul", "1e999", '{"a": ' * 60000])
def test_an_unreadable_meta_json(text: str) -> None:
    found = judged(replace(fsdp(*FSDP_ORDER), meta_text=text))
    assert found.state is CheckpointState.DAMAGED
    assert found.reason.startswith("meta.json cannot be read")
    assert (found.after_rollout, found.resumes_at) == (3, 4)


@pytest.mark.parametrize("value", [None, True, "4", -7, 2**60, 1.5, [4]])
def test_meta_json_with_odd_values_falls_back_to_the_name(value: object) -> None:
    found = judged(
        fsdp(*FSDP_ORDER, rollout_id=value, next_rollout_id=value, world_size=value, timestamp="x")
    )
    assert found.state is CheckpointState.WHOLE
    assert (found.after_rollout, found.resumes_at) == (3, 4)


def test_saved_without_optimizer() -> None:
    paths = ("model/__0_0.distcp", "model/.metadata", "rng.pt", "meta.json")
    found = judged(fsdp(*paths))
    assert found.state is CheckpointState.PARTIAL
    assert found.reason == "saved without optimizer: its empty folders crash a resume"
    found = judged(replace(fsdp(*paths), folders=("model",)))
    assert found.reason == "saved without optimizer: a resume starts it anew"


def test_newer_miles_saves_a_random_state_a_rank() -> None:
    paths = tuple(path.replace("rng.pt", "rng_rank_0.pt") for path in FSDP_ORDER)
    assert judged(fsdp(*paths)).state is CheckpointState.WHOLE


def megatron(*paths: str, name: str = "iter_0000019") -> FolderSeen:
    return FolderSeen(name=name, files=written(*paths), written_at=SAVED_AT)


def test_a_whole_megatron_checkpoint_resumes_one_later() -> None:
    found = judged(megatron(*MEGATRON_ORDER), tracker="19", data_states=frozenset({19}))
    assert (found.layout, found.state) == (Layout.MEGATRON, CheckpointState.WHOLE)
    assert (found.after_rollout, found.resumes_at, found.reason) == (19, 20, "")
    assert found.tracked
    assert found.has_data_state


@pytest.mark.parametrize(
    ("count", "stage"),
    [
        (1, "shards not written yet"),
        (2, "shards begun, .metadata not written yet"),
        (4, "metadata.json not written yet"),
    ],
)
def test_an_interrupted_megatron_save(count: int, stage: str) -> None:
    found = judged(megatron(*MEGATRON_ORDER[:count]), tracker="9")
    assert found.state is CheckpointState.PARTIAL
    assert stage in found.reason
    assert "async save" in found.reason


def test_megatron_damage() -> None:
    empty = retouched(megatron(*MEGATRON_ORDER), "__0_1.distcp", size_bytes=0)
    assert judged(empty, tracker="19").state is CheckpointState.DAMAGED
    later = retouched(megatron(*MEGATRON_ORDER), "__0_1.distcp", later_s=COPY_S + 60)
    assert judged(later, tracker="19").state is CheckpointState.DAMAGED


def test_release_is_a_converted_base_model() -> None:
    found = judged(megatron(*MEGATRON_ORDER, name="release"), tracker="release")
    assert found.state is CheckpointState.WHOLE
    assert (found.iteration, found.after_rollout, found.resumes_at) == (0, -1, 1)
    assert found.tracked


def test_iteration_zero() -> None:
    seen = megatron(*MEGATRON_ORDER, name="iter_0000000")
    found = judged(seen, tracker="0", data_states=frozenset({0}))
    assert (found.iteration, found.resumes_at, found.tracked) == (0, 1, True)


def test_a_lora_adapter_has_no_tracker() -> None:
    seen = megatron(*LORA_ORDER)
    found = judged(seen, tracker=None, data_states=frozenset({19}))
    assert (found.layout, found.state) == (Layout.LORA, CheckpointState.WHOLE)
    assert "--lora-adapter-path" in found.reason
    found = judged(megatron(LORA_ORDER[0]), tracker=None)
    assert found.state is CheckpointState.PARTIAL
    assert found.missing == ("adapter/training_state_rank0.pt",)
    found = judged(megatron("adapter/adapter_model.bin"), tracker=None)
    assert found.missing == ("adapter/adapter_megatron_rank0.pt",)


def test_what_is_not_known_is_not_called_whole() -> None:
    found = judged(megatron("mp_rank_00/model_optim_rng.pt"))
    assert (found.layout, found.state) == (Layout.UNKNOWN, CheckpointState.PARTIAL)
    assert judged(megatron()).reason == "empty folder"
    found = judged(replace(fsdp(*FSDP_ORDER), fault="Permission denied"))
    assert found.state is CheckpointState.PARTIAL
    assert found.reason == "cannot be read: Permission denied"


def test_names() -> None:
    assert [iteration_of(name) for name in ("iter_0000004", "iter_12345678", "release")] == [
        4,
        12345678,
        0,
    ]
    assert iteration_of("iter_٠٠٠٠٠٠٤") is None
    assert tracked_name("4") == "iter_0000004"
    assert tracked_name(" 0000012\n") == "iter_0000012"
    assert tracked_name("release\n") == "release"
    for text in (None, "", "four", "-1", "4.0", "9" * 30):
        assert tracked_name(text) is None
    assert data_state_of("global_dataset_state_dict_3.pt") == 3
    assert data_state_of("global_dataset_state_dict_3.pt.tmp") is None


@pytest.mark.parametrize(
    ("root", "names", "note"),
    [
        ("/ckpt", ("iter_0000004", "rollout"), ""),
        ("/ckpt/iter_0000004", ("iter_0000004",), ""),
        ("/ckpt/iter_0000004", ("model", "meta.json"), "the save folder is /ckpt"),
        ("/ckpt/iter_0000019/", ("common.pt", ".metadata"), "the save folder is /ckpt"),
        ("/ckpt/copied", ("model", "meta.json"), "the save folder is /ckpt"),
        ("/ckpt/iter_0000004/model", (".metadata", "__0_0.distcp"), "the save folder is /ckpt"),
        ("model", (".metadata",), "the folder two levels up"),
        ("/ckpt", ("rollout",), "no checkpoint here"),
    ],
)
def test_a_wrong_root_is_told(root: str, names: tuple[str, ...], note: str) -> None:
    found = folder_note(root, names)
    assert found.endswith(note) if "folder" in note else found.startswith(note)
    assert bool(found) == bool(note)


FILES = st.builds(
    FileSeen,
    path=st.sampled_from(
        (*FSDP_ORDER, *MEGATRON_ORDER, *LORA_ORDER, "model/__7_3.distcp", "rng_rank_1.pt", "x/y/z")
    ),
    size_bytes=st.sampled_from((0, 1, 2**40)),
    written_at=st.sampled_from((0.0, SAVED_AT, SAVED_AT + 100.0, LONG_AFTER, 1e18)),
)
FOLDERS = st.builds(
    FolderSeen,
    name=st.sampled_from(("iter_0000004", "release", "iter_0000000")),
    files=st.lists(FILES, unique_by=lambda file: file.path).map(tuple),
    folders=st.lists(st.sampled_from((*SECTIONS, "debug_events")), unique=True).map(tuple),
    written_at=st.floats(allow_nan=False),
    meta_text=st.one_of(st.just(json.dumps(META)), st.text()),
    fault=st.sampled_from(("", "", "Input/output error")),
)


@settings(deadline=None)
@given(seen=FOLDERS, tracker=st.one_of(st.none(), st.text()), now=st.floats(allow_nan=False))
def test_any_folder_is_judged_and_a_whole_one_lacks_nothing(
    seen: FolderSeen, tracker: str | None, now: float
) -> None:
    found = checkpoint_of(seen, path="", tracker=tracker, data_states=frozenset({3}), now=now)
    if found is None:
        return
    if found.state is CheckpointState.WHOLE:
        paths = {file.path for file in seen.files}
        assert found.missing == ()
        assert any(
            paths >= set(order) for order in (MEGATRON_ORDER[:1], LORA_ORDER, FSDP_ORDER[:6])
        )
    else:
        assert found.reason
    assert "\n" not in found.reason


@settings(deadline=None)
@given(left_out=st.sets(st.sampled_from(FSDP_ORDER), min_size=1), tracker=st.sampled_from("246"))
def test_no_true_subset_is_whole(left_out: set[str], tracker: str) -> None:
    found = judged(fsdp(*(path for path in FSDP_ORDER if path not in left_out)), tracker=tracker)
    assert found.state is CheckpointState.PARTIAL
    assert left_out == set(found.missing) or found.layout is not Layout.FSDP
