"""The files of a black box: one an hour, bounded in number and bytes, whatever the clock does."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import moment, rebooted

from tui.guard.ring import HOUR_S, Ring, ring_files
from tui.guard.sample import Moment
from tui.runs.lock import LockHeldError

LINE = b"\n" + b"x" * 998 + b"\n"


def append(ring: Ring, when: Moment, lines: bytes = LINE) -> bool:
    is_begun = ring.begin(when, "process 1")
    ring.append(lines)
    return is_begun


def total_bytes(folder: Path) -> int:
    return sum(file.stat().st_size for file in ring_files(folder))


def test_a_new_file_each_hour(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    begun = [append(ring, moment(minute * 60.0)) for minute in range(150)]

    assert [index for index, is_begun in enumerate(begun) if is_begun] == [0, 60, 120]
    assert [file.stat().st_size for file in ring_files(tmp_path)] == [60_000, 60_000, 30_000]


def test_the_oldest_hours_go_after_so_many_days(tmp_path: Path) -> None:
    ring = Ring(tmp_path, days=2)
    for hour in range(60):
        append(ring, moment(hour * HOUR_S), b"%d" % hour)
    kept = [int(file.read_bytes()) for file in ring_files(tmp_path)]

    assert kept == list(range(60 - 49, 60))


def test_never_more_bytes_than_the_limit(tmp_path: Path) -> None:
    limit_bytes = 160_000
    ring = Ring(tmp_path, limit_bytes=limit_bytes)
    for second in range(1000):
        append(ring, moment(float(second)))
        assert total_bytes(tmp_path) <= limit_bytes + len(LINE)

    assert total_bytes(tmp_path) > limit_bytes * 0.8


def test_a_recorder_that_begins_within_the_hour_goes_on_in_the_same_file(tmp_path: Path) -> None:
    for minute in range(0, 59, 2):
        ring = Ring(tmp_path)
        append(ring, moment(minute * 60.0))
        ring.release()

    assert len(ring_files(tmp_path)) == 1
    assert total_bytes(tmp_path) == 30 * len(LINE)


@pytest.mark.parametrize("jump_s", [400 * 86400.0, -400 * 86400.0, -1.7e9, 3e11])
def test_a_clock_that_jumps_drops_nothing(tmp_path: Path, jump_s: float) -> None:
    ring = Ring(tmp_path, days=2)
    for hour in range(20):
        append(ring, moment(hour * HOUR_S), b"%d" % hour)
    jumped = moment(20 * HOUR_S)
    jumped = Moment(at=jumped.at + jump_s, uptime_s=jumped.uptime_s)
    append(ring, jumped, b"20")
    ring.release()
    again = Ring(tmp_path, days=2)
    append(again, moment(21 * HOUR_S), b"21")

    assert [int(file.read_bytes()) for file in ring_files(tmp_path)] == list(range(22))


def test_a_box_that_was_started_again_begins_anew_by_the_clock(tmp_path: Path) -> None:
    ring = Ring(tmp_path)
    append(ring, moment(0.0))
    ring.release()
    assert not ring_files(tmp_path)[1:]
    again = Ring(tmp_path)
    append(again, rebooted(2 * HOUR_S))

    assert len(ring_files(tmp_path)) == 2


def test_one_at_a_time(tmp_path: Path) -> None:
    first, second = Ring(tmp_path), Ring(tmp_path)
    append(first, moment(0.0))
    with pytest.raises(LockHeldError) as held:
        second.begin(moment(1.0), "process 2")
    first.release()

    assert held.value.holder == "process 1"
    assert append(second, moment(2.0))
    assert len(ring_files(tmp_path)) == 1


def test_files_that_are_removed_are_noticed(tmp_path: Path) -> None:
    ring = Ring(tmp_path / "samples")
    append(ring, moment(0.0))
    for file in (tmp_path / "samples").iterdir():
        file.unlink()
    with pytest.raises(FileNotFoundError):
        ring.begin(moment(5.0), "process 1")
    ring.release()

    assert append(ring, moment(10.0))
    assert len(ring_files(tmp_path / "samples")) == 1


def test_other_files_in_the_folder_are_left_alone(tmp_path: Path) -> None:
    strangers = [tmp_path / name for name in ("notes.txt", "1-2.samples", "x.samples", "lock")]
    for stranger in strangers[:3]:
        stranger.write_text("mine")
    ring = Ring(tmp_path, days=0)
    for hour in range(5):
        append(ring, moment(hour * HOUR_S))

    assert [stranger.read_text() for stranger in strangers[:3]] == ["mine"] * 3
    assert len(ring_files(tmp_path)) == 1


def test_a_link_in_the_place_of_a_file_is_not_followed(tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.write_text("kept")
    folder = tmp_path / "samples"
    folder.mkdir()
    (folder / f"00000001-{int(moment(0.0).at)}.samples").symlink_to(precious)
    ring = Ring(folder)
    with pytest.raises(OSError, match="symbolic links"):
        ring.begin(moment(1.0), "process 1")

    assert precious.read_text() == "kept"
