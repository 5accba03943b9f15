"""Bytes into lines, and a file followed through everything that happens to a log."""

from __future__ import annotations

import multiprocessing
import os
import re
import threading
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tui.model.reading import Absence
from tui.probes.line_splitter import KIB, LineSplitter
from tui.probes.log_bytes import Break, FileFollower, FileRead, Line, decode, last_redraws

SPAWN = multiprocessing.get_context("spawn")


def cut_at(stream: bytes, places: list[int]) -> list[bytes]:
    edges = [0, *sorted(place % (len(stream) + 1) for place in places), len(stream)]
    return [stream[start:end] for start, end in pairwise(edges)]


@settings(deadline=None)
@given(
    stream=st.lists(
        st.sampled_from([b"\n", b"\r", b"a", b"\xff", b"\0", b"\xf0\x9f", b"x" * 50])
    ).map(b"".join),
    places=st.lists(st.integers(min_value=0)),
)
def test_any_cutting_of_a_stream_gives_the_same_lines(stream: bytes, places: list[int]) -> None:
    whole, cut = LineSplitter(max_line=64, kept=16), LineSplitter(max_line=64, kept=16)
    lines = whole.feed(stream)
    assert [line for chunk in cut_at(stream, places) for line in cut.feed(chunk)] == lines
    assert cut.pending == whole.pending
    assert len(lines) == stream.count(b"\n")
    for line, original in zip([*lines, whole.pending], stream.split(b"\n"), strict=True):
        if len(original) <= 64:
            assert line == original
        else:
            left_out = re.escape(b" ...[%d bytes left out]... " % (len(original) - 32))
            assert re.fullmatch(
                re.escape(original[:16]) + left_out + re.escape(original[-16:]), line, re.DOTALL
            )


@settings(deadline=None)
@given(chunks=st.lists(st.binary(max_size=300)))
def test_what_is_held_is_bounded(chunks: list[bytes]) -> None:
    splitter = LineSplitter(max_line=100, kept=40)
    for chunk in chunks:
        for line in (*splitter.feed(chunk), splitter.pending):
            assert len(line) <= 120
            decode(line)


def test_the_end_of_a_huge_line_is_kept() -> None:
    splitter = LineSplitter()
    for _ in range(1000):
        assert splitter.feed(b"prompt " * KIB) == []
    (line,) = splitter.feed(b"RuntimeError: the cause\n")
    assert line.startswith(b"prompt prompt")
    assert line.endswith(b"RuntimeError: the cause")
    assert b"bytes left out" in line
    assert len(line) < 140 * KIB
    assert splitter.pending == b""


def test_a_line_of_exactly_the_limit_is_whole() -> None:
    splitter = LineSplitter(max_line=10, kept=5)
    assert splitter.feed(b"0123456789\n0123456789a\n") == [
        b"0123456789",
        b"01234 ...[1 bytes left out]... 6789a",
    ]
    with pytest.raises(ValueError, match="kept"):
        LineSplitter(max_line=10, kept=6)


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"plain", "plain"),
        ("naïve 🚀".encode(), "naïve 🚀"),
        (b"torn \xf0\x9f\x9a", "torn \ufffd"),
        (b"dos\r", "dos"),
        (b"tty\r\r", "tty"),
        (b"\0\0a\0b\0\r\0", "ab"),
        (b"bar\rbar\r", "bar\rbar"),
        (b"", ""),
    ],
)
def test_decode(line: bytes, text: str) -> None:
    assert decode(line) == text


@settings(deadline=None)
@given(line=st.binary())
def test_decode_takes_any_bytes(line: bytes) -> None:
    assert "\0" not in decode(line)


def test_redraws_are_few_and_keep_both_ends() -> None:
    assert last_redraws("plain") == ("plain",)
    assert last_redraws("") == ("",)
    assert last_redraws("\r\r") == ()
    assert last_redraws("prefix \r10%\r20%[record]") == ("prefix ", "10%", "20%[record]")
    many = last_redraws("\r".join(str(n) for n in range(1000)))
    assert (many[0], many[-1], len(many)) == ("0", "999", 12)


def test_bars_with_a_record_behind_them(data: Path) -> None:
    stream = (data / "cases" / "o16.log").read_bytes()
    splitter = LineSplitter()
    lines = [decode(line) for line in splitter.feed(stream)]
    assert "] metrics.py:89 - perf 3: {" in last_redraws(lines[0])[-1]
    assert "256/256" in last_redraws(lines[0])[-1]
    assert "32/256" in last_redraws(decode(splitter.pending))[-1]


class Log:
    """A log file, its writer and its follower."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.follower = FileFollower(path)

    def write(self, content: bytes) -> None:
        with self.path.open("ab") as file:
            file.write(content)

    def reads(self, max_bytes: int = 1024 * KIB) -> list[FileRead]:
        """Looks until there is no more to read at once."""
        reads = [self.follower.read(max_bytes)]
        while reads[-1].is_behind:
            reads.append(self.follower.read(max_bytes))
            assert len(reads) < 10_000
        return reads

    def lines(self, max_bytes: int = 1024 * KIB) -> list[bytes]:
        return [line.content for read in self.reads(max_bytes) for line in read.lines]


@pytest.fixture
def log(tmp_path: Path) -> Log:
    return Log(tmp_path / "run.log")


def test_lines_come_with_their_offsets(log: Log) -> None:
    log.write(b"one\ntwo\n\nthr")
    (read,) = log.reads()
    assert read.lines == (
        Line(offset=0, content=b"one"),
        Line(offset=4, content=b"two"),
        Line(offset=8, content=b""),
    )
    assert read.pending == b"thr"
    assert (read.size_bytes, read.broke, read.fault) == (12, None, None)
    assert read.written_at == log.path.stat().st_mtime
    log.write(b"ee\nfour")
    (read,) = log.reads()
    assert read.lines == (Line(offset=9, content=b"three"),)
    assert read.pending == b"four"
    (read,) = log.reads()
    assert (read.lines, read.pending) == ((), b"four")


@settings(deadline=None)
@given(
    content=st.lists(st.sampled_from([b"\n", b"a", b"bc", b"\r"])).map(b"".join),
    max_bytes=st.integers(min_value=1, max_value=9),
)
def test_offsets_are_where_the_lines_are(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, max_bytes: int
) -> None:
    log = Log(tmp_path_factory.mktemp("log") / "run.log")
    log.write(content)
    reads = log.reads(max_bytes)
    lines = [line for read in reads for line in read.lines]
    assert [line.content for line in lines] == content.split(b"\n")[:-1]
    for line in lines:
        end = line.offset + len(line.content)
        assert content[line.offset : end + 1] == line.content + b"\n"
    assert reads[-1].pending == content.split(b"\n")[-1]


def test_offsets_hold_behind_a_huge_line(log: Log) -> None:
    log.write(b"a\n" + b"x" * 1024 * KIB + b"cause\nb\n")
    lines = [line for read in log.reads(10 * KIB) for line in read.lines]
    assert [line.offset for line in lines] == [0, 2, 1024 * KIB + 8]
    assert lines[1].content.endswith(b"xcause")
    assert len(lines[1].content) < 140 * KIB


@pytest.mark.parametrize(
    ("window", "start", "first"),
    [
        (1000, 0, b"first"),
        (12, 13, b"third"),
        (13, 6, b"second"),
        (11, 13, b"third"),
        (0, 19, None),
    ],
)
def test_begins_at_the_first_whole_line_of_the_window(
    log: Log, window: int, start: int, first: bytes | None
) -> None:
    content = b"first\nsecond\nthird\n"
    log.write(content)
    size = len(content)
    assert log.follower.open_at_end(window) == (start, size)
    lines = log.lines()
    assert (lines[0] if lines else None) == first
    log.write(b"new\n")
    assert log.lines() == [b"new"]


def test_a_window_inside_one_giant_line(log: Log) -> None:
    log.write(b"x" * 200 * KIB)
    assert log.follower.open_at_end(150 * KIB) == (50 * KIB, 200 * KIB)
    (read,) = log.reads()
    assert read.pending == b"x" * 150 * KIB
    log.write(b"\ny\n")
    assert log.lines()[1] == b"y"


def test_a_late_start_reads_only_the_end(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    with log.path.open("wb") as file:
        file.truncate(20 * 2**30)
    log.write(b"\nnewest\n")
    asked: list[int] = []
    real = os.pread

    def counted(descriptor: int, count: int, offset: int) -> bytes:
        asked.append(count)
        return real(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", counted)
    start, size = log.follower.open_at_end(64 * KIB)
    assert (start, size) == (20 * 2**30 + 1, 20 * 2**30 + 8)
    assert log.lines() == [b"newest"]
    assert sum(asked) < 4 * 1024 * KIB


def test_a_file_that_is_not_there_yet(log: Log) -> None:
    assert log.follower.open_at_end(100) == (0, 0)
    for _ in range(2):
        (read,) = log.reads()
        assert read.fault is not None
        assert read.fault.why is Absence.MISSING
    log.write(b"here\n")
    (read,) = log.reads()
    assert (read.lines, read.broke) == ((Line(offset=0, content=b"here"),), None)


def test_what_is_no_file_is_refused_with_a_remedy(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    os.mkfifo(tmp_path / "pipe")
    for name, why, word in (
        ("folder", Absence.ERROR, "name the log file in it"),
        ("pipe", Absence.NOT_SUPPORTED, "tee"),
    ):
        read = FileFollower(tmp_path / name).read()
        assert read.fault is not None
        assert read.fault.why is why
        assert word in read.fault.reason
    read = FileFollower(Path(os.devnull)).read()
    assert read.fault is not None
    assert read.fault.reason.endswith("is not a regular file")
    (tmp_path / "loop").symlink_to(tmp_path / "loop")
    read = FileFollower(tmp_path / "loop").read()
    assert read.fault is not None
    assert read.fault.why is Absence.ERROR


def test_a_pipe_is_not_opened(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(tmp_path / "pipe")
    opened: list[object] = []
    monkeypatch.setattr(os, "open", lambda *args: opened.append(args))
    FileFollower(tmp_path / "pipe").read()
    assert opened == []


def test_no_permission_is_told_and_tried_again(log: Log, monkeypatch: pytest.MonkeyPatch) -> None:
    log.write(b"secret\n")

    def refuse(*_: object) -> int:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refuse)
        (read,) = log.reads()
        assert read.fault is not None
        assert read.fault.why is Absence.NO_PERMISSION
    assert log.lines() == [b"secret"]


def test_truncation(log: Log) -> None:
    log.write(b"old 1\nold 2\nunfin")
    assert log.lines() == [b"old 1", b"old 2"]
    log.path.write_bytes(b"new\n")
    reads = log.reads()
    assert [(read.lines, read.broke) for read in reads] == [
        ((Line(offset=12, content=b"unfin"),), None),
        ((Line(offset=0, content=b"new"),), Break.TRUNCATED),
    ]
    assert log.lines() == []


def test_truncated_to_nothing_and_written_later(log: Log) -> None:
    log.write(b"old\n")
    assert log.lines() == [b"old"]
    os.truncate(log.path, 0)
    (read,) = log.reads()
    assert (read.lines, read.broke, read.size_bytes) == ((), Break.TRUNCATED, 0)
    log.write(b"new\n")
    (read,) = log.reads()
    assert (read.lines, read.broke) == ((Line(offset=0, content=b"new"),), None)


@pytest.mark.parametrize("old", [b"same start\n" * 200 + b"old\n", b"old\n", b"old\n" * 4000])
@pytest.mark.parametrize("longer", [0, 1, 5000])
def test_truncated_and_grown_past_where_we_were(log: Log, old: bytes, longer: int) -> None:
    log.write(old)
    log.lines()
    start = old[: old.rindex(b"old")]
    new = start + b"new\n" + b"y\n" * (longer // 2)
    log.path.write_bytes(new)
    stamp = log.path.stat().st_mtime_ns + 1_000_000
    os.utime(log.path, ns=(stamp, stamp))
    reads = log.reads()
    assert [read.broke for read in reads] == [Break.TRUNCATED]
    assert [line.content for line in reads[0].lines] == new.split(b"\n")[:-1]


def test_another_beginning_is_noticed_where_the_rest_looks_the_same(log: Log) -> None:
    ticks = b"tick\n" * 1000
    log.write(b"first run\n" + ticks)
    log.lines()
    log.path.write_bytes(b"other run\n" + ticks + b"more\n")
    reads = log.reads()
    assert reads[0].broke is Break.TRUNCATED
    assert reads[0].lines[0].content == b"other run"


def test_a_file_written_anew_with_the_same_bytes_goes_on(log: Log) -> None:
    log.write(b"same\n")
    log.lines()
    log.path.write_bytes(b"same\nmore\n")
    (read,) = log.reads()
    assert (read.lines, read.broke) == ((Line(offset=5, content=b"more"),), None)


def test_a_writer_without_append_leaves_a_hole(log: Log) -> None:
    with log.path.open("wb", buffering=0) as writer:
        writer.write(b"o" * 8 * 2**20 + b"\n")
        log.lines()
        os.truncate(log.path, 0)
        assert log.reads()[-1].broke is Break.TRUNCATED
        writer.write(b"new\n")
    lines = log.lines()
    assert [decode(line) for line in lines] == ["new"]


def test_copytruncate_under_a_live_writer(log: Log) -> None:
    writer = os.open(log.path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    told: list[bytes] = []
    for turn in range(5):
        for count in range(20):
            os.write(writer, b"turn %d line %d\n" % (turn, count))
            told += log.lines()
        log.path.with_suffix(f".{turn}").write_bytes(log.path.read_bytes())
        os.truncate(log.path, 0)
    os.close(writer)
    assert told == [b"turn %d line %d" % (t, n) for t in range(5) for n in range(20)]


def test_rename_and_recreate(log: Log) -> None:
    writer = log.path.open("ab", buffering=0)
    writer.write(b"one\n")
    assert log.lines() == [b"one"]
    log.path.rename(log.path.with_suffix(".1"))
    writer.write(b"two\n")
    (read,) = log.reads()
    assert [line.content for line in read.lines] == [b"two"]
    assert read.fault is not None
    assert read.fault.why is Absence.MISSING
    log.path.touch()
    writer.write(b"three\nunfin")
    (read,) = log.reads()
    assert ([line.content for line in read.lines], read.fault) == ([b"three"], None)
    writer.write(b"ished\nhalf")
    writer.close()
    log.write(b"four\n")
    reads = log.reads()
    assert [(line.content, read.broke) for read in reads for line in read.lines] == [
        (b"unfinished", None),
        (b"half", None),
        (b"four", Break.REPLACED),
    ]
    assert log.lines() == []


def test_an_old_file_that_goes_on_growing_does_not_keep_us(log: Log) -> None:
    log.write(b"one\n")
    log.lines()
    old = log.path.rename(log.path.with_suffix(".1"))
    with old.open("ab", buffering=0) as writer:
        writer.write(b"two\n")
        log.write(b"new\n")
        seen = [log.follower.read(), log.follower.read()]
        writer.write(b"of another run\n")
    assert [line.content for read in seen for line in read.lines] == [b"two", b"new"]
    assert seen[1].broke is Break.REPLACED


def test_unlink_and_recreate_even_with_the_same_inode(log: Log) -> None:
    for turn in range(20):
        log.write(b"turn %d\n" % turn)
        reads = log.reads()
        assert [line.content for read in reads for line in read.lines] == [b"turn %d" % turn]
        assert reads[-1].broke is (Break.REPLACED if turn else None)
        log.path.unlink()


def test_a_link_whose_target_changes(tmp_path: Path) -> None:
    first, second = tmp_path / "1.log", tmp_path / "2.log"
    first.write_bytes(b"first\n")
    second.write_bytes(b"second\n")
    log = Log(tmp_path / "latest.log")
    log.path.symlink_to(first)
    assert log.lines() == [b"first"]
    replacement = tmp_path / "new"
    replacement.symlink_to(second)
    replacement.rename(log.path)
    reads = log.reads()
    assert [line.content for read in reads for line in read.lines] == [b"second"]
    assert reads[-1].broke is Break.REPLACED


def test_a_rotation_while_there_is_much_to_read(log: Log) -> None:
    log.write(b"".join(b"old %d\n" % n for n in range(1000)))
    log.follower.read(100)
    log.path.rename(log.path.with_suffix(".1"))
    log.write(b"new\n")
    lines = log.lines(1000)
    assert lines[-2:] == [b"old 999", b"new"]


def test_a_disk_error_is_told_and_the_next_file_is_begun(
    log: Log, monkeypatch: pytest.MonkeyPatch
) -> None:
    log.write(b"one\n")
    log.lines()
    log.write(b"two\n")

    def fail(*_: object) -> bytes:
        raise OSError(116, "Stale file handle")

    with monkeypatch.context() as patch:
        patch.setattr(os, "pread", fail)
        (read,) = log.reads()
        assert read.fault is not None
        assert "Stale file handle" in read.fault.reason
    assert log.lines() == [b"two"]
    log.path.unlink()
    log.write(b"three\n")
    assert log.lines() == [b"three"]


def append_lines(path: str, name: int, count: int) -> None:
    """Half lines and whole ones, so that the reader meets both ends of every write."""
    descriptor = os.open(path, os.O_WRONLY | os.O_APPEND)
    for number in range(count):
        line = b"%d:%d %s\n" % (name, number, b"x" * (number * 7 % 300))
        for part in (line[: len(line) // 2], line[len(line) // 2 :]):
            os.write(descriptor, part)
    os.close(descriptor)


def test_lines_appended_by_several_processes(log: Log) -> None:
    log.path.touch()
    writers = [
        SPAWN.Process(target=append_lines, args=(str(log.path), name, 300)) for name in range(2)
    ]
    for writer in writers:
        writer.start()
    told: list[bytes] = []
    while any(writer.is_alive() for writer in writers):
        told += log.lines(4 * KIB)
    for writer in writers:
        writer.join()
        assert writer.exitcode == 0
    told += log.lines()
    assert told == log.path.read_bytes().split(b"\n")[:-1]


def rotate(path: Path, total: int) -> None:
    """A writer that reopens by name for every line, and a rotation every 50."""
    for number in range(total):
        with path.open("ab", buffering=0) as file:
            file.write(b"line %d\n" % number)
        if number % 50 == 49:
            path.rename(path.with_suffix(f".{number}"))


def test_rotation_beside_the_reader(log: Log) -> None:
    """Rotated faster than we look, whole files are never seen; what is seen is in order, once."""
    writer = threading.Thread(target=rotate, args=(log.path, 1000))
    writer.start()
    told: list[bytes] = []
    while writer.is_alive():
        told += log.lines()
    writer.join()
    log.write(b"line 1000\n")
    told += log.lines()
    numbers = [int(line.split()[1]) for line in told]
    assert numbers == sorted(set(numbers))
    assert numbers[-1] == 1000


def blocks_of(content: bytes, log: Log, until: int, block_bytes: int) -> list[bytes]:
    log.path.write_bytes(content)
    log.follower.open_at_end(0)
    blocks = list(log.follower.history(until, block_bytes))
    assert (blocks[-1].end_offset if blocks else 0) == min(until, len(content))
    return [block.content for block in blocks]


@settings(deadline=None)
@given(
    content=st.lists(st.sampled_from([b"\n", b"a", b"bcd"])).map(b"".join),
    block_bytes=st.integers(min_value=1, max_value=16),
)
def test_history_is_the_file_in_whole_lines(
    tmp_path_factory: pytest.TempPathFactory, content: bytes, block_bytes: int
) -> None:
    log = Log(tmp_path_factory.mktemp("log") / "run.log")
    until = content.rfind(b"\n") + 1
    blocks = blocks_of(content, log, until, block_bytes)
    assert b"".join(blocks) == content[:until]
    assert all(block.endswith(b"\n") for block in blocks)


def test_history_cuts_a_giant_line(log: Log) -> None:
    content = b"a\n" + b"x" * 3 * 1024 * KIB + b"cause\nb\n"
    lines = b"".join(blocks_of(content, log, len(content), 64 * KIB)).split(b"\n")
    assert [lines[0], *lines[2:]] == [b"a", b"b", b""]
    assert lines[1].endswith(b"xcause")
    assert len(lines[1]) < 140 * KIB


def test_history_and_following_meet(log: Log) -> None:
    log.write(b"".join(b"line %d\n" % n for n in range(5000)))
    start, _ = log.follower.open_at_end(1000)
    log.write(b"line 5000\n")
    live = log.lines()
    past = b"".join(block.content for block in log.follower.history(start, 4096))
    assert past.split(b"\n")[:-1] + live == [b"line %d" % n for n in range(5001)]


def test_history_stays_with_its_file(log: Log) -> None:
    log.write(b"one\ntwo\nthree\n")
    start, _ = log.follower.open_at_end(6)
    history = log.follower.history(start, 4)
    assert next(history).content == b"one\n"
    log.path.rename(log.path.with_suffix(".1"))
    log.write(b"other\n")
    assert log.lines() == [b"three", b"other"]
    log.follower.close()
    assert [block.content for block in history] == [b"two\n"]


def test_history_of_a_truncated_file_ends_early(log: Log) -> None:
    log.write(b"one\ntwo\n")
    start, _ = log.follower.open_at_end(0)
    history = log.follower.history(start, 4)
    next(history)
    os.truncate(log.path, 0)
    assert list(history) == []


def test_history_without_a_file_is_empty(log: Log) -> None:
    assert list(log.follower.history(100)) == []


def open_descriptors(path: Path) -> int:
    links = list(Path("/proc/self/fd").iterdir())
    return sum(link.is_symlink() and link.readlink() == path for link in links)


@pytest.mark.parametrize("use", [lambda _: None, next, list])
def test_no_descriptor_is_left_open(log: Log, use: Callable[[object], object]) -> None:
    log.write(b"one\ntwo\n")
    log.follower.open_at_end(0)
    history = log.follower.history(8, 4)
    use(history)
    assert open_descriptors(log.path) == 1
    log.follower.close()
    del history
    assert open_descriptors(log.path) == 0
