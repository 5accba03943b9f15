"""Following a run's log: newest state first, the past behind it, nothing lost or doubled."""

from __future__ import annotations

import itertools
import os
import time
from collections.abc import Callable
from pathlib import Path

import logs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.miles.stamps import seconds_of
from tui.model import events
from tui.model.launch import Attachment, Found
from tui.model.progress import LineKind, Story
from tui.model.reduce import reduced
from tui.model.snapshot import Snapshot
from tui.probes import log_tail
from tui.probes.log_tail import LogProbe

DEADLINE_S = 200.0


def watching(path: Path) -> Snapshot:
    return Snapshot(attachment=Attachment(log=Found(value=str(path), source="test")))


def until(probe: LogProbe, snapshot: Snapshot, done: Callable[[Snapshot], bool]) -> Snapshot:
    end = time.monotonic() + DEADLINE_S
    while time.monotonic() < end:
        snapshot = reduced(snapshot, probe.read(time.time(), snapshot))
        if done(snapshot):
            return snapshot
        time.sleep(0.01)
    raise AssertionError("the condition did not come true")


def told(snapshot: Snapshot) -> Story:
    return snapshot.story


def test_the_past_is_joined_to_what_came_since(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A window of the last few lines, and the whole log behind it: the same story as read at once."""
    monkeypatch.setattr(log_tail, "WINDOW_BYTES", 4000)
    whole = (data / "captures" / "sentinel.log").read_bytes()
    log = tmp_path / "plain.log"
    log.write_bytes(whole)
    probe = LogProbe()
    first = reduced(watching(log), probe.read(time.time(), watching(log)))
    snapshot = until(probe, first, lambda seen: seen.story.first_rollout == 6)

    expected = logs.story_of(whole.decode().split("\n"))
    assert told(snapshot).step == expected.step == 11
    assert told(snapshot).rollouts_done == expected.rollouts_done == 6
    assert told(snapshot).steps_seen == expected.steps_seen
    assert told(snapshot).durations == expected.durations
    assert [s.iteration for s in told(snapshot).saves] == [7, 10, 12]
    assert told(snapshot).ending is not None


def test_the_newest_state_is_there_before_the_past(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(log_tail, "WINDOW_BYTES", 1000)
    monkeypatch.setattr(log_tail._Past, "start", lambda self: None)  # the past never comes
    log = tmp_path / "plain.log"
    log.write_text(
        "\n".join(logs.step(f"10:{n // 60:02d}:{n % 60:02d}", n) for n in range(900)) + "\n"
    )
    probe = LogProbe()
    snapshot = reduced(watching(log), probe.read(time.time(), watching(log)))

    assert snapshot.story.step == 899
    assert snapshot.log.history_ratio < 1.0


def test_old_lines_are_dated_by_the_files_last_write(tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    log.write_text(logs.step("10:00:00", 1) + "\n" + logs.step("10:05:00", 2) + "\n")
    written_at = (seconds_of(f"{logs.DAY} 10:05:00") or 0.0) + 9 * 3600.0 + 20.0
    os.utime(log, (written_at, written_at))
    snapshot = watching(log)
    snapshot = reduced(snapshot, LogProbe().read(time.time(), snapshot))

    assert snapshot.story.progress is not None
    assert written_at - snapshot.story.progress.at == pytest.approx(20.0)
    assert snapshot.story.started_at is not None
    assert snapshot.story.progress.at - snapshot.story.started_at == pytest.approx(300, abs=1)


def test_a_log_that_comes_later(tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    probe = LogProbe()
    snapshot = reduced(watching(log), probe.read(time.time(), watching(log)))
    assert snapshot.log.fault is not None

    log.write_text(logs.step("10:00:00", 1) + "\n")
    snapshot = reduced(snapshot, probe.read(time.time(), snapshot))
    assert snapshot.log.fault is None
    assert snapshot.story.step == 1


def test_a_truncated_log_is_marked_and_read_on(tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    log.write_text("".join(logs.step(f"10:00:{n:02d}", n) + "\n" for n in range(9)))
    probe = LogProbe()
    snapshot = reduced(watching(log), probe.read(time.time(), watching(log)))
    log.write_text(logs.step("10:01:00", 9) + "\n")
    snapshot = until(probe, snapshot, lambda seen: seen.story.step == 9)

    marks = [line.text for line in snapshot.lines if line.kind is LineKind.MARK]
    assert marks == ["the log was truncated here"]
    assert snapshot.story.steps_seen == 10


def test_a_bar_without_a_newline_moves(tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    log.write_text(
        f"{logs.ROLLOUT}Rollout generation:  12%|#1        | 32/256 [00:07<00:52,  4.27it/s]"
    )
    probe = LogProbe()
    snapshot = reduced(watching(log), probe.read(time.time(), watching(log)))

    assert snapshot.story.bar is not None
    assert (snapshot.story.bar.done, snapshot.story.bar.total) == (32, 256)


CAPTURE = (Path(__file__).parents[1] / "data" / "captures" / "resume.log").read_bytes()


@settings(
    max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(cuts=st.lists(st.integers(0, len(CAPTURE)), max_size=12))
def test_any_split_of_the_bytes_into_writes_tells_the_same_story(
    tmp_path_factory: pytest.TempPathFactory, cuts: list[int]
) -> None:
    log = tmp_path_factory.mktemp("split") / "plain.log"
    log.touch()
    probe = LogProbe()
    found: list[events.Event] = []
    snapshot = watching(log)
    bounds = [0, *sorted(cuts), len(CAPTURE)]
    with log.open("ab") as out:
        for start, end in itertools.pairwise(bounds):
            out.write(CAPTURE[start:end])
            out.flush()
            found += probe.read(1_800_000_000.0, snapshot)

    kinds = (
        events.MetricsLogged,
        events.CheckpointSave,
        events.CheckpointLoad,
        events.RunEnded,
        events.PhaseEnded,
    )
    told = [type(e) for e in found if isinstance(e, kinds)]
    expected = [
        type(e) for e in logs.parsed(CAPTURE.decode().split("\n"))[0] if isinstance(e, kinds)
    ]
    assert told == expected


@settings(max_examples=60, deadline=None)
@given(junk=st.lists(st.binary(max_size=400), max_size=20))
def test_any_bytes_at_all(tmp_path_factory: pytest.TempPathFactory, junk: list[bytes]) -> None:
    log = tmp_path_factory.mktemp("junk") / "plain.log"
    log.write_bytes(b"\n".join(junk))
    snapshot = watching(log)
    snapshot = reduced(snapshot, LogProbe().read(1.0, snapshot))

    assert snapshot.log.size_bytes == log.stat().st_size


def stamped(at: float, ahead_s: float, message: str) -> str:
    """A record of the trainer in a zone so far ahead of UTC."""
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at + ahead_s))
    return f"{logs.TRAINER}[{clock}.000 actor_cell0_rank0] log_utils.py:542 - {message}\n"


def batch(at: float, ahead_s: float) -> str:
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at + ahead_s))
    return (
        f"{logs.ENGINE}[{clock}] Decode batch, #running-req: 3, #token: 9, token usage: 0.10, "
        "cuda graph: True, gen throughput (token/s): 99.0, #queue-req: 0\n"
    )


def job(at: float, ahead_s: float) -> str:
    clock = time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(at + ahead_s))
    return f"{clock},001\tINFO cli.py:41 -- Job submission server address: http://127.0.0.1:8265\n"


HOUR = 3600.0


@pytest.mark.parametrize("order", [(0, 9, 2), (9, 0, 2), (2, 9, 0), (0, -7, 0)])
def test_three_clocks_in_one_log_leave_ages_right(order: tuple[int, ...], tmp_path: Path) -> None:
    """The trainer in a container at UTC, the engines and the job's client elsewhere."""
    trainer, engine, client = (hours * HOUR for hours in order)
    log, now = tmp_path / "plain.log", time.time()
    log.write_text(
        "".join(
            job(now - left, client)
            + stamped(now - left, trainer, f"step {number}: {{'train/loss': 0.1}}")
            + batch(now - left, engine)
            for number, left in enumerate((600, 400, 200, 1))
        )
    )
    probe = LogProbe()
    snapshot = reduced(watching(log), probe.read(now, watching(log)))
    assert snapshot.story.progress is not None
    assert now - snapshot.story.progress.at == pytest.approx(1, abs=5)
    for number in range(4, 8):
        now += 100.0
        with log.open("a") as out:
            out.write(
                job(now, client)
                + batch(now, engine)
                + stamped(now, trainer, f"step {number}: {{'train/loss': 0.1}}")
            )
        snapshot = reduced(snapshot, probe.read(now, snapshot))
        assert snapshot.story.step == number
        assert snapshot.story.progress is not None
        assert snapshot.now == pytest.approx(now, abs=1)
        assert now - snapshot.story.progress.at == pytest.approx(0, abs=5)
        assert all(now - line.at < 5 for line in snapshot.lines[-3:])


def test_a_log_written_byte_by_byte_with_crlf_and_nuls(tmp_path: Path) -> None:
    """Characters torn at every place, line ends of another system, NULs of a lost write."""
    log, probe = tmp_path / "plain.log", LogProbe()
    text = "\0\0" + logs.step("10:00:00", 1) + "\r\n" + logs.rollout("10:00:01", "答案 🚀") + "\r\n"
    log.touch()
    snapshot = reduced(watching(log), probe.read(1.0, watching(log)))
    for byte in text.encode():
        with log.open("ab") as out:
            out.write(bytes((byte,)))
        snapshot = reduced(snapshot, probe.read(1.0, snapshot))
    assert snapshot.story.step == 1
    assert [line.text for line in snapshot.lines] == [
        "step 1: {'train/loss': 0.01, 'train/grad_norm': 0.9, 'train/step': 1}",
        "答案 🚀",
    ]


def test_a_line_of_five_megabytes_between_two_others(tmp_path: Path) -> None:
    log, probe = tmp_path / "plain.log", LogProbe()
    log.write_text(logs.step("10:00:00", 1) + "\n")
    snapshot = reduced(watching(log), probe.read(1.0, watching(log)))
    with log.open("a") as out:
        out.write(logs.rollout("10:00:01", f"Finish rollout: text_preview={'x' * 5_000_000}\n"))
        out.write(logs.step("10:00:02", 2) + "\n")
    snapshot = until(probe, snapshot, lambda seen: seen.story.step == 2)
    assert max(len(line.text) for line in snapshot.lines) <= 2000
