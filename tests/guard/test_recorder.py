"""The recorder as it runs: on a thread of its own, one to a run, whatever ends it."""

from __future__ import annotations

import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import fakes
import pytest

from tui.guard.past import past_of, records_in
from tui.guard.recorder import Recorder, recorder_of
from tui.guard.records import Ended, Session, read
from tui.guard.sample import Moment, Sample
from tui.guard.tape import Tape
from tui.model.snapshot import Snapshot

REPOSITORY = Path(__file__).parents[2]


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 60.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture
def recorder(tmp_path: Path) -> Iterator[Recorder]:
    made = Recorder(tmp_path)
    made.start()
    yield made
    made.close()


def test_what_is_published_is_on_the_disk(tmp_path: Path, recorder: Recorder) -> None:
    recorder.record(fakes.running())
    wait_until(lambda: past_of(tmp_path))

    assert past_of(tmp_path)[0].doing.phase == "actor_train"
    assert recorder.notice == ""
    assert recorder_of(tmp_path) is not None


def test_it_ends_in_order_and_with_what_came_last(tmp_path: Path) -> None:
    recorder = Recorder(tmp_path)
    recorder.start()
    recorder.record(fakes.running())
    recorder.close()
    session, *_, sample, ended = records_in(tmp_path)

    assert isinstance(session, Session)
    assert isinstance(sample, Sample)
    assert isinstance(ended, Ended)
    assert recorder_of(tmp_path) is None


def test_nobody_who_publishes_waits_for_a_stuck_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate, stuck, taken = threading.Event(), threading.Event(), list[float]()

    def take(_: Tape, looks: Iterable[tuple[Moment, Snapshot]]) -> None:
        taken.extend(snapshot.now for _, snapshot in looks)
        stuck.set()
        gate.wait()

    monkeypatch.setattr(Tape, "take", take)
    recorder = Recorder(tmp_path)
    recorder.start()
    recorder.record(Snapshot(now=0.0))
    stuck.wait()
    for number in range(1, 1001):
        recorder.record(Snapshot(now=float(number)))
    assert taken == [0.0]
    gate.set()
    recorder.close()

    assert taken == [0.0, *range(1000 - 63, 1001)]


def test_a_bug_is_told_once_and_does_not_end_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    seen = list[int]()

    def take(_: Tape, looks: Iterable[object]) -> None:
        seen.append(len(list(looks)))
        raise ValueError("a bug")

    monkeypatch.setattr(Tape, "take", take)
    recorder = Recorder(tmp_path)
    recorder.start()
    for number in range(3):
        recorder.record(fakes.running())
        wait_until(lambda: sum(seen) > number)  # noqa: B023 - it is over before the next number
    recorder.close()

    assert [record.message for record in caplog.records] == ["a look was not recorded"]


CHILD = """
import sys
sys.path.insert(0, "tests")
from pathlib import Path
import fakes
from recorded import every, left, recorded

for number in range(100_000):
    tape = recorded(Path(sys.argv[1]), every(1.0, 600.0, left(1.0)))
    print(number, flush=True)
    tape._ring.release()
"""
"""Writes as fast as it can, some 600 samples a round, each seen on the disk."""


def test_kill_9_at_any_time_leaves_whole_lines_and_a_free_run(tmp_path: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", CHILD, tmp_path], cwd=REPOSITORY, stdout=subprocess.PIPE
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        held = Recorder(tmp_path)
        held.start()
        child.send_signal(signal.SIGKILL)
        child.wait()
        held.record(fakes.running())
        wait_until(lambda: any(isinstance(each, Session) for each in records_in(tmp_path)))
        held.close()
    content = b"".join(
        file.read_bytes() for file in sorted((tmp_path / "samples").glob("*.samples"))
    )
    lines = [line for line in content.split(b"\n") if line]
    torn = [line for line in lines if read(line) is None]

    assert len(lines) > 600
    assert len(torn) <= 1
    assert isinstance(read(lines[-1]), Ended)


def test_of_two_processes_one_records_and_the_other_takes_over(tmp_path: Path) -> None:
    code = (
        "import sys, time; sys.path.insert(0, 'tests'); from pathlib import Path; import fakes;"
        "from tui.guard.recorder import Recorder; r = Recorder(Path(sys.argv[1])); r.start();"
        "r.record(fakes.running()); print(flush=True); sys.stdin.read()"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path],
        cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    ) as other:  # fmt: skip
        wait_until(lambda: past_of(tmp_path))
        mine = Recorder(tmp_path)
        mine.start()
        mine.record(fakes.stalled())
        wait_until(lambda: mine.notice)
        assert mine.notice == f"process {other.pid} records this run"
        assert recorder_of(tmp_path) == f"process {other.pid}"
        other.send_signal(signal.SIGKILL)

    def has_taken_over() -> bool:
        mine.record(fakes.finished())
        return not mine.notice

    wait_until(has_taken_over)
    mine.close()

    assert [sample.doing.state.value for sample in past_of(tmp_path)] == ["running", "finished"]
