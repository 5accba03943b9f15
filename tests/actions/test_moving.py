"""Roll back and undo on a real disk: nothing copied, nothing lost, whenever the process is killed."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import pytest
from carried_plans import SOMETHING, as_nobody, carried_out, finished, keep, killed, situation
from hypothesis import given, settings
from hypothesis import strategies as st
from save_folders import TRACKER, checkpoint, position, save

from tui.actions import moving
from tui.actions.executor import Perform
from tui.actions.rollback_plan import plan_rollback
from tui.actions.undo_plan import plan_undo
from tui.miles.flags import launch_from_argv
from tui.miles.layout import tracked_name
from tui.model.action import ActionRecord, ActionState
from tui.model.checkpoint import Checkpoint, Layout, Soundness, Verification
from tui.model.plan import ActionPlan, MoveAside, MoveBack, Refusal, WriteTracker
from tui.model.reading import Known, known

PERFORMERS: Mapping[type, Perform] = {
    MoveAside: moving.move_aside,
    MoveBack: moving.move_back,
    WriteTracker: moving.write_tracker,
}
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")


@dataclass(frozen=True)
class Place:
    """A save folder, and the state folder of its run."""

    root: Path
    state: Path

    def planned(self, iteration: int, **options: bool) -> ActionPlan:
        plan = plan_rollback(situation(self.root, self.state), iteration, **options)
        return self.kept(plan)

    def undo_planned(self) -> ActionPlan:
        return self.kept(plan_undo(situation(self.root, self.state)))

    def kept(self, plan: ActionPlan | Refusal) -> ActionPlan:
        assert isinstance(plan, ActionPlan), plan
        keep(plan, self.state)
        return plan

    def do(self, plan: ActionPlan) -> ActionRecord:
        return carried_out(plan, self.state, PERFORMERS)

    def done(self, plan: ActionPlan) -> None:
        record = self.do(plan)
        assert record.state is ActionState.DONE, record.line

    def finished(self, plan: ActionPlan) -> None:
        record = finished(plan, self.state, PERFORMERS)
        assert record.state is ActionState.DONE, record.line

    def refused(self, iteration: int) -> Refusal:
        plan = plan_rollback(situation(self.root, self.state), iteration)
        assert isinstance(plan, Refusal), plan
        return plan

    def undo_refused(self) -> Refusal:
        plan = plan_undo(situation(self.root, self.state))
        assert isinstance(plan, Refusal), plan
        return plan

    @property
    def tracker(self) -> str:
        return (self.root / TRACKER).read_text()


def made(base: Path) -> Place:
    root, state = base / "ckpt", base / "state"
    root.mkdir()
    state.mkdir()
    return Place(root, state)


@contextmanager
def new_place() -> Iterator[Place]:
    with tempfile.TemporaryDirectory() as folder:
        yield made(Path(folder))


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """20, 40 and 60 are whole, 80 is the rest of a save that did not finish."""
    here = made(tmp_path)
    for iteration in (20, 40, 60):
        save(here.root, iteration)
    checkpoint(here.root, 80, stop_after=2)
    return here


def names(root: Path) -> dict[str, int]:
    """Every path below a folder with its inode; the tracker, written anew, without."""
    return {
        str(path.relative_to(root)): 0 if path.name == TRACKER else path.lstat().st_ino
        for path in root.rglob("*")
    }


def aside(root: Path) -> Path:
    (folder,) = root.glob("quarantine-*")
    return folder


def test_an_older_checkpoint_becomes_what_a_resume_loads(place: Place) -> None:
    before = names(place.root)
    plan = place.planned(40)
    place.done(plan)
    assert place.tracker == "40"
    folder = aside(place.root)
    moved = ("iter_0000060", "iter_0000080", "rollout/global_dataset_state_dict_59.pt")
    after = names(place.root)
    for path, inode in before.items():
        is_moved = path in moved or path.startswith(moved[:2])
        assert after[f"{folder.name}/{path}" if is_moved else path] == inode
    assert len(after) == len(before) + 2  # the new folder, and `rollout` in it
    tree = situation(place.root, place.state).snapshot.checkpoints
    assert isinstance(tree, Known)
    assert [(each.iteration, each.tracked) for each in tree.value.checkpoints] == [
        (40, True),
        (20, False),
    ]


def test_its_undo_restores_the_tree_exactly(place: Place) -> None:
    before = names(place.root)
    place.done(place.planned(20))
    place.done(place.undo_planned())
    assert names(place.root) == before
    assert place.tracker == "60"
    assert "left to undo" in place.undo_refused().reason


def test_roll_backs_are_undone_from_the_last_to_the_first(place: Place) -> None:
    before = names(place.root)
    place.done(place.planned(40))
    between = names(place.root)
    place.done(place.planned(20))
    place.done(place.undo_planned())
    assert (names(place.root), place.tracker) == (between, "40")
    place.done(place.undo_planned())
    assert (names(place.root), place.tracker) == (before, "60")


def test_what_the_confirm_says(place: Place) -> None:
    rows = {row.label: row.text for row in place.planned(40).rows}
    assert "loads 40" in rows["A resume"]
    assert "rollout 40" in rows["A resume"]
    assert rows["Tracker"].startswith("60 → 40, in ")
    assert "iter_0000060, iter_0000080, rollout/global_dataset_state_dict_59.pt" in rows["Moves"]
    assert "--undo" in rows["Deletes"]
    assert "never verified" in rows["But"]


@pytest.mark.parametrize(
    ("command", "doubt"),
    [
        ("--save /c --load /c --start-rollout-id 60", "--start-rollout-id 60"),
        ("--save /c --load /c --ckpt-step 60", "Megatron loads that one"),
        ("--save /c --load /c --critic-save /d", "--critic-save"),
        ("--save /c", "has no --load"),
        ("--save /c --load /models/base", "has --load /models/base"),
    ],
)
def test_what_the_command_says_against_it(place: Place, command: str, doubt: str) -> None:
    seen = situation(place.root, place.state)
    launch = launch_from_argv(("python3", "train.py", *command.split()))
    attachment = replace(seen.snapshot.attachment, launch=launch)
    seen = replace(seen, snapshot=replace(seen.snapshot, attachment=attachment))
    plan = plan_rollback(seen, 40)
    assert isinstance(plan, ActionPlan)
    doubts = [row.text for row in plan.rows if row.label == "But"]
    assert sum(doubt in text for text in doubts) == 1
    assert len(doubts) == 2  # the other one: it was never verified


def test_what_the_run_saves_until_it_is_stopped_is_moved_too(place: Place) -> None:
    alive = situation(place.root, place.state, target=SOMETHING)
    plan = place.kept(plan_rollback(alive, 40, after_stop=True))
    save(place.root, 90)
    before = names(place.root)
    place.done(plan)
    assert place.tracker == "40"
    moved = {path.name for path in aside(place.root).iterdir()}
    assert moved == {"iter_0000060", "iter_0000080", "iter_0000090", "rollout"}
    place.done(place.undo_planned())
    assert (names(place.root), place.tracker) == (before, "90")


def test_a_tracker_that_went_back_since_is_left_as_it_is(place: Place) -> None:
    alive = situation(place.root, place.state, target=SOMETHING)
    plan = place.kept(plan_rollback(alive, 40, after_stop=True))
    (place.root / TRACKER).write_text("20")
    record = place.do(plan)
    assert record.state is ActionState.FAILED
    assert "says 20 now, not 60" in record.line
    assert place.tracker == "20"


def test_a_tracker_that_lags_can_be_moved_on(place: Place) -> None:
    (place.root / TRACKER).write_text("40\n")
    before = names(place.root)
    place.done(place.planned(60))
    assert place.tracker == "60"
    place.done(place.undo_planned())
    assert (names(place.root), place.tracker) == (before, "40\n")


def test_a_missing_tracker_is_written_and_taken_away_again(place: Place) -> None:
    (place.root / TRACKER).unlink()
    before = names(place.root)
    place.done(place.planned(60))
    assert place.tracker == "60"
    place.done(place.undo_planned())
    assert names(place.root) == before


def test_a_tracker_of_garbage_comes_back_to_the_byte(place: Place) -> None:
    (place.root / TRACKER).write_bytes(b"\xff\x00 6")
    place.done(place.planned(40))
    place.done(place.undo_planned())
    assert (place.root / TRACKER).read_bytes() == b"\xff\x00 6"


def test_only_what_is_newer_moves_where_the_tracker_is_right(place: Place) -> None:
    plan = place.planned(60)
    assert [type(step) for step in plan.steps] == [MoveAside]
    place.done(plan)
    assert (aside(place.root) / "iter_0000080").is_dir()
    assert "already" in place.refused(60).reason


def test_links_are_moved_as_links(place: Place, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (place.root / "iter_0000100").symlink_to(elsewhere)
    before = names(place.root)
    place.done(place.planned(60))
    assert (aside(place.root) / "iter_0000100").readlink() == elsewhere
    place.done(place.undo_planned())
    assert names(place.root) == before


def test_copies_of_events_go_with_the_checkpoint_they_belong_to(place: Place) -> None:
    for rollout in (39, 40, 59):
        events = place.root / f"iter_{rollout:07d}" / "debug_events"
        events.mkdir(parents=True)
        (events / "main.jsonl").write_text("{}")
    before = names(place.root)
    place.done(place.planned(40))
    assert (place.root / "iter_0000039/debug_events").is_dir()
    assert not (place.root / "iter_0000040/debug_events").exists()
    assert (place.root / "iter_0000040/meta.json").is_file()
    assert (aside(place.root) / "iter_0000040/debug_events/main.jsonl").is_file()
    assert (aside(place.root) / "iter_0000059/debug_events").is_dir()
    place.done(place.undo_planned())
    assert names(place.root) == before


class TestCritic:
    """Megatron's PPO keeps a second save folder beside the first."""

    @pytest.fixture
    def critic(self, tmp_path: Path) -> Place:
        here = made(tmp_path)
        root = tmp_path / "ckpt_critic"
        root.mkdir()
        for iteration in (19, 39):
            save(here.root, iteration, Layout.MEGATRON)
            checkpoint(root, iteration, Layout.MEGATRON)
        (root / TRACKER).write_text("39")
        return here

    def test_it_goes_along(self, critic: Place, tmp_path: Path) -> None:
        before = names(tmp_path / "ckpt_critic")
        plan = critic.planned(19)
        assert [type(step) for step in plan.steps] == [WriteTracker] * 2 + [MoveAside] * 2
        critic.done(plan)
        assert critic.tracker == (tmp_path / "ckpt_critic" / TRACKER).read_text() == "19"
        assert (aside(tmp_path / "ckpt_critic") / "iter_0000039").is_dir()
        assert not (critic.root / "rollout/global_dataset_state_dict_39.pt").exists()
        critic.done(critic.undo_planned())
        assert names(tmp_path / "ckpt_critic") == before

    def test_it_is_said_when_it_has_no_such_checkpoint(self, critic: Place, tmp_path: Path) -> None:
        (tmp_path / "ckpt_critic/iter_0000019").rename(tmp_path / "gone")
        rows = [row.text for row in critic.planned(19).rows if row.label == "But"]
        assert any("critic has no checkpoint 19" in text for text in rows)

    def test_a_broken_one_is_refused(self, critic: Place, tmp_path: Path) -> None:
        (tmp_path / "ckpt_critic/iter_0000019/metadata.json").unlink()
        assert "critic's checkpoint 19 is partial" in critic.refused(19).reason


class TestRefusals:
    """Each is a sentence, and changes nothing."""

    @pytest.fixture(autouse=True)
    def _unchanged(self, place: Place) -> Iterator[None]:
        before = names(place.root)
        yield
        assert not list(place.root.glob("quarantine-*"))
        assert before.keys() - names(place.root).keys() == set()

    def test_while_it_runs(self, place: Place) -> None:
        alive = situation(place.root, place.state, target=SOMETHING)
        refusal = plan_rollback(alive, 40)
        assert isinstance(refusal, Refusal)
        assert "runs" in refusal.reason
        assert isinstance(plan_rollback(alive, 40, after_stop=True), ActionPlan)
        undo = plan_undo(alive)
        assert isinstance(undo, Refusal)
        assert "runs" in undo.reason

    def test_no_such_checkpoint(self, place: Place) -> None:
        refusal = place.refused(50)
        assert "no checkpoint 50" in refusal.reason
        assert refusal.remedy == "there is: 80, 60, 40, 20"

    @pytest.mark.parametrize("soundness", [Soundness.DAMAGED, Soundness.NOT_FINITE])
    def test_one_that_a_verify_spoke_against(self, place: Place, soundness: Soundness) -> None:
        seen = situation(place.root, place.state)
        tree = seen.snapshot.checkpoints
        assert isinstance(tree, Known)
        verified = Verification(soundness=soundness, at=0.0, faults=("optimizer: bad sum",))

        def checked(each: Checkpoint) -> Checkpoint:
            return replace(each, verification=verified if each.iteration == 40 else None)

        changed = replace(tree.value, checkpoints=tuple(map(checked, tree.value.checkpoints)))
        seen = replace(seen, snapshot=replace(seen.snapshot, checkpoints=known(changed, 0.0)))
        refusal = plan_rollback(seen, 40)
        assert isinstance(refusal, Refusal)
        assert f"40 is {soundness.value}: optimizer: bad sum" in refusal.reason
        assert isinstance(plan_rollback(seen, 40, force=True), ActionPlan)

    def test_adapters_have_no_tracker(self, place: Place) -> None:
        adapter = place.root / "iter_0000100/adapter"
        adapter.mkdir(parents=True)
        for name in ("adapter_megatron_rank0.pt", "training_state_rank0.pt"):
            (adapter / name).write_text("x")
        refusal = place.refused(100)
        assert "no tracker" in refusal.reason
        assert "--lora-adapter-path" in refusal.remedy

    def test_a_tracker_that_is_a_link(self, place: Place, tmp_path: Path) -> None:
        (place.root / TRACKER).rename(tmp_path / "tracker")
        (place.root / TRACKER).symlink_to(tmp_path / "tracker")
        assert "is a link" in place.refused(40).reason

    def test_a_save_folder_that_is_gone(self, place: Place, tmp_path: Path) -> None:
        refusal = plan_rollback(situation(tmp_path / "nowhere", place.state), 40)
        assert isinstance(refusal, Refusal)
        assert "nothing saved yet" in refusal.reason

    def test_nothing_to_undo(self, place: Place) -> None:
        assert "left to undo" in place.undo_refused().reason

    @needs_root
    def test_what_belongs_to_another_user(self) -> None:
        with new_place() as here:
            save(here.root, 20)
            save(here.root, 40)
            for folder in (here.root.parent, here.root, here.root / "iter_0000020"):
                folder.chmod(0o755)
            told = as_nobody(lambda: here.refused(20).reason)
        assert told == f"{here.root} may not be changed"

    @needs_root
    @pytest.mark.parametrize(
        ("mount", "reason"),
        [
            ("mount --bind {root}/iter_0000020 {root}/iter_0000060", "is a mount point"),
            ("mount --bind -o ro {root} {root}", "mounted read-only"),
        ],
    )
    def test_mounts(self, place: Place, mount: str, reason: str) -> None:
        command = mount.format(root=place.root)
        told = subprocess.run(
            ["unshare", "--mount", "sh", "-ec", f"{command}; exec {sys.executable} -"],
            input=_PLAN_IT.format(root=str(place.root), state=str(place.state)),
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        )
        assert reason in told.stdout, told


_PLAN_IT = """
from pathlib import Path
from carried_plans import situation
from tui.actions.rollback_plan import plan_rollback
print(plan_rollback(situation(Path({root!r}), Path({state!r})), 40))
"""


def test_one_that_is_not_whole_takes_force(place: Place) -> None:
    (place.root / "iter_0000040/rng.pt").unlink()
    assert "40 is partial" in place.refused(40).reason
    forced = place.planned(40, force=True)
    assert any("40 is partial" in row.text for row in forced.rows)


class TestWhatHappensMeanwhile:
    """Between plan and act, between roll back and undo."""

    def test_a_tracker_that_changed_since_the_plan_is_left(self, place: Place) -> None:
        plan = place.planned(40)
        save(place.root, 100)
        record = place.do(plan)
        assert record.state is ActionState.FAILED
        assert "the tracker says 100 now, not 60" in record.line
        assert place.tracker == "100"
        assert not list(place.root.glob("quarantine-*"))

    def test_a_checkpoint_that_vanished_is_not_named(self, place: Place, tmp_path: Path) -> None:
        plan = place.planned(40)
        (place.root / "iter_0000040").rename(tmp_path / "gone")
        assert "not there any more" in place.do(plan).line
        assert place.tracker == "60"

    def test_a_folder_of_the_new_name_is_not_written_into(self, place: Place) -> None:
        plan = place.planned(40)
        (move,) = (step for step in plan.steps if isinstance(step, MoveAside))
        (place.root / move.quarantine).mkdir()
        assert "is there already" in place.do(plan).line
        assert (place.root / "iter_0000060").is_dir()
        assert place.tracker == "40"
        place.done(place.undo_planned())
        assert place.tracker == "60"

    def test_an_undo_does_not_overwrite(self, place: Place) -> None:
        place.done(place.planned(40))
        checkpoint(place.root, 60, stop_after=3)
        assert "iter_0000060 is there again" in place.undo_refused().reason

    def test_an_undo_after_further_saves_is_refused(self, place: Place) -> None:
        place.done(place.planned(40))
        save(place.root, 45)
        refusal = place.undo_refused()
        assert "says 45 now, where the roll back wrote 40" in refusal.reason

    def test_an_undo_of_what_a_person_removed_is_refused(
        self, place: Place, tmp_path: Path
    ) -> None:
        place.done(place.planned(40))
        (aside(place.root) / "iter_0000060").rename(tmp_path / "gone")
        assert "iter_0000060 is neither in " in place.undo_refused().reason

    def test_an_undo_that_meets_a_new_folder_leaves_both(self, place: Place) -> None:
        place.done(place.planned(40))
        plan = place.undo_planned()
        checkpoint(place.root, 60, stop_after=3)
        record = place.do(plan)
        assert record.state is ActionState.FAILED
        assert "is there already" in record.line
        assert (aside(place.root) / "iter_0000060/meta.json").is_file()
        assert not (place.root / "iter_0000060/meta.json").exists()
        assert place.tracker == "40"

    def test_the_folder_made_for_it_stays_if_it_holds_something_else(self, place: Place) -> None:
        place.done(place.planned(40))
        (aside(place.root) / "notes.txt").write_text("why")
        place.done(place.undo_planned())
        assert [path.name for path in aside(place.root).iterdir()] == ["notes.txt"]

    @needs_root
    def test_the_run_may_write_the_new_tracker(self, place: Place) -> None:
        tracker = place.root / TRACKER
        os.chown(place.root, 1234, 1235)
        os.chown(tracker, 1234, 1235)
        tracker.chmod(0o664)
        place.done(place.planned(40))
        status = tracker.stat()
        assert (status.st_uid, status.st_gid, status.st_mode & 0o777) == (1234, 1235, 0o664)
        assert aside(place.root).stat().st_uid == 1234


# Killed at any moment


def check_whole(place: Place, before: dict[str, int]) -> None:
    """The tracker names a checkpoint that is there; everything is there once, as it was."""
    folder = tracked_name(place.tracker)
    assert folder is not None
    assert (place.root / folder / "meta.json").is_file()
    was = {inode: path for path, inode in before.items()}
    for path, inode in names(place.root).items():
        if inode in was:
            inside = path.partition("/")[2] if path.startswith("quarantine-") else path
            assert was.pop(inode) in (TRACKER, inside)
    assert not was


def finished_after(place: Place, plan: ActionPlan, at: int, before: dict[str, int]) -> bool:
    """Kill who carries it out at that point, look, and carry it on; whether it came that far."""
    was_killed = killed(at, lambda: place.do(plan))
    check_whole(place, before)
    place.finished(plan)
    return was_killed


@pytest.mark.parametrize("of_undo", [False, True])
def test_killed_before_every_change_it_ends_the_same(of_undo: bool) -> None:
    for at in count(1):
        with new_place() as place:
            for iteration in (20, 40, 60):
                save(place.root, iteration)
            before = names(place.root)
            plan = place.planned(20)
            if of_undo:
                place.done(plan)
                plan = place.undo_planned()
            was_killed = finished_after(place, plan, at, before)
            if of_undo:
                assert (names(place.root), place.tracker) == (before, "60")
            else:
                assert place.tracker == "20"
                assert len(list(aside(place.root).iterdir())) == 3
            if not was_killed:
                break
    assert at > 12, "the points of the kills are not seen any more"


@st.composite
def saves(draw: st.DrawFn) -> tuple[Layout, list[int], int]:
    layout = draw(st.sampled_from([Layout.FSDP, Layout.MEGATRON]))
    iterations = draw(st.lists(st.integers(1, 9), min_size=2, max_size=4, unique=True))
    chosen = draw(st.sampled_from(sorted(iterations)[:-1]))
    return layout, sorted(iterations), chosen


Kills = list[tuple[int, bool]]
"""Where, and whether that counts lines of the journal."""
some_kills = st.lists(st.tuples(st.integers(1, 24), st.booleans()), min_size=1, max_size=3)


def killed_at_each(place: Place, plan: ActionPlan, kills: Kills) -> None:
    """Carry it out by one process after another, each killed where it says."""
    for at, in_a_line in kills:
        if not killed(at, lambda: place.finished(plan), in_a_line=in_a_line):
            return
    place.finished(plan)


@settings(max_examples=25, deadline=None)
@given(saved=saves(), kills=some_kills, undo_kills=some_kills)
def test_killed_again_and_again_roll_back_and_undo_restore_the_tree(
    saved: tuple[Layout, list[int], int], kills: Kills, undo_kills: Kills
) -> None:
    layout, iterations, chosen = saved
    with new_place() as place:
        for iteration in iterations:
            save(place.root, iteration, layout)
        position(place.root, 99)
        before = names(place.root)
        killed_at_each(place, place.planned(chosen), kills)
        left = {path.name for path in place.root.glob("iter_*")}
        assert left == {f"iter_{each:07d}" for each in iterations if each <= chosen}
        assert place.tracker == str(chosen)
        killed_at_each(place, place.undo_planned(), undo_kills)
        assert names(place.root) == before
        assert place.tracker == str(iterations[-1])
