"""What came after a checkpoint, by the names in its save folder alone."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from tui.checkpoints.rollback import SaveListing, aside_for_resume, newer_than, tracker_for
from tui.miles.layout import data_state_of, iteration_of
from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.model.reading import Absence, Unknown, known


def checkpoint(
    iteration: int,
    layout: Layout = Layout.FSDP,
    state: CheckpointState = CheckpointState.WHOLE,
    name: str = "",
) -> Checkpoint:
    return Checkpoint(
        iteration=iteration,
        path=f"/ckpt/{name or folder(iteration)}",
        layout=layout,
        state=state,
        after_rollout=iteration - (layout is Layout.FSDP),
    )


def folder(iteration: int) -> str:
    return f"iter_{iteration:07d}"


def position(rollout: int) -> str:
    return f"global_dataset_state_dict_{rollout}.pt"


def test_fsdp_counts_one_ahead_of_the_data_source() -> None:
    listing = SaveListing(
        names=frozenset(map(folder, (20, 40, 60))),
        data_names=frozenset(map(position, (19, 39, 40, 59))),
    )
    assert newer_than(checkpoint(40), listing) == (
        "iter_0000060",
        "rollout/global_dataset_state_dict_40.pt",
        "rollout/global_dataset_state_dict_59.pt",
    )


def test_megatron_counts_with_it() -> None:
    listing = SaveListing(
        names=frozenset(map(folder, (19, 39, 59))),
        data_names=frozenset(map(position, (19, 39, 59))),
    )
    assert newer_than(checkpoint(39, Layout.MEGATRON), listing) == (
        "iter_0000059",
        "rollout/global_dataset_state_dict_59.pt",
    )


def test_events_of_a_later_rollout_lie_in_the_folder_of_the_checkpoint_before() -> None:
    """FSDP with `--dump-details` and a save each rollout."""
    listing = SaveListing(
        names=frozenset(map(folder, (3, 4, 5))), with_events=frozenset(map(folder, (3, 4)))
    )
    assert newer_than(checkpoint(4), listing) == ("iter_0000004/debug_events", "iter_0000005")
    assert newer_than(checkpoint(5), listing) == ()
    assert newer_than(checkpoint(4, Layout.MEGATRON), listing) == ("iter_0000005",)


def test_what_is_no_part_of_a_save_stays() -> None:
    names = ("quarantine-20261129-140000", "release", "notes.txt", "iter_9", "iter_0000060.bak")
    listing = SaveListing(names=frozenset(names), data_names=frozenset({"other.pt"}))
    assert newer_than(checkpoint(40), listing) == ()


def test_a_converted_base_model_has_all_after_it() -> None:
    base = checkpoint(0, Layout.MEGATRON, name="release")
    listing = SaveListing(names=frozenset({"release", folder(19)}))
    assert newer_than(base, listing) == ("iter_0000019",)
    assert tracker_for(base) == "release"
    assert tracker_for(checkpoint(40)) == "40"


@given(
    chosen=st.integers(0, 60),
    iterations=st.frozensets(st.integers(0, 60)),
    rollouts=st.frozensets(st.integers(0, 60)),
    layout=st.sampled_from([Layout.FSDP, Layout.MEGATRON]),
)
def test_what_is_left_is_what_was_there_when_it_was_saved(
    chosen: int, iterations: frozenset[int], rollouts: frozenset[int], layout: Layout
) -> None:
    listing = SaveListing(
        names=frozenset(map(folder, iterations)), data_names=frozenset(map(position, rollouts))
    )
    moved = newer_than(checkpoint(chosen, layout), listing)
    assert len(set(moved)) == len(moved)
    left = {iteration_of(name) for name in listing.names - set(moved)}
    assert left == {each for each in iterations if each <= chosen}
    positions = listing.data_names - {path.removeprefix("rollout/") for path in moved}
    last = chosen - 1 if layout is Layout.FSDP else chosen
    assert {data_state_of(name) for name in positions} == {r for r in rollouts if r <= last}


def tree(tracker: str | None, *checkpoints: Checkpoint) -> CheckpointTree:
    return CheckpointTree(
        root="/ckpt",
        tracker=Unknown(why=Absence.MISSING) if tracker is None else known(tracker, 0.0),
        checkpoints=checkpoints,
    )


def test_the_next_run_saves_over_what_is_newer_than_it_loads_and_broken() -> None:
    saves = (
        checkpoint(100, state=CheckpointState.SAVING),
        checkpoint(80, state=CheckpointState.PARTIAL),
        checkpoint(70, state=CheckpointState.DAMAGED),
        checkpoint(65),
        checkpoint(60),
        checkpoint(40, state=CheckpointState.PARTIAL),
    )
    assert aside_for_resume(tree("60", *saves)) == (folder(70), folder(80))
    assert aside_for_resume(tree(None, *saves)) == (folder(40), folder(70), folder(80))
    assert aside_for_resume(tree("80", *saves)) == ()
