"""What a recorder writes: when it is due, who it is, and what became of what it could not write."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import fakes
import pytest
from fake_box import NOW, gpu, report
from recorded import crashed, doing, every, left, moment, recorded

from tui.guard.past import records_in
from tui.guard.records import Dropped, Ended, Record, Session, Words
from tui.guard.sample import Sample
from tui.model.progress import LineKind, LogLine
from tui.model.reading import known
from tui.model.snapshot import RunState, Verdict

REPOSITORY = Path(__file__).parents[2]


def of(kind: type[Record], folder: Path) -> list[Record]:
    return [record for record in records_in(folder) if isinstance(record, kind)]


def test_once_in_five_seconds_where_nothing_happens(tmp_path: Path) -> None:
    recorded(tmp_path, every(1.0, 60.0, fakes.running()))

    assert len(of(Sample, tmp_path)) == 13


def test_a_publisher_a_little_early_is_no_reason_to_miss_a_turn(tmp_path: Path) -> None:
    looks = [(moment(second * 0.998), fakes.running()) for second in range(61)]
    recorded(tmp_path, looks)

    assert len(of(Sample, tmp_path)) == 13


def test_once_a_second_while_memory_falls(tmp_path: Path) -> None:
    falling = [(moment(10.0 + second), left(37.0 - 3 * second)) for second in range(11)]
    recorded(tmp_path, [*every(1.0, 9.0, left(37.0)), *falling])
    at = [round(sample.at - NOW) for sample in of(Sample, tmp_path) if isinstance(sample, Sample)]

    assert at == [0, 5, *range(10, 21)]


def test_once_a_second_below_the_floor_and_never_more_often(tmp_path: Path) -> None:
    recorded(tmp_path, every(0.2, 20.0, left(2.0)))

    assert len(of(Sample, tmp_path)) == 21


def test_at_once_when_the_run_does_something_else(tmp_path: Path) -> None:
    looks = [*every(1.0, 2.0, doing("generate", 61, 60))]
    looks += every(1.0, 9.0, doing("actor_train", 61, 60), from_s=3.0)
    recorded(tmp_path, looks)
    at = [round(sample.at - NOW) for sample in of(Sample, tmp_path) if isinstance(sample, Sample)]

    assert at == [0, 3, 8]


def test_it_says_who_records_once_and_again_when_that_changes(tmp_path: Path) -> None:
    newer = replace(fakes.running(), gpus=known(report(gpu(), driver_version="595.58.03"), NOW))
    recorded(tmp_path, [*every(5.0, 60.0, fakes.running()), *every(5.0, 90.0, newer, from_s=65.0)])
    sessions = [each for each in of(Session, tmp_path) if isinstance(each, Session)]

    assert [each.box.driver for each in sessions] == ["580.126.09", "595.58.03"]
    assert sessions[0].name == sessions[1].name
    assert sessions[0].roster[0] == (4100, "driver")
    assert sessions[0].log == "runs/plain.log"


def test_each_file_begins_with_who_records(tmp_path: Path) -> None:
    recorded(tmp_path, every(60.0, 3 * 3600.0, fakes.running()))
    files = sorted((tmp_path / "samples").glob("*.samples"))

    assert len(files) == 4
    assert all(file.read_bytes()[1:2] == b"b" for file in files)


def test_telling_lines_of_the_log_are_kept_and_routine_ones_are_not(tmp_path: Path) -> None:
    old = fakes.running()
    lines = [
        LogLine(at=NOW, source="engine 0", text="GET /health 200", kind=LineKind.HTTP),
        LogLine(at=NOW, source="trainer", text="Timer wake_up start", kind=LineKind.PHASE),
        LogLine(at=NOW, source="trainer", text="x" * 500, kind=LineKind.ERROR),
        LogLine(at=NOW, source="engine 0", text="Decode batch", kind=LineKind.ENGINE),
    ]
    new = replace(old, lines=(*old.lines, *lines))
    recorded(tmp_path, [(moment(0.0), old), (moment(5.0), new), (moment(10.0), new)])
    words = [each for each in of(Words, tmp_path) if isinstance(each, Words)]

    assert [each.text for each in words[-2:]] == ["Timer wake_up start", "x" * 160]
    assert len(words) == 4


def test_an_end_in_order_is_told_from_a_crash(tmp_path: Path) -> None:
    crashed(tmp_path / "a", every(5.0, 10.0, fakes.running()))
    recorded(tmp_path / "b", every(5.0, 10.0, fakes.running())).end(moment(11.0))

    assert not of(Ended, tmp_path / "a")
    assert len(of(Ended, tmp_path / "b")) == 1


def test_a_second_tape_waits_for_the_first(tmp_path: Path) -> None:
    first = recorded(tmp_path, every(5.0, 10.0, fakes.running()))
    second = recorded(tmp_path, every(5.0, 20.0, left(5.0), from_s=11.0))
    assert "records this run" in second.notice
    assert len(of(Sample, tmp_path)) == 3
    first.end(moment(21.0))
    second.take(every(5.0, 30.0, left(5.0), from_s=22.0))

    assert second.notice == ""
    assert len(of(Sample, tmp_path)) == 5


FULL = """
import json, logging, resource, sys
sys.path.insert(0, "tests")
from pathlib import Path
import fakes
from recorded import every, moment, recorded

said = []
class Said(logging.Handler):
    def emit(self, record): said.append(record.getMessage())
logging.getLogger("milepost").addHandler(Said())
folder = Path(sys.argv[1])
tape = recorded(folder, every(5.0, 10.0, fakes.running()))
size = sum(file.stat().st_size for file in (folder / "samples").glob("*.samples"))
hard = resource.getrlimit(resource.RLIMIT_FSIZE)[1]
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, hard))
for look in every(5.0, 60.0, fakes.running(), from_s=15.0):
    tape.take((look,))
notice = tape.notice
resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
tape.take(every(5.0, 80.0, fakes.running(), from_s=65.0))
print(json.dumps([notice, tape.notice, said]))
"""


def test_a_disk_without_room_drops_says_so_once_and_goes_on(tmp_path: Path) -> None:
    """The kernel refuses to let the file grow, in the middle of a line, as on a full disk."""
    ran = subprocess.run(
        [sys.executable, "-c", FULL, tmp_path],
        cwd=REPOSITORY, capture_output=True, text=True, check=True,
    )  # fmt: skip
    notice, later, said = json.loads(ran.stdout)
    (dropped,) = of(Dropped, tmp_path)
    assert isinstance(dropped, Dropped)
    at = [round(sample.at - NOW) for sample in of(Sample, tmp_path) if isinstance(sample, Sample)]

    assert notice.startswith("nothing is recorded: ")
    assert later == ""
    assert said == [notice]
    assert (round(dropped.since - NOW), round(dropped.at - NOW), dropped.count) == (15, 60, 10)
    assert at == [0, 5, 10, 65, 70, 75, 80]


def test_a_folder_that_cannot_be_used_is_tried_again(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    place = tmp_path / "run-a"
    place.write_text("a file is in the way")
    with caplog.at_level(logging.WARNING, "milepost"):
        tape = recorded(place, every(5.0, 60.0, fakes.running()))
    assert tape.notice == "nothing is recorded: Not a directory"
    assert len(caplog.records) == 1
    place.unlink()
    tape.take(every(5.0, 70.0, fakes.running(), from_s=65.0))

    assert tape.notice == ""
    assert len(of(Sample, place)) == 2


def test_looks_that_waited_are_written_together(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tape = recorded(tmp_path, every(5.0, 10.0, fakes.running()))
    synced = list[int]()
    monkeypatch.setattr("tui.guard.ring.os.fdatasync", synced.append)
    tape.take(every(1.0, 60.0, fakes.running(), from_s=11.0))

    assert len(of(Sample, tmp_path)) == 3 + 10
    assert len(synced) == 1


def test_a_clock_set_back_hides_nothing(tmp_path: Path) -> None:
    looks = list(every(1.0, 60.0, fakes.running()))
    looks = [
        (replace(when, at=when.at - 86400.0) if index > 30 else when, snapshot)
        for index, (when, snapshot) in enumerate(looks)
    ]
    recorded(tmp_path, looks)

    assert len(of(Sample, tmp_path)) == 13


def test_the_state_is_the_verdicts(tmp_path: Path) -> None:
    stalled = replace(fakes.running(), verdict=Verdict(state=RunState.STALLED))
    recorded(tmp_path, [(moment(0.0), stalled)])
    (sample,) = of(Sample, tmp_path)
    assert isinstance(sample, Sample)

    assert sample.doing.state is RunState.STALLED


def test_what_is_kept_is_for_its_owner_alone(tmp_path: Path) -> None:
    recorded(tmp_path, every(5.0, 10.0, fakes.running()))
    modes = [path.stat().st_mode & 0o077 for path in (tmp_path / "samples").iterdir()]

    assert modes == [0, 0]
    assert (tmp_path / "samples").stat().st_mode & 0o077 == 0
