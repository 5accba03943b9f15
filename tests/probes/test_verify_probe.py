"""The verify that a person asks for: in a process of its own, followed, ended, and told of."""

from __future__ import annotations

import json
import os
import shutil
import struct
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tui.checkpoints.ledger import keep, remembered
from tui.checkpoints.ledger_pages import Result
from tui.checkpoints.verify import verify
from tui.model.checkpoint import Soundness, Verifying
from tui.model.events import VerifyAsked
from tui.model.reduce import reduce, reduced
from tui.model.snapshot import Snapshot
from tui.probes.verify import READER, VerifyProbe

PATIENCE_S = 200.0
HUGE_BYTES = 64 << 30
HALF = '{"done": 5, "total": 10, "seconds": 2.5}'
HANGS = (sys.executable, "-c", f"import time; print('{HALF}', flush=True); time.sleep(600)")


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    root = shutil.copytree(data / "captures" / "ckpt-run-a", tmp_path / "run-a")
    return Path(root) / "iter_0000004"


class Desk:
    """A probe, and the snapshot it is shown."""

    def __init__(self, command: Sequence[str] = READER) -> None:
        self.probe = VerifyProbe(command)
        self.snapshot = Snapshot()
        self.at = 0.0

    def ask(self, path: Path | None) -> None:
        self.at += 1.0
        wanted = None if path is None else str(path)
        self.snapshot = reduce(self.snapshot, VerifyAsked(at=self.at, path=wanted))

    def read(self) -> Verifying | None:
        self.snapshot = reduced(self.snapshot, self.probe.read(self.at, self.snapshot))
        return self.snapshot.verifying

    def until(self, condition: Callable[[Verifying | None], bool]) -> Verifying | None:
        limit = time.monotonic() + PATIENCE_S
        while not condition(seen := self.read()):
            assert time.monotonic() < limit, f"waited in vain: {seen}"
            time.sleep(0.01)
        return seen

    def reads(self) -> Verifying | None:
        """Wait until it reads; how far it is."""
        return self.until(lambda seen: seen is not None and seen.done_bytes > 0)

    def ends(self) -> str:
        """Wait for the end; why there is no result."""
        seen = self.until(lambda seen: seen is None or bool(seen.fault))
        return "" if seen is None else seen.fault


@pytest.fixture
def desk() -> Iterator[Callable[..., Desk]]:
    made: list[Desk] = []

    def make(command: Sequence[str] = READER) -> Desk:
        made.append(Desk(command))
        return made[-1]

    yield make
    for one in made:
        one.probe.close()
    no_reader_is_left()


def readers(of: psutil.Process | None = None) -> list[psutil.Process]:
    found = []
    for child in (of or psutil.Process()).children():
        with suppress(psutil.ZombieProcess):
            words = " ".join(child.cmdline())
            if "verify_reader" in words or HALF in words:
                found.append(child)
    return found


def no_reader_is_left() -> None:
    """Once the kernel has ended it."""
    limit = time.monotonic() + PATIENCE_S
    while readers():
        assert time.monotonic() < limit, "it lives on"
        time.sleep(0.01)


@pytest.fixture
def huge(tmp_path: Path) -> Path:
    """One tensor that takes many seconds to read and no room on the disk."""
    header = {"w": {"dtype": "F32", "shape": [HUGE_BYTES // 4], "data_offsets": [0, HUGE_BYTES]}}
    text = json.dumps(header).encode()
    path = tmp_path / "huge.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text)
    os.truncate(path, 8 + len(text) + HUGE_BYTES)
    return path


def test_the_result_is_in_the_ledger_and_the_process_is_gone(
    folder: Path, desk: Callable[..., Desk]
) -> None:
    on = desk()
    on.ask(folder)

    assert on.ends() == ""
    kept = remembered(folder)
    assert kept is not None
    assert kept.soundness is Soundness.SOUND
    no_reader_is_left()


def test_damage_is_a_result(folder: Path, desk: Callable[..., Desk]) -> None:
    with (folder / "optimizer" / "__0_0.distcp").open("r+b") as shard:
        shard.seek(500_000)
        shard.write(b"\xff\x00\xff\x00")
    on = desk()
    on.ask(folder)

    assert on.ends() == ""
    kept = remembered(folder)
    assert kept is not None
    assert kept.soundness is Soundness.DAMAGED


def test_it_comes_last_at_the_processor_and_at_the_disk(
    huge: Path, desk: Callable[..., Desk]
) -> None:
    on = desk()
    on.ask(huge)
    seen = on.reads()
    (reader,) = readers()

    assert seen is not None
    assert seen.total_bytes > HUGE_BYTES
    assert reader.ionice().ioclass == psutil.IOPRIO_CLASS_IDLE
    threads = [os.getpriority(os.PRIO_PROCESS, thread.id) for thread in reader.threads()]
    assert set(threads) == {19}
    session = Path(f"/proc/{reader.pid}/autogroup")
    assert not session.exists() or session.read_text().split()[-2:] == ["nice", "19"]


def test_progress_is_told_as_it_comes(desk: Callable[..., Desk], tmp_path: Path) -> None:
    go = tmp_path / "go"
    waits = f"import os, time\nwhile not os.path.exists({str(go)!r}): time.sleep(0.01)\n"
    on = desk((sys.executable, "-c", f"{waits}print('{HALF}', flush=True); time.sleep(600)"))
    on.ask(Path("/ckpt/iter_0000004"))
    first = on.read()
    assert first is not None
    assert (first.path, first.total_bytes) == ("/ckpt/iter_0000004", 0)

    go.touch()
    assert on.reads() == replace(first, done_bytes=5, total_bytes=10, seconds=2.5)


def test_one_that_is_not_wanted_any_more_is_ended(desk: Callable[..., Desk]) -> None:
    on = desk(HANGS)
    on.ask(Path("a"))
    on.reads()
    assert len(readers()) == 1

    on.ask(None)
    assert on.read() is None
    no_reader_is_left()


def test_another_takes_its_place(desk: Callable[..., Desk]) -> None:
    on = desk(HANGS)
    on.ask(Path("a"))
    on.reads()
    (first,) = readers()
    on.ask(Path("b"))
    seen = on.reads()
    psutil.wait_procs([first], timeout=PATIENCE_S)

    (second,) = readers()
    assert first != second
    assert seen is not None
    assert seen.path == "b"


def test_closing_ends_it(desk: Callable[..., Desk]) -> None:
    on = desk(HANGS)
    on.ask(Path("a"))
    on.reads()
    on.probe.close()

    no_reader_is_left()


def test_an_older_snapshot_does_not_start_it_again(folder: Path, desk: Callable[..., Desk]) -> None:
    on = desk()
    on.ask(folder)
    before = on.snapshot
    on.ends()

    assert on.probe.read(on.at, before) == ()
    no_reader_is_left()


@pytest.mark.parametrize(
    ("program", "told"),
    [
        ("import os; os.kill(os.getpid(), 9)", "the process that read it was ended by SIGKILL"),
        (
            "raise MemoryError('no room')",
            "the process that read it ended with exit code 1: MemoryError: no room",
        ),
    ],
)
def test_a_process_that_dies_is_told_of(program: str, told: str, desk: Callable[..., Desk]) -> None:
    on = desk((sys.executable, "-c", program))
    on.ask(Path("a"))

    assert on.ends() == told


def test_a_process_that_cannot_be_started_is_told_of(desk: Callable[..., Desk]) -> None:
    on = desk(("/nowhere/python",))
    on.ask(Path("a"))

    assert on.ends() == "no process could be started: No such file or directory"
    assert on.read() == on.snapshot.verifying


def test_a_folder_that_is_gone_is_told_of(folder: Path, desk: Callable[..., Desk]) -> None:
    shutil.rmtree(folder)
    on = desk()
    on.ask(folder)

    assert "is not there" in on.ends()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_what_may_not_be_read_is_told(folder: Path, desk: Callable[..., Desk]) -> None:
    (folder / "rng.pt").chmod(0)
    on = desk()
    on.ask(folder)

    assert on.ends() == "rng.pt: Permission denied"


def test_a_ledger_that_cannot_be_written_is_told(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, desk: Callable[..., Desk]
) -> None:
    (tmp_path / "file").write_text("no folder")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    on = desk()
    on.ask(folder)

    assert on.ends().startswith("the ledger cannot be written")


def test_an_older_result_is_not_taken_for_this_one(folder: Path, desk: Callable[..., Desk]) -> None:
    """Its last line would say that all is well while nothing new is known."""
    earlier = verify(folder).verification
    assert earlier is not None
    with (folder / "model" / "__0_0.distcp").open("r+b") as shard:
        shard.truncate(1000)
    keep(folder, {}, Result(verification=earlier, files={}))
    on = desk()
    on.ask(folder)
    on.ends()

    kept = remembered(folder)
    assert kept is not None
    assert kept.soundness is Soundness.DAMAGED


PARENT = """
import sys, time
from tui.model.events import VerifyAsked
from tui.model.reduce import reduce, reduced
from tui.model.snapshot import Snapshot
from tui.probes.verify import VerifyProbe
seen, probe = reduce(Snapshot(), VerifyAsked(at=1.0, path=sys.argv[1])), VerifyProbe()
while not seen.verifying.done_bytes:
    seen = reduced(seen, probe.read(1.0, seen))
    time.sleep(0.01)
print("reading", flush=True)
time.sleep(600)
"""


def test_it_ends_with_the_process_that_started_it(huge: Path) -> None:
    """Also where that one is killed, and can end nobody itself."""
    words = [sys.executable, "-c", PARENT, str(huge)]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as parent:
        assert parent.stdout is not None
        assert parent.stdout.readline() == b"reading\n"
        (reader,) = readers(psutil.Process(parent.pid))
        parent.kill()
    _, alive = psutil.wait_procs([reader], timeout=PATIENCE_S)

    assert not alive or reader.status() == psutil.STATUS_ZOMBIE
