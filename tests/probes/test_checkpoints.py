"""The save folder on a real disk: what is read, what is not read again, what goes wrong."""

from __future__ import annotations

import json
import os
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from saved_index import index_of_one

from tui.model.checkpoint import Checkpoint, CheckpointState, CheckpointTree, Layout
from tui.model.events import CheckpointsScanned
from tui.model.launch import Attachment, Container, Found, LaunchArgs
from tui.model.progress import Story
from tui.model.reading import Absence, Known, Unknown, known, value_or
from tui.model.snapshot import Snapshot
from tui.probes.checkpoints import CheckpointsProbe

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
MEGATRON_ORDER = ("common.pt", "__0_0.distcp", ".metadata", "metadata.json")
YESTERDAY = time.time() - 86400.0


def save(root: Path, iteration: int, paths: tuple[str, ...] = FSDP_ORDER) -> Path:
    """A save that came as far as `paths`, yesterday."""
    folder = root / f"iter_{iteration:07d}"
    for place, path in enumerate(paths):
        file = folder / path
        file.parent.mkdir(parents=True, exist_ok=True)
        meta = {"rollout_id": iteration - 1, "next_rollout_id": iteration, "world_size": 1}
        file.write_bytes(json.dumps(meta).encode() if path == "meta.json" else content(path))
        os.utime(file, (YESTERDAY + place, YESTERDAY + place))
    age(folder)
    return folder


def content(path: str) -> bytes:
    """What a save writes at a path: shards of ten bytes, and indexes that say so."""
    return index_of_one(10) if path.endswith(".metadata") else b"x" * 10


def age(folder: Path) -> None:
    """Make the times of a folder and those below it old enough to be trusted."""
    for one in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        os.utime(one, (YESTERDAY, YESTERDAY))


def position(root: Path, rollout: int) -> Path:
    path = root / "rollout" / f"global_dataset_state_dict_{rollout}.pt"
    path.parent.mkdir(exist_ok=True)
    path.write_text("x")
    return path


def attached(root: Path) -> Snapshot:
    return Snapshot(
        attachment=Attachment(checkpoints=Found(value=str(root), source="--checkpoints"))
    )


class Watch:
    """A probe on one folder, read whenever asked."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.probe = CheckpointsProbe()

    def reading(self, now: float | None = None) -> Known[CheckpointTree] | Unknown:
        (event,) = self.probe.read(now or time.time(), attached(self.root))
        assert isinstance(event, CheckpointsScanned)
        return event.tree

    def tree(self, now: float | None = None) -> CheckpointTree:
        reading = self.reading(now)
        assert isinstance(reading, Known)
        return reading.value

    def newest(self, now: float | None = None) -> Checkpoint:
        return self.tree(now).checkpoints[0]

    def states(self) -> dict[int, CheckpointState]:
        return {one.iteration: one.state for one in self.tree().checkpoints}


def test_the_captured_folder(tmp_path: Path, data: Path) -> None:
    root = tmp_path / "run-b"
    shutil.copytree(data / "captures" / "ckpt-run-a", root, copy_function=shutil.copyfile)
    tree = Watch(root).tree()
    assert value_or(tree.tracker, None) == "4"
    assert tree.note == ""
    assert [one.iteration for one in tree.checkpoints] == [4, 2]
    for one in tree.checkpoints:
        assert (one.layout, one.state, one.reason) == (Layout.FSDP, CheckpointState.WHOLE, "")
        assert (one.after_rollout, one.resumes_at) == (one.iteration - 1, one.iteration)
        assert one.tracked == (one.iteration == 4)
        assert one.has_data_state
        assert one.size_bytes == sum(
            path.stat().st_size for path in Path(one.path).rglob("*") if path.is_file()
        )
    assert tree.checkpoints[0].taken_at == 1795954259.0789516


@pytest.mark.parametrize("backwards", [False, True])
def test_a_fresh_clone_of_the_captured_folder_is_whole(
    tmp_path: Path, data: Path, backwards: bool
) -> None:
    root = tmp_path / "clone"
    shutil.copytree(data / "captures" / "ckpt-run-a", root)
    cloned_at = time.time() - 20.0
    files = sorted((path for path in root.rglob("*") if path.is_file()), reverse=backwards)
    for place, path in enumerate(files):
        os.utime(path, (cloned_at + place, cloned_at + place))
    assert Watch(root).states() == {4: CheckpointState.WHOLE, 2: CheckpointState.WHOLE}


def test_a_save_is_followed_from_its_first_folder_to_the_tracker(tmp_path: Path) -> None:
    save(tmp_path, 2)
    position(tmp_path, 1)
    tracker = tmp_path / "latest_checkpointed_iteration.txt"
    tracker.write_text("2")
    watch = Watch(tmp_path)
    assert watch.newest().iteration == 2
    reasons = []
    for path in FSDP_ORDER:
        target = tmp_path / "iter_0000004" / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(b"{}" if path == "meta.json" else content(path))
        newest = watch.newest()
        reasons.append(newest.reason)
        is_last = path == "meta.json"
        assert newest.state is (CheckpointState.WHOLE if is_last else CheckpointState.SAVING)
    assert len(set(reasons)) == len(reasons)
    assert not watch.newest().tracked
    tracker.write_text("4")
    assert watch.newest().tracked
    assert not watch.newest().has_data_state
    written = position(tmp_path, 3)
    assert watch.newest().has_data_state
    written.unlink()
    assert not watch.newest().has_data_state


def test_an_empty_position_file_is_not_yet_one(tmp_path: Path) -> None:
    save(tmp_path, 2)
    path = position(tmp_path, 1)
    path.write_text("")
    watch = Watch(tmp_path)
    assert not watch.newest().has_data_state
    path.write_text("x")
    assert watch.newest().has_data_state


def test_complete_checkpoints_without_a_tracker(tmp_path: Path) -> None:
    for iteration in (20, 40, 60):
        save(tmp_path, iteration)
    tree = Watch(tmp_path).tree()
    assert isinstance(tree.tracker, Unknown)
    assert tree.tracker.why is Absence.MISSING
    assert [one.iteration for one in tree.checkpoints] == [60, 40, 20]
    assert all(one.state is CheckpointState.WHOLE for one in tree.checkpoints)
    assert not any(one.tracked for one in tree.checkpoints)


def test_the_shell_of_a_crashed_writer(tmp_path: Path) -> None:
    save(tmp_path, 4, ("__0_0.distcp",))
    newest = Watch(tmp_path).newest()
    assert (newest.layout, newest.state) == (Layout.MEGATRON, CheckpointState.PARTIAL)
    assert ".metadata" in newest.missing


def test_an_interrupted_save_newer_than_the_tracker(tmp_path: Path) -> None:
    save(tmp_path, 40)
    save(tmp_path, 60, FSDP_ORDER[:3])
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("40")
    partial, whole = Watch(tmp_path).tree().checkpoints
    assert (partial.iteration, partial.state) == (60, CheckpointState.PARTIAL)
    assert "optimizer begun" in partial.reason
    assert (whole.iteration, whole.state, whole.tracked) == (40, CheckpointState.WHOLE, True)


def test_megatron_and_release(tmp_path: Path) -> None:
    save(tmp_path, 19, MEGATRON_ORDER)
    (tmp_path / "iter_0000019").rename(tmp_path / "release")
    save(tmp_path, 19, MEGATRON_ORDER)
    (tmp_path / "latest_checkpointed_iteration.txt").write_text("release\n")
    newest, base = Watch(tmp_path).tree().checkpoints
    assert (newest.iteration, newest.resumes_at, newest.tracked) == (19, 20, False)
    assert (base.iteration, base.tracked) == (0, True)
    assert base.path.endswith("/release")


@pytest.mark.parametrize("text", ["", "4\n", "release", "vier", "\x00", "-1", "9" * 4096])
def test_a_tracker_is_kept_as_it_is(tmp_path: Path, text: str) -> None:
    (tmp_path / "latest_checkpointed_iteration.txt").write_text(text)
    assert value_or(Watch(tmp_path).tree().tracker, None) == text


def test_a_tracker_of_any_size_or_kind(tmp_path: Path) -> None:
    tracker = tmp_path / "latest_checkpointed_iteration.txt"
    save(tmp_path, 4)
    watch = Watch(tmp_path)
    with tracker.open("wb") as file:
        file.truncate(2**34)
    reading = watch.tree().tracker
    assert isinstance(reading, Unknown)
    assert "too long" in reading.reason
    tracker.unlink()
    for kind in ("folder", "pipe"):
        tracker.mkdir() if kind == "folder" else os.mkfifo(tracker)
        reading = watch.tree().tracker
        assert isinstance(reading, Unknown)
        assert reading.why is Absence.ERROR
        shutil.rmtree(tracker) if tracker.is_dir() else tracker.unlink()
    tracker.write_bytes(b"\xff\xfe4")
    assert value_or(watch.tree().tracker, None) == "\ufffd\ufffd4"


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path: Path) -> None:
    folder = save(tmp_path, 4)
    tracker = tmp_path / "latest_checkpointed_iteration.txt"
    tracker.write_text("4")
    tracker.chmod(0)
    folder.chmod(0)
    tree = Watch(tmp_path).tree()
    folder.chmod(0o755)
    assert isinstance(tree.tracker, Unknown)
    assert tree.tracker.why is Absence.NO_PERMISSION
    assert tree.checkpoints[0].reason == "cannot be read: Permission denied"


def test_errors_of_the_system_become_readings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = save(tmp_path, 4)
    refused = {str(folder), str(tmp_path / "latest_checkpointed_iteration.txt")}
    real_open, real_scandir = os.open, os.scandir

    def refusing_open(path: str | Path, flags: int) -> int:
        if str(path) in refused:
            raise PermissionError(13, "Permission denied", str(path))
        return real_open(path, flags)

    def refusing_scandir(path: str | Path) -> object:
        if str(path) in refused:
            raise PermissionError(13, "Permission denied", str(path))
        return real_scandir(path)

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refusing_open)
        patch.setattr(os, "scandir", refusing_scandir)
        watch = Watch(tmp_path)
        tree = watch.tree()
        assert isinstance(tree.tracker, Unknown)
        assert tree.tracker.why is Absence.NO_PERMISSION
        assert tree.checkpoints[0].state is CheckpointState.PARTIAL
        assert tree.checkpoints[0].reason == "cannot be read: Permission denied"
        refused.add(str(tmp_path))
        reading = Watch(tmp_path).reading()
        assert isinstance(reading, Unknown)
        assert reading.why is Absence.NO_PERMISSION
    assert watch.newest().state is CheckpointState.WHOLE


def test_wrong_roots(tmp_path: Path) -> None:
    save(tmp_path, 4)
    reading = Watch(tmp_path / "gone").reading(now=7.0)
    assert isinstance(reading, Unknown)
    assert (reading.why, reading.at) == (Absence.MISSING, 7.0)
    assert reading.reason.startswith("nothing saved yet")
    reading = Watch(tmp_path / "no" / "such" / "folder").reading()
    assert isinstance(reading, Unknown)
    assert "--checkpoints" in reading.reason
    reading = Watch(tmp_path / "iter_0000004" / "rng.pt").reading()
    assert isinstance(reading, Unknown)
    assert reading.reason.endswith("is not a folder")
    for below in ("iter_0000004", "iter_0000004/model"):
        tree = Watch(tmp_path / below).tree()
        assert tree.checkpoints == ()
        assert tree.note.endswith(f"the save folder is {tmp_path}")
    (tmp_path / "empty").mkdir()
    assert Watch(tmp_path / "empty").tree().note.startswith("no checkpoint here")


def test_the_root_may_be_a_link_but_what_is_in_it_may_not(tmp_path: Path) -> None:
    root = tmp_path / "real"
    save(root, 4)
    (root / "iter_0000006").symlink_to(root / "iter_0000004")
    link = tmp_path / "link"
    link.symlink_to(root)
    tree = Watch(link).tree()
    assert [one.iteration for one in tree.checkpoints] == [4]
    assert tree.note.startswith("iter_0000006 is not a folder")


def test_where_the_folder_is_known_from() -> None:
    probe = CheckpointsProbe()

    def reading(seen: Snapshot) -> Unknown:
        (event,) = probe.read(1.0, seen)
        assert isinstance(event, CheckpointsScanned)
        assert isinstance(event.tree, Unknown)
        return event.tree

    def told(save: str | None) -> Snapshot:
        return Snapshot(story=Story(launch=LaunchArgs(argv=("train.py",), save=save)))

    assert reading(Snapshot()).reason.startswith("no folder is known")
    assert reading(told(None)).reason.startswith("the run has no --save")
    assert reading(told("out/ckpt")).reason.startswith("--save out/ckpt is relative")
    assert reading(told("/nowhere/ckpt")).reason.startswith("/nowhere/ckpt is not there")
    seen = Snapshot(attachment=Attachment(launch=LaunchArgs(argv=("x",), save="/nowhere/2")))
    assert reading(seen).reason.startswith("/nowhere/2 is not there")


def test_a_root_that_changes_is_another_root(tmp_path: Path) -> None:
    root = tmp_path / "ckpt"
    save(root, 4)
    watch = Watch(root)
    assert watch.states() == {4: CheckpointState.WHOLE}
    shutil.rmtree(root)
    assert isinstance(watch.reading(), Unknown)
    save(root, 6, FSDP_ORDER[:2])
    assert watch.states() == {6: CheckpointState.PARTIAL}


def test_folders_come_and_go(tmp_path: Path) -> None:
    for iteration in (2, 4, 6, 8):
        save(tmp_path, iteration)
    age(tmp_path)
    watch = Watch(tmp_path)
    assert set(watch.states()) == {2, 4, 6, 8}
    (tmp_path / "iter_0000002").rename(tmp_path / "iter_0000002.aside")
    save(tmp_path, 10)
    assert set(watch.states()) == {4, 6, 8, 10}


def test_a_folder_that_vanishes_while_it_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    save(tmp_path, 2)
    doomed = save(tmp_path, 4)
    real_scandir = os.scandir

    def vanishing(path: str | Path) -> object:
        if str(path) == str(doomed):
            shutil.rmtree(doomed)
        elif str(path) == str(tmp_path / "iter_0000002" / "optimizer"):
            shutil.rmtree(path)
        return real_scandir(path)

    monkeypatch.setattr(os, "scandir", vanishing)
    (left,) = Watch(tmp_path).tree().checkpoints
    assert (left.iteration, left.state) == (2, CheckpointState.PARTIAL)
    assert "optimizer/.metadata" in left.missing


class Calls:
    """Keeps what the file system is asked: the call and the path."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.asked: list[tuple[str, str]] = []
        for name in ("scandir", "stat", "open", "listdir", "lstat"):
            self._keep(monkeypatch, name)

    def _keep(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        real = getattr(os, name)

        def kept(*args: object, **kwargs: object) -> object:
            self.asked.append((name, str(args[0])))
            return real(*args, **kwargs)

        monkeypatch.setattr(os, name, kept)

    def take(self) -> list[tuple[str, str]]:
        asked, self.asked = self.asked, []
        return asked


@pytest.fixture
def thousand(tmp_path: Path) -> Iterator[Path]:
    root = tmp_path / "thousand"
    for iteration in range(1, 1001):
        save(root, iteration, MEGATRON_ORDER)
        position(root, iteration)
    (root / "latest_checkpointed_iteration.txt").write_text("1000")
    age(root)
    yield root
    shutil.rmtree(root)


def test_what_has_not_changed_costs_nothing(
    thousand: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    few = tmp_path / "few"
    for iteration in range(1, 21):  # more than have their verify results looked up
        save(few, iteration, MEGATRON_ORDER)
        position(few, iteration)
    (few / "latest_checkpointed_iteration.txt").write_text("20")
    age(few)
    calls = Calls(monkeypatch)
    costs = []
    for root, total in ((few, 20), (thousand, 1000)):
        watch = Watch(root)
        assert len(watch.tree().checkpoints) == total
        assert Counter(name for name, _ in calls.take())["scandir"] >= total
        tree = watch.tree()
        assert len(tree.checkpoints) == total
        assert all(one.state is CheckpointState.WHOLE for one in tree.checkpoints)
        asked = calls.take()
        assert not {("scandir", str(root)), ("scandir", str(root / "rollout"))} & set(asked)
        costs.append(Counter(name for name, _ in asked))
    assert costs[0] == costs[1]
    assert costs[1]["scandir"] <= 3
    assert costs[1]["stat"] <= 8 + 12


def test_a_change_within_one_tick_of_the_clock_is_found(tmp_path: Path) -> None:
    for iteration in (1, 2, 3, 4):
        save(tmp_path, iteration)
    old = tmp_path / "iter_0000001"
    os.utime(old / "model")
    watch = Watch(tmp_path)
    watch.tree()
    for folder, change in (
        (old / "model", (old / "model" / ".metadata").unlink),
        (tmp_path, lambda: save(tmp_path, 5)),
    ):
        before = folder.stat().st_mtime_ns
        change()
        os.utime(folder, ns=(before, before))
    assert [watch.states() for _ in range(3)][-1] == {
        1: CheckpointState.PARTIAL,
        2: CheckpointState.WHOLE,
        3: CheckpointState.WHOLE,
        4: CheckpointState.WHOLE,
        5: CheckpointState.WHOLE,
    }


def test_the_tracker_moves_between_old_ones(tmp_path: Path) -> None:
    for iteration in range(1, 31):
        save(tmp_path, iteration)
    age(tmp_path)
    watch = Watch(tmp_path)
    for tracked in ("10", "20", "5"):
        (tmp_path / "latest_checkpointed_iteration.txt").write_text(tracked)
        assert [one.iteration for one in watch.tree().checkpoints if one.tracked] == [int(tracked)]


def test_an_old_one_that_changed_is_found_in_its_turn(tmp_path: Path) -> None:
    for iteration in range(1, 11):
        save(tmp_path, iteration)
    age(tmp_path)
    watch = Watch(tmp_path)
    watch.tree()
    (tmp_path / "iter_0000003" / "optimizer" / ".metadata").unlink()
    seen = [watch.states()[3] for _ in range(10)]
    assert CheckpointState.PARTIAL in seen
    assert watch.states()[3] is CheckpointState.PARTIAL


def test_what_the_next_save_overwrites_is_watched(tmp_path: Path) -> None:
    for iteration in range(1, 31):
        save(tmp_path, iteration)
    age(tmp_path)
    tracker = tmp_path / "latest_checkpointed_iteration.txt"
    tracker.write_text("10")
    watch = Watch(tmp_path)
    watch.tree()
    shard = tmp_path / "iter_0000011" / "model" / "__0_0.distcp"
    shard.write_text("new")
    assert watch.states()[11] is CheckpointState.SAVING
    os.utime(shard, (time.time() - 1000.0,) * 2)
    assert watch.states()[11] is CheckpointState.DAMAGED


def test_a_containers_save_path_is_looked_for_through_its_mounts(tmp_path: Path) -> None:
    save(tmp_path / "run-a", 4)
    container = Container(
        id="9f3c", name="run-a", image="miles", status="running", mounts=((str(tmp_path), "/ckpt"),)
    )
    story = Story(launch=LaunchArgs(argv=("train.py",), save="/ckpt/run-a"))
    seen = Snapshot(story=story, container=known(container, 1.0))
    (event,) = CheckpointsProbe().read(time.time(), seen)
    assert isinstance(event, CheckpointsScanned)
    assert isinstance(event.tree, Known)
    assert [one.iteration for one in event.tree.value.checkpoints] == [4]

    unmounted = replace(seen, container=known(replace(container, mounts=()), 1.0))
    (event,) = CheckpointsProbe().read(time.time(), unmounted)
    assert isinstance(event, CheckpointsScanned)
    assert isinstance(event.tree, Unknown)
    assert "vanishes with it" in event.tree.reason
