"""The disk of the save path."""

from __future__ import annotations

import errno
import os
import pathlib

import pytest

from tui.model.events import DiskRead
from tui.model.launch import Attachment, Found
from tui.model.memory import Disk
from tui.model.reading import Absence, Known, Reading, Unknown
from tui.model.snapshot import Snapshot
from tui.probes.memory import DiskProbe, mount_of, mounts, nearest_existing, os_fault

TABLE = """\
21 1 259:2 / / rw,relatime shared:1 - ext4 /dev/nvme0n1p2 rw,errors=remount-ro
30 21 0:26 / /run rw,nosuid,nodev shared:5 - tmpfs tmpfs rw,size=12760076k
40 21 259:5 / /data rw,relatime shared:9 - xfs /dev/nvme1n1 rw
41 21 259:5 /deep/runs /home/me/runs rw,relatime shared:9 - xfs /dev/nvme1n1 rw
42 21 0:51 / /mnt/my\\040disk ro,relatime - nfs4 host:/export\\040one rw,vers=4.2
43 21 0:52 / /mnt/a\\134b rw,relatime shared:1 master:2 propagate_from:3 - fuse.sshfs me@host: rw
44 21 8:1 / /ckpt rw,relatime - ext4 /dev/sda1 rw
45 44 8:2 / /ckpt/old rw,relatime - ext4 /dev/sda2 rw
46 44 8:3 / /ckpt rw,relatime - xfs /dev/sda3 rw
47 21 0:60 /@snap /btr rw,relatime - btrfs /dev/sdb rw
"""


@pytest.mark.parametrize(
    ("path", "device", "point", "filesystem"),
    [
        ("/srv/x", (259, 2), "/", "ext4"),
        ("/", (259, 2), "/", "ext4"),
        ("/data", (259, 5), "/data", "xfs"),
        ("/data/run-a/iter_0000002", (259, 5), "/data", "xfs"),
        ("/database", (259, 2), "/", "ext4"),
        ("/database", (0, 61), "/", "ext4"),
        pytest.param("/home/me/runs/a", (259, 5), "/home/me/runs", "xfs", id="bind mount"),
        pytest.param("/mnt/my disk/a", (0, 51), "/mnt/my disk", "nfs4", id="space"),
        pytest.param("/mnt/a\\b/c", (0, 52), "/mnt/a\\b", "fuse.sshfs", id="backslash"),
        pytest.param("/ckpt/a", (8, 3), "/ckpt", "xfs", id="mounted over"),
        pytest.param("/ckpt/old", (8, 3), "/ckpt", "xfs", id="deeper mount hidden"),
        pytest.param("/btr/sub", (0, 61), "/btr", "btrfs", id="device of a subvolume"),
    ],
)
def test_finds_the_mount(path: str, device: tuple[int, int], point: str, filesystem: str) -> None:
    mount = mount_of(pathlib.Path(path), os.makedev(*device), mounts(TABLE))
    assert (mount.point, mount.filesystem) == (point, filesystem)


def test_a_table_without_a_root_has_no_mount() -> None:
    assert mount_of(pathlib.Path("/x"), 0, ()).filesystem == "unknown"


def disk(path: pathlib.Path | str | None, mountinfo: str = "/proc/self/mountinfo") -> Reading[Disk]:
    found = None if path is None else Found(value=str(path), source="--checkpoints")
    probe = DiskProbe(mountinfo)
    (event,) = probe.read(3.0, Snapshot(attachment=Attachment(checkpoints=found)))
    probe.close()
    assert isinstance(event, DiskRead)
    return event.disk


def value(reading: Reading[Disk]) -> Disk:
    assert isinstance(reading, Known), reading
    assert reading.at == 3.0
    return reading.value


def test_reads_the_disk_of_a_folder(tmp_path: pathlib.Path) -> None:
    space = os.statvfs(tmp_path)
    read = value(disk(tmp_path))
    assert read.path == str(tmp_path)
    assert read.total_bytes == space.f_blocks * space.f_frsize
    assert 0 <= read.free_bytes <= read.total_bytes
    assert 0.0 <= read.inodes_free_ratio <= 1.0
    assert tmp_path.is_relative_to(read.mount)
    assert read.filesystem != "unknown"
    assert not read.read_only


def test_proc_is_a_mount_of_its_own() -> None:
    read = value(disk("/proc/self"))
    assert (read.mount, read.filesystem) == ("/proc", "proc")


def test_a_link_is_followed_to_the_mount_it_leads_to(tmp_path: pathlib.Path) -> None:
    link = tmp_path / "ckpt"
    link.symlink_to("/proc/sys/not/there/yet")
    read = value(disk(link))
    assert read.path == str(link)
    assert read.mount.startswith("/proc")


def test_a_folder_not_made_yet_has_the_disk_of_the_one_above(tmp_path: pathlib.Path) -> None:
    missing = tmp_path / "runs" / "a" / "checkpoints"
    assert nearest_existing(str(missing)) == tmp_path.resolve()
    assert value(disk(missing)).mount == value(disk(tmp_path)).mount


def test_a_file_in_the_way_counts_as_what_exists(tmp_path: pathlib.Path) -> None:
    (tmp_path / "file").write_text("")
    assert nearest_existing(str(tmp_path / "file" / "x")) == (tmp_path / "file").resolve()


def test_a_link_to_itself_is_an_error(tmp_path: pathlib.Path) -> None:
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    reading = disk(tmp_path / "loop")
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.ERROR


def test_no_path_is_known() -> None:
    reading = disk(None)
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.MISSING
    assert reading.reason.startswith("no folder is known")


def test_no_mount_table_is_missing(tmp_path: pathlib.Path) -> None:
    reading = disk(tmp_path, str(tmp_path / "mountinfo"))
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.MISSING


def statvfs_result(*, flags: int = 0, files: int = 1000) -> os.statvfs_result:
    return os.statvfs_result((4096, 512, 100, 50, 40, files, 300, 250, flags, 255))


@pytest.mark.parametrize(
    ("space", "inodes_free_ratio", "read_only"),
    [
        (statvfs_result(), 0.25, False),
        (statvfs_result(flags=os.ST_RDONLY), 0.25, True),
        pytest.param(statvfs_result(files=0), 1.0, False, id="no inodes to run out of"),
    ],
)
def test_reads_blocks_inodes_and_flags(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    space: os.statvfs_result,
    inodes_free_ratio: float,
    read_only: bool,
) -> None:
    monkeypatch.setattr(os, "statvfs", lambda _: space)
    read = value(disk(tmp_path))
    assert (read.total_bytes, read.free_bytes) == (100 * 512, 40 * 512)
    assert read.inodes_free_ratio == inodes_free_ratio
    assert read.read_only is read_only


def test_a_disk_out_of_reach_is_no_permission(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(path: os.PathLike[str]) -> os.statvfs_result:
        raise PermissionError(errno.EACCES, "Permission denied", os.fspath(path))

    monkeypatch.setattr(os, "statvfs", refused)
    reading = disk(tmp_path)
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.NO_PERMISSION
    assert reading.reason == f"{tmp_path.resolve()}: Permission denied"


def test_a_failed_call_without_a_path_says_what_failed() -> None:
    fault = os_fault(OSError(errno.EIO, "Input/output error"), 1.0)
    assert (fault.why, fault.reason) == (Absence.ERROR, "Input/output error")
