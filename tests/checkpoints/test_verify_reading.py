"""Reading in blocks: every byte once, little memory, the page cache given back, and last in line."""

from __future__ import annotations

import ctypes
import errno
import os
import platform
import shutil
import threading
import tracemalloc
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from page_cache import resident_bytes

from tui.checkpoints import reading, workers
from tui.checkpoints.reading import CancelledError, CutShortError, Window, be_polite
from tui.checkpoints.sums import check_plain, check_zip
from tui.checkpoints.verify import verify
from tui.demo.torchzip import Tensor, saved_tensor

SIZE = 20_000


@pytest.fixture
def folder(data: Path, tmp_path: Path) -> Path:
    root = shutil.copytree(data / "captures" / "ckpt-run-a", tmp_path / "run-a")
    return Path(root) / "iter_0000004"


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(
    block=st.integers(8, 600).map(lambda size: size - size % 8),
    start=st.integers(0, SIZE),
    length=st.integers(0, SIZE),
    head=st.integers(0, 40),
)
def test_runs_give_every_byte_once_and_cut_no_number(
    tmp_path: Path, block: int, start: int, length: int, head: int
) -> None:
    raw = bytes(value % 251 for value in range(SIZE))
    path = tmp_path / "file"
    path.write_bytes(raw)
    end = min(SIZE, start + length)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(reading, "BLOCK_BYTES", block)
        window = Window(lambda: False)
        window.open(path)
        window.copied(max(0, start - head), min(head, start))
        got, at = b"", start
        while at < end:
            begin, stop = window.run(at, end - at)
            assert stop - begin == end - at or not (stop - begin) % 8
            got += window.view(begin, stop)
            at += stop - begin
        assert window.run_bytes == end - start
        assert window.copied(start, end - start) == raw[start:end]
        window.close()

    assert got == raw[start:end]


def test_a_zip_is_checked_alike_in_blocks_of_any_size(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(saved_tensor(Tensor(os.urandom(4000), (1000,))))
    digests = set()
    for block in (64, 256, 1000, 1 << 20):
        with pytest.MonkeyPatch.context() as patched:
            patched.setattr(reading, "BLOCK_BYTES", block)
            window = Window(lambda: False)
            window.open(path)
            tally = check_zip(window, 0, path.stat().st_size)
            window.close()
        assert not tally.faults
        assert not tally.wrong
        digests.add(tally.digest)

    assert len(digests) == 1


def test_it_ends_within_a_block_of_being_cancelled(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(5 << 20))
    asked = iter([False, False, True])
    window = Window(lambda: next(asked))
    window.open(path)

    with pytest.raises(CancelledError):
        check_plain(window, 0, 5 << 20)
    assert window.run_bytes == 2 << 20
    window.close()


def test_a_file_that_ends_early(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(bytes(10))
    window = Window(lambda: False)
    window.open(path)

    with pytest.raises(CutShortError):
        check_plain(window, 0, 11)
    window.close()


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(saved_tensor(Tensor(bytes(48 << 20), (12 << 20,))))
    verify(path)
    tracemalloc.start()
    try:
        assert verify(path).is_good
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 8 << 20


@pytest.mark.parametrize("piece_mib", [3, 20, 128])
def test_little_of_a_file_is_cached_while_it_is_read(tmp_path: Path, piece_mib: int) -> None:
    """Whatever its pieces are, and though each begins with a look at its end."""
    path = tmp_path / "holes"
    path.touch()
    os.truncate(path, 128 << 20)
    window, most = Window(lambda: False), 0
    window.open(path)
    at = 0
    while at < 128 << 20:
        end = min(at + (piece_mib << 20) + 12_345, 128 << 20)
        window.copied(end - 1000, 1000)
        while at < end:
            start, stop = window.run(at, end - at)
            at += stop - start
            most = max(most, resident_bytes(path))
    held = resident_bytes(path)
    window.close()
    if resident_bytes(path):
        pytest.skip("this file system keeps its pages")

    assert held
    assert most < 48 << 20


def test_the_page_cache_is_given_back(tmp_path: Path) -> None:
    path = tmp_path / "x.pt"
    path.write_bytes(saved_tensor(Tensor(bytes(8 << 20), (2 << 20,))))
    descriptor = os.open(path, os.O_RDONLY)
    os.fsync(descriptor)
    os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
    os.close(descriptor)
    if resident_bytes(path):
        pytest.skip("this file system keeps its pages")
    path.read_bytes()
    assert resident_bytes(path)

    assert verify(path).is_good
    assert not resident_bytes(path)


def test_the_threads_come_last_and_only_they() -> None:
    numbers = {"x86_64": 252, "aarch64": 31}
    found: list[tuple[int, int]] = []

    def look() -> None:
        be_polite()
        priority = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
        number = numbers.get(platform.machine())
        io = ctypes.CDLL(None).syscall(number, 1, 0) >> 13 if number else 3
        found.append((priority, io))

    mine = os.getpriority(os.PRIO_PROCESS, threading.get_native_id())
    thread = threading.Thread(target=look)
    thread.start()
    thread.join()

    assert found == [(19, 3)]
    assert os.getpriority(os.PRIO_PROCESS, threading.get_native_id()) == mine


def test_a_disk_that_cannot_read_is_damage_and_a_closed_door_is_not(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> int:
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patched:
        patched.setattr(os, "preadv", broken)
        result = verify(folder / "rng.pt")
    assert result.faults == ("rng.pt: the disk cannot read it",)

    def closed(*_: object) -> None:
        raise PermissionError(errno.EACCES, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Window, "open", closed)
        result = verify(folder / "rng.pt")
    assert result.unread == ("rng.pt: Permission denied",)
    assert result.verification is None


def test_a_bug_in_a_thread_is_not_silent(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def buggy(*_: object) -> None:
        raise RuntimeError("bug")

    monkeypatch.setattr(workers, "check_zip", buggy)
    with pytest.raises(RuntimeError, match="bug"):
        verify(folder)
