"""Indexes of a save folder on a real disk: read once, bounded, and read again when they change."""

from __future__ import annotations

import json
import os
import shutil
import time
from pathlib import Path

import pytest
from saved_index import index_of_one, index_of_shards

from tui.checkpoints import dcp, files
from tui.checkpoints.index import DcpIndex
from tui.model.checkpoint import Checkpoint, CheckpointState
from tui.probes import index_reader
from tui.probes.save_folder import SaveFolder

PARTS = ("model", "optimizer", "lr_scheduler")
YESTERDAY = time.time() - 86400.0


def save(root: Path, iteration: int, *, ranks: int = 1) -> Path:
    """A whole FSDP checkpoint: each shard has ten bytes and the index says so."""
    folder = root / f"iter_{iteration:07d}"
    shards = {f"__{rank}_0.distcp": 10 for rank in range(ranks)}
    for part in PARTS:
        (folder / part).mkdir(parents=True)
        for shard in shards:
            (folder / part / shard).write_bytes(b"x" * 10)
        (folder / part / ".metadata").write_bytes(index_of_shards(shards))
    (folder / "rng.pt").write_bytes(b"x")
    meta = {"rollout_id": iteration - 1, "next_rollout_id": iteration, "world_size": ranks}
    (folder / "meta.json").write_text(json.dumps(meta))
    (root / "rollout").mkdir(exist_ok=True)
    (root / "rollout" / f"global_dataset_state_dict_{iteration - 1}.pt").write_bytes(b"x")
    (root / "latest_checkpointed_iteration.txt").write_text(str(iteration))
    age(folder)
    return folder


def age(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.utime(path, (YESTERDAY, YESTERDAY))


def overwrite(path: Path, content: bytes) -> None:
    """Change a file as a fault of the disk does: its time tells nothing."""
    times = path.stat()
    path.write_bytes(content)
    os.utime(path, ns=(times.st_atime_ns, times.st_mtime_ns))


class Watch:
    """One save folder, scanned whenever asked, and the indexes that were read meanwhile."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        status = root.stat()
        self.root = root
        self.folder = SaveFolder((str(root), status.st_dev, status.st_ino))
        self.read: list[int] = []
        real = dcp.read_index

        def counted(raw: bytes) -> DcpIndex:
            self.read.append(len(raw))
            return real(raw)

        monkeypatch.setattr(index_reader, "read_index", counted)

    def scan(self) -> tuple[Checkpoint, ...]:
        self.read.clear()
        return self.folder.scan(self.root.stat(), time.time()).checkpoints

    def newest(self) -> Checkpoint:
        return self.scan()[0]


@pytest.fixture
def watch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Watch:
    save(tmp_path, 2, ranks=2)
    save(tmp_path, 4, ranks=2)
    return Watch(tmp_path, monkeypatch)


def test_the_captured_folder_has_its_parameters_counted(
    tmp_path: Path, data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / "run-a"
    shutil.copytree(data / "captures" / "ckpt-run-a", root)
    for one in Watch(root, monkeypatch).scan():
        assert (one.state, one.reason) == (CheckpointState.WHOLE, "")
        assert one.parameter_count == 139_648


@pytest.mark.parametrize("core", ["core-0.15", "core-0.16"])
def test_what_megatron_saved(
    tmp_path: Path, data: Path, core: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = tmp_path / core
    shutil.copytree(data / "megatron" / core, root)
    found = Watch(root, monkeypatch).newest()
    assert found.state is CheckpointState.WHOLE
    assert found.parameter_count == 8 * 6 + 4 * 12 + 6
    shard = root / "iter_0000019" / "__1_1.distcp"
    overwrite(shard, shard.read_bytes()[:4000])
    found = Watch(root, monkeypatch).newest()
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == "__1_1.distcp is cut short: 4,000 of 4,415 bytes"


def test_each_index_is_read_once(watch: Watch) -> None:
    assert all(one.state is CheckpointState.WHOLE for one in watch.scan())
    assert len(watch.read) == 6
    for _ in range(5):
        assert [one.parameter_count for one in watch.scan()] == [12, 12]
        assert watch.read == []


@pytest.mark.parametrize("part", PARTS)
def test_damage_that_size_and_presence_tell(watch: Watch, part: str) -> None:
    folder = watch.root / "iter_0000004" / part
    watch.scan()
    shard = folder / "__1_0.distcp"
    overwrite(shard, b"x" * 9)
    found = watch.newest()
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == f"{part}/__1_0.distcp is cut short: 9 of 10 bytes"
    overwrite(shard, b"y" * 11)
    assert "has 11 bytes" in watch.newest().reason
    shard.rename(watch.root / "aside")
    found = watch.newest()
    assert (found.state, found.missing) == (CheckpointState.PARTIAL, (f"{part}/__1_0.distcp",))
    (watch.root / "aside").rename(shard)
    overwrite(shard, b"z" * 10)
    assert watch.newest().state is CheckpointState.WHOLE
    assert watch.read == []


def test_a_changed_index_is_read_again(watch: Watch) -> None:
    watch.scan()
    path = watch.root / "iter_0000004" / "model" / ".metadata"
    sound = path.read_bytes()
    overwrite(path, sound[:-1])
    found = watch.newest()
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == "model/.metadata is not an index: it ends too early"
    assert watch.read == [len(sound) - 1]
    overwrite(path, sound)
    assert watch.newest().state is CheckpointState.WHOLE


def test_a_save_over_an_older_one_of_other_ranks(tmp_path: Path) -> None:
    folder = save(tmp_path, 4, ranks=3)
    meta = json.loads((folder / "meta.json").read_text())
    (folder / "meta.json").write_text(json.dumps({**meta, "world_size": 2}))
    age(folder)
    with pytest.MonkeyPatch.context() as monkeypatch:
        found = Watch(tmp_path, monkeypatch).newest()
    assert found.state is CheckpointState.DAMAGED
    assert "meta.json counts 2 ranks" in found.reason


def test_a_scan_reads_a_few_and_the_next_ones_the_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for iteration in range(1, 7):
        save(tmp_path, iteration)
    monkeypatch.setattr(index_reader, "SCAN_BYTES", 4 * len(index_of_one(10)))
    watch = Watch(tmp_path, monkeypatch)
    counted = []
    for _ in range(6):
        counted.append([one.iteration for one in watch.scan() if one.parameter_count is not None])
        assert 0 < len(watch.read) <= 4 or len(counted[-1]) == 6
    assert counted[0] == [6, 5], "the newest first"
    assert counted[-1] == [6, 5, 4, 3, 2, 1]
    assert watch.scan()
    assert watch.read == []


def test_an_index_too_large_for_a_scan_is_left_alone(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index_reader, "INDEX_BYTES", 20)
    found = watch.newest()
    assert (found.state, found.parameter_count) == (CheckpointState.WHOLE, None)
    assert found.reason.startswith("model/.metadata (0 MiB) is too large to be read in passing")
    assert watch.read == []


def test_an_index_that_cannot_be_read(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    path = watch.root / "iter_0000004" / "model" / ".metadata"
    real = files.read_start

    def refusing(asked: Path, limit_bytes: int) -> tuple[bytes, os.stat_result]:
        if asked == path:
            raise error
        return real(asked, limit_bytes)

    monkeypatch.setattr(index_reader, "read_start", refusing)
    error: OSError = PermissionError(13, "Permission denied")
    found = watch.newest()
    assert (found.state, found.reason) == (CheckpointState.WHOLE, "model/.metadata may not be read")
    error = OSError(5, "Input/output error")
    found = Watch(watch.root, monkeypatch).newest()
    assert found.state is CheckpointState.DAMAGED
    assert found.reason == "model/.metadata is not readable: Input/output error"
    error = FileNotFoundError(2, "No such file or directory")
    found = Watch(watch.root, monkeypatch).newest()
    assert (found.state, found.parameter_count) == (CheckpointState.WHOLE, None)


def test_an_index_that_was_replaced_since_it_was_listed_is_not_believed(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = watch.root / "iter_0000004" / "model" / ".metadata"
    real = files.read_start

    def later(asked: Path, limit_bytes: int) -> tuple[bytes, os.stat_result]:
        if asked == path:
            overwrite(path, b"being written")
        return real(asked, limit_bytes)

    monkeypatch.setattr(index_reader, "read_start", later)
    assert watch.newest().state is CheckpointState.WHOLE
    assert watch.newest().reason == "model/.metadata is not an index: it is no pickle"


def test_shards_may_be_links(watch: Watch) -> None:
    shard = watch.root / "iter_0000004" / "model" / "__0_0.distcp"
    elsewhere = watch.root / "blob"
    shard.rename(elsewhere)
    shard.symlink_to(elsewhere)
    assert watch.newest().state is CheckpointState.WHOLE


def test_an_unfinished_save_has_no_index_read(tmp_path: Path) -> None:
    folder = save(tmp_path, 4)
    (folder / "meta.json").unlink()
    with pytest.MonkeyPatch.context() as monkeypatch:
        watch = Watch(tmp_path, monkeypatch)
        assert watch.newest().state is CheckpointState.PARTIAL
        assert watch.read == []


def test_a_checkpoint_that_goes_is_forgotten(watch: Watch) -> None:
    watch.scan()
    shutil.rmtree(watch.root / "iter_0000002")
    assert [one.iteration for one in watch.scan()] == [4]
    save(watch.root, 2, ranks=1)
    assert [one.parameter_count for one in watch.scan()] == [12, 6]
