"""What earlier runs left is found by who is gone; what anybody owns is left alone."""

from __future__ import annotations

import socket
import sys
import time
from pathlib import Path

import pytest
from families import Families, until

from tui.actions import leftovers
from tui.actions.leftovers import StaleAddress, Worker, find_leftovers, orphans, stale_address
from tui.actions.process_table import ProcessRow, read_row
from tui.actions.signals import tree_of
from tui.miles.titles import Role
from tui.model.reading import Absence, Unknown


def row(pid: int, parent: int, group: int, name: str = "p") -> ProcessRow:
    return ProcessRow(
        pid=pid, name=name, state="S", parent=parent, group=group, session=group, threads=1,
        start_ticks=pid,
    )  # fmt: skip


SCHEDULER = Worker(role=Role.SCHEDULER, title="sglang::scheduler")
SPAWNED = Worker(role=None, title="python -c from multiprocessing.spawn …")
TRAINER = Worker(role=Role.TRAINER, title="ray::FSDPTrainRayActor.train")


def found(rows: list[ProcessRow], workers: dict[int, Worker]) -> list[int]:
    table = {each.pid: each for each in (row(1, 0, 1), *rows)}
    return [each.pid for each in orphans(table, workers)]


def test_an_engine_whose_actor_is_gone_is_one_leftover_from_its_top() -> None:
    rows = [row(200, 1, 150), row(300, 200, 150), row(301, 200, 150)]
    workers = {200: SPAWNED, 300: SCHEDULER, 301: Worker(role=Role.DETOKENIZER, title="")}
    assert found(rows, workers) == [200]


def test_one_whose_actor_lives_is_owned() -> None:
    rows = [row(100, 1, 99, "raylet"), row(150, 100, 150), row(200, 150, 150), row(300, 200, 150)]
    engine = Worker(role=Role.ENGINE, title="ray::SGLangEngine")
    assert found(rows, {150: engine, 200: SPAWNED, 300: SCHEDULER}) == []


def test_a_trainer_whose_raylet_is_gone() -> None:
    rows = [row(150, 1, 150, "ray::FSDPTrainR")]
    assert found(rows, {150: TRAINER}) == [150]


def test_a_live_run_that_was_started_over_ssh_is_owned() -> None:
    """Its launcher, driver and raylet are orphans all, and its workers are not."""
    rows = [row(100, 1, 90, "raylet"), row(150, 100, 150, "ray::FSDPTrainR"), row(160, 1, 91)]
    rows.append(row(170, 160, 91))
    workers = {150: TRAINER, 170: Worker(role=Role.ENGINE, title="python -m tui.demo.engine")}
    assert found(rows, workers) == []


def test_a_server_that_a_person_started_is_owned() -> None:
    rows = [row(100, 1, 100), row(300, 100, 100)]
    assert found(rows, {300: SCHEDULER}) == []


def test_a_server_that_is_a_containers_first_process_is_owned() -> None:
    rows = [row(50, 1, 50), row(100, 50, 100), row(300, 100, 100)]
    assert found(rows, {300: SCHEDULER}) == []


_ORPHAN = """
import os, subprocess, sys, time
engine = "import os, sys, time; open('/proc/self/comm', 'w').write('sglang'); print(os.getpid(), flush=True); time.sleep(1000)"
if sys.argv[1] == "gone" and os.fork():
    os.wait()
    time.sleep(1000)
if sys.argv[1] == "gone":
    os.setpgid(0, 0)
subprocess.Popen(["sglang::scheduler_TP0", "-c", engine], executable=sys.executable)
if sys.argv[1] == "gone":
    os._exit(0)
time.sleep(1000)
"""


def test_real_ones(families: Families, tmp_path: Path) -> None:
    gone = families.start(sys.executable, "-c", _ORPHAN, "gone")
    owned = families.start(sys.executable, "-c", _ORPHAN, "owned")
    assert gone.stdout is not None
    assert owned.stdout is not None
    orphan, child = int(gone.stdout.readline()), int(owned.stdout.readline())
    until(lambda: parent(orphan) not in {each.pid for each in families.living()})
    left = {each.pid: each for each in find_leftovers(time.time(), tmp_path / "none").orphans}
    assert child not in left
    if parent(orphan) != 1:
        pytest.skip("orphans are taken in by something else here")
    assert left[orphan].title.startswith("sglang::scheduler_TP0")
    assert [each.pid for each in tree_of([left[orphan]])] == [orphan]


def parent(pid: int) -> int:
    found = read_row(pid)
    assert found is not None
    return found.parent


class TestRaysAddress:
    def stale(self, tmp_path: Path, text: str) -> StaleAddress | None:
        (tmp_path / "current").write_text(text)
        return stale_address(tmp_path / "current", 1.0)

    def test_nobody_there(self, tmp_path: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as server:
            address = f"127.0.0.1:{server.getsockname()[1]}"
            assert self.stale(tmp_path, address) is None
        assert self.stale(tmp_path, f"{address}\n") == StaleAddress(
            path=str(tmp_path / "current"), address=address
        )

    @pytest.mark.parametrize("text", ["", "nonsense", "127.0.0.1:port", "127.0.0.1:99999", "\xff"])
    def test_no_address_at_all(self, tmp_path: Path, text: str) -> None:
        found = self.stale(tmp_path, text)
        assert found is not None
        assert found.address == text.strip()

    def test_no_file(self, tmp_path: Path) -> None:
        assert stale_address(tmp_path / "current", 1.0) is None
        assert stale_address(tmp_path, 1.0) is None

    def test_silence_proves_nothing(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        silence = Unknown(why=Absence.TIMED_OUT, reason="no connection within 0.5 s", at=1.0)
        monkeypatch.setattr(leftovers, "connect", lambda *_: silence)
        assert self.stale(tmp_path, "192.0.2.1:6379") is None
        assert self.stale(tmp_path, "[2001:db8::1]:6379") is None
