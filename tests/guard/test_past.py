"""A record is read back whatever was done to its files, and in little memory however long it is."""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path

import fakes
import pytest
from fake_box import NOW, history
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import every, left, moment, recorded, samples

from tui.guard.past import past_of, records_in, series_of
from tui.guard.records import Record, read
from tui.guard.sample import Sample
from tui.model.series import LIMIT

Span = tuple[int, int]


def file_of(folder: Path) -> Path:
    (file,) = (folder / "samples").glob("*.samples")
    return file


def spans(content: bytes) -> list[tuple[Span, Record]]:
    """Each record with the bytes it lies on, the line feeds around it left out."""
    found, start = [], 0
    for line in content.split(b"\n"):
        record = read(line)
        if record is not None:
            found.append(((start, start + len(line)), record))
        start += len(line) + 1
    return found


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, bytes]:
    folder = tmp_path_factory.mktemp("run")
    recorded(folder, every(5.0, 25.0, fakes.running()))
    return folder, file_of(folder).read_bytes()


def read_back(whole: tuple[Path, bytes], content: bytes) -> list[Record]:
    file_of(whole[0]).write_bytes(content)
    return list(records_in(whole[0]))


def test_an_untouched_one(whole: tuple[Path, bytes]) -> None:
    assert len(read_back(whole, whole[1])) == len(spans(whole[1])) == 9


def test_cut_off_at_any_byte(whole: tuple[Path, bytes]) -> None:
    content = whole[1]
    for end in range(len(content) + 1):
        kept = [record for (_, last), record in spans(content) if last <= end]

        assert read_back(whole, content[:end]) == kept


def test_any_byte_changed_costs_its_own_record_and_no_other(whole: tuple[Path, bytes]) -> None:
    content = whole[1]
    for where in range(len(content)):
        for value in (0, 10, content[where] ^ 1):
            damaged = bytearray(content)
            damaged[where] = value
            if damaged == content:
                continue
            # The line feeds around it are its own.
            kept = [
                record for (start, end), record in spans(content) if not start - 1 <= where <= end
            ]

            assert read_back(whole, bytes(damaged)) == kept


@settings(deadline=None)
@given(st.integers(0, 2000), st.integers(0, 2000), st.binary(max_size=64) | st.just(b"\0" * 40_000))
def test_a_stretch_of_rubbish_costs_what_it_lies_on(
    whole: tuple[Path, bytes], begin: int, length: int, rubbish: bytes
) -> None:
    content = whole[1]
    damaged = content[:begin] + rubbish + content[begin + length :]
    stop = min(len(content), begin + length)
    untouched = [record for (start, end), record in spans(content) if end < begin or start > stop]
    back = read_back(whole, damaged)

    assert [record for record in back if record in untouched] == untouched
    assert all(record in [each for _, each in spans(content)] for record in back)


def test_a_torn_tail_and_what_was_written_after_it(tmp_path: Path) -> None:
    tape = recorded(tmp_path, every(5.0, 30.0, fakes.running()))
    tape._ring.release()
    file = file_of(tmp_path)
    os.truncate(file, file.stat().st_size - 60)
    with file.open("ab") as torn:
        torn.write(b"\0" * 4096)
    recorded(tmp_path, every(5.0, 60.0, fakes.running(), from_s=35.0))

    assert [round(sample.at - NOW) for sample in past_of(tmp_path)] == [
        *range(0, 30, 5),
        *range(35, 65, 5),
    ]


def test_what_is_no_file_is_passed_over(tmp_path: Path) -> None:
    recorded(tmp_path, every(5.0, 30.0, fakes.running()))
    folder = tmp_path / "samples"
    os.mkfifo(folder / "00000000-1.samples")
    (folder / "00000002-1.samples").mkdir()
    (folder / "00000003-1.samples").symlink_to(folder / "nothing")

    assert len(past_of(tmp_path)) == 7


def test_nothing_recorded_is_no_past(tmp_path: Path) -> None:
    assert past_of(tmp_path) == ()
    assert dict(series_of(())) == {}


def test_from_a_time_on(tmp_path: Path) -> None:
    recorded(tmp_path, every(5.0, 60.0, fakes.running()))

    assert len(past_of(tmp_path, NOW + 31.0)) == 6


def test_a_long_past_is_thinned_and_keeps_its_lows(tmp_path: Path) -> None:
    looks = list(every(5.0, 20_000.0, left(40.0)))
    looks[2345] = (looks[2345][0], left(1.5))
    recorded(tmp_path, looks)
    past = past_of(tmp_path, most=200)
    gaps = [after.at - before.at for before, after in pairwise(past)]

    assert 100 <= len(past) <= 200
    assert min(sample.memory_available_bytes or 0 for sample in past) < 2 * 2**30
    assert past[0].at == NOW
    assert past[-1].at >= NOW + 19_900.0
    assert max(gaps) <= 4 * min(gaps)


def test_series_have_the_names_of_a_snapshots_history(tmp_path: Path) -> None:
    recorded(tmp_path, every(5.0, 60.0, fakes.running()))
    series = series_of(past_of(tmp_path))

    assert set(series) >= {*history(), "progress.rollout", "progress.step"}
    assert series["gpu0.utilisation_ratio"].points[0] == (NOW, 0.96)
    assert series["progress.rollout"].last() == 61.0


def test_series_go_on_after_a_clock_was_set_back() -> None:
    first, second, third = samples(every(5.0, 10.0, fakes.running()))
    points = series_of([first, second, third, second])["gpu0.power_w"].points

    assert [x - NOW for x, _ in points] == [0.0, 5.0]


def test_a_series_is_as_long_as_any_other(tmp_path: Path) -> None:
    recorded(tmp_path, every(5.0, 10_000.0, fakes.running()))

    assert len(series_of(past_of(tmp_path, most=5000))["gpu0.power_w"].points) == LIMIT


def test_only_samples_are_a_past(tmp_path: Path) -> None:
    recorded(tmp_path, every(5.0, 10.0, fakes.running())).end(moment(11.0))

    assert all(isinstance(sample, Sample) for sample in past_of(tmp_path))
