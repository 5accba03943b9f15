"""The way to the trigger, and who may remove it; containers have tests of their own."""

from __future__ import annotations

import os
import stat
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
import sightings

from tui.actions.errors import Refused
from tui.actions.rights import removal_fault
from tui.actions.signals import target_of
from tui.actions.trigger import Look, Trigger, trigger_of
from tui.model.target import ContainerTarget, ProcessTarget, RunTarget
from tui.runs.merge import FoundRun

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root")
CONTAINER = ContainerTarget(id=sightings.id_of("run-a"), name="run-a", started_at=1.0)


@pytest.fixture
def driver() -> Iterator[ProcessTarget]:
    with subprocess.Popen("cat", stdin=subprocess.PIPE) as process:
        target = target_of(process.pid)
        assert target is not None
        yield target
        process.kill()


def test_it_is_created_once_and_is_a_plain_file(tmp_path: Path) -> None:
    trigger = Trigger(path="/ckpt/save-now", here=str(tmp_path / "save-now"))
    assert trigger.look() is Look.ABSENT
    assert trigger.create()
    assert trigger.look() is Look.PENDING
    assert stat.S_ISREG((tmp_path / "save-now").lstat().st_mode)
    assert not trigger.create()


@pytest.mark.parametrize(
    ("make", "look"),
    [
        (Path.mkdir, Look.FOLDER),
        (lambda path: path.symlink_to("nowhere"), Look.DANGLING),
        (lambda path: path.symlink_to("/etc/passwd"), Look.PENDING),
        (lambda path: os.mkfifo(path), Look.PENDING),
        (lambda path: path.parent.rmdir(), Look.NO_FOLDER),
    ],
)
def test_what_may_be_there_instead(
    tmp_path: Path, make: Callable[[Path], object], look: Look
) -> None:
    path = tmp_path / "folder" / "save-now"
    path.parent.mkdir()
    make(path)
    trigger = Trigger(path=str(path), here=str(path))
    assert trigger.look() is look
    if look is Look.NO_FOLDER:
        with pytest.raises(FileNotFoundError):
            trigger.create()
    else:
        assert not trigger.create()
    assert trigger.look() is look


def test_nothing_is_asked_of_a_process_that_has_another_ones_pid(
    tmp_path: Path, driver: ProcessTarget
) -> None:
    earlier = replace(driver, start_ticks=driver.start_ticks - 1)
    path = tmp_path / "save-now"
    with pytest.raises(ProcessLookupError):
        Trigger(path=str(path), here=str(path), driver=earlier).create()
    assert not path.exists()


class TestWay:
    """From the path that the run was told to one that leads to the same file."""

    @pytest.fixture
    def folder(self, tmp_path: Path) -> Path:
        folder = tmp_path / "data"
        folder.mkdir()
        return folder

    def way(self, path: str, mounts: dict[str, str], driver: ProcessTarget | None) -> Trigger:
        found = sightings.container("run-a", mounts=tuple(mounts.items()))
        run = FoundRun(container=found, is_here=False)
        return trigger_of(path, run, RunTarget(container=CONTAINER, driver=driver))

    def test_a_run_here(self, folder: Path, driver: ProcessTarget) -> None:
        trigger = trigger_of(f"{folder}/save-now", FoundRun(), RunTarget(driver=driver))
        assert trigger.here == f"{folder}/save-now"

    def test_through_a_mount(self, folder: Path, driver: ProcessTarget) -> None:
        trigger = self.way(f"{folder}/save-now", {str(folder): str(folder)}, driver)
        assert trigger.here == f"{folder}/save-now"

    def test_a_driver_that_cannot_be_seen(self, folder: Path) -> None:
        """Whether it could remove the file cannot be told then; a command inside can."""
        trigger = self.way("/ckpt/save-now", {str(folder): "/ckpt"}, None)
        assert (trigger.here, trigger.container_id) == ("", CONTAINER.id)

    def test_a_link_on_the_way(self, folder: Path, driver: ProcessTarget) -> None:
        """In the container it may lead elsewhere."""
        (folder / "link").symlink_to(folder)
        path = f"{folder}/link/save-now"
        trigger = self.way(path, {str(folder): str(folder)}, driver)
        assert (trigger.here, trigger.container_id) == ("", CONTAINER.id)

    @needs_root
    def test_on_no_mount(self, folder: Path, driver: ProcessTarget) -> None:
        trigger = self.way(f"{folder}/save-now", {}, driver)
        assert trigger.here == f"/proc/{driver.pid}/root{folder}/save-now"
        assert trigger.create()
        assert (folder / "save-now").is_file()

    def test_no_way(self) -> None:
        run = FoundRun(is_here=False)
        with pytest.raises(Refused, match="cannot be reached"):
            trigger_of("/ckpt/save-now", run, RunTarget(container=None))


@needs_root
class TestRights:
    """Of a process of user and group 1234."""

    @pytest.fixture
    def pid(self) -> Iterator[int]:
        with subprocess.Popen(
            "cat", stdin=subprocess.PIPE, user=1234, group=1234, extra_groups=[1300]
        ) as process:
            yield process.pid
            process.kill()

    @pytest.mark.parametrize(
        ("owner", "group", "mode", "may"),
        [
            (1234, 0, 0o755, True),
            (1234, 0, 0o077, False),
            (0, 1234, 0o770, True),
            (0, 1300, 0o770, True),
            (0, 1300, 0o707, False),
            (0, 0, 0o777, True),
            (0, 0, 0o755, False),
            (0, 0, 0o776, False),
            (0, 0, 0o1777, True),  # as root we give it the file
        ],
    )
    def test_modes(
        self, tmp_path: Path, pid: int, owner: int, group: int, mode: int, may: bool
    ) -> None:
        os.chown(tmp_path, owner, group)
        tmp_path.chmod(mode)
        fault = removal_fault(pid, str(tmp_path), tmp_path.stat())
        assert (fault == "") == may

    def test_a_process_of_root(self, tmp_path: Path, driver: ProcessTarget) -> None:
        os.chown(tmp_path, 1234, 1234)
        tmp_path.chmod(0o1700)
        assert removal_fault(driver.pid, str(tmp_path), tmp_path.stat()) == ""

    def test_without_the_powers_of_root(self, tmp_path: Path) -> None:
        os.chown(tmp_path, 1234, 1234)
        bare = ["setpriv", "--bounding-set=-all", "--inh-caps=-all", "cat"]
        with subprocess.Popen(bare, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(b"x\n")
            process.stdin.flush()
            process.stdout.readline()  # now it is `cat`
            fault = removal_fault(process.pid, str(tmp_path), tmp_path.stat())
            process.kill()
        assert "the run's user (0) may not remove a file" in fault

    def test_a_mount_that_is_read_only_for_the_run_alone(self, tmp_path: Path) -> None:
        mount = f"mount --bind {tmp_path} {tmp_path}; mount -o remount,ro,bind {tmp_path}"
        inside = ["unshare", "--mount", "sh", "-ec", f"{mount}; echo; exec cat"]
        with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            if not process.stdout.readline():
                pytest.skip("no mount namespaces here")
            fault = removal_fault(process.pid, str(tmp_path), tmp_path.stat())
            process.kill()
        assert fault == f"{tmp_path} is mounted read-only where the run is"

    def test_a_user_namespace_of_its_own(self, tmp_path: Path) -> None:
        """Its root has powers over the users in it only."""
        os.chown(tmp_path, 4321, 4321)
        inside = ["unshare", "--user", "--map-root-user", "sh", "-c", "echo; exec cat"]
        with subprocess.Popen(inside, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None
            if not process.stdout.readline():
                pytest.skip("no user namespaces here")
            fault = removal_fault(process.pid, str(tmp_path), tmp_path.stat())
            process.kill()
        assert "may not remove a file" in fault


def test_a_file_of_ours_in_a_sticky_folder(
    tmp_path: Path, driver: ProcessTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in /tmp: only its owner may remove it, and the folder's."""
    if os.geteuid() != 0:
        pytest.skip("needs root")
    tmp_path.chmod(0o1777)
    with subprocess.Popen("cat", stdin=subprocess.PIPE, user=1234, group=1234) as process:
        monkeypatch.setattr(os, "geteuid", lambda: 1000)
        fault = removal_fault(process.pid, str(tmp_path), tmp_path.stat())
        process.kill()
    assert "may not remove a file of yours" in fault
