"""A guard's own files follow the run to its folder, bounded, and silent when they cannot be kept."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterator
from dataclasses import replace

import fakes
import pytest

from tui.guard import keeping
from tui.guard.keeping import LOG, RunKeeper
from tui.guard.past import past_of
from tui.guard.recorder import recorder_of
from tui.model.snapshot import Snapshot
from tui.runs.state_dir import run_folder

MILEPOST = logging.getLogger("milepost")
BY_SAVE = fakes.running()
BY_LOG = replace(BY_SAVE, attachment=replace(BY_SAVE.attachment, checkpoints=None))


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.fixture(autouse=True)
def _as_it_was() -> Iterator[None]:
    level, handlers = MILEPOST.level, list(MILEPOST.handlers)
    yield
    assert MILEPOST.handlers == handlers
    MILEPOST.setLevel(level)


@pytest.fixture
def keeper() -> Iterator[RunKeeper]:
    keeper = RunKeeper()
    yield keeper
    keeper.close()


def test_samples_and_log_move_with_the_run(keeper: RunKeeper) -> None:
    before, after = run_folder(BY_LOG.attachment), run_folder(BY_SAVE.attachment)
    assert before != after
    keeper.record(BY_LOG)
    wait_until(lambda: past_of(before))
    MILEPOST.info("first")
    keeper.record(BY_SAVE)
    wait_until(lambda: past_of(after))
    MILEPOST.info("second")

    assert "first" in (before / LOG).read_text()
    assert "second" not in (before / LOG).read_text()
    assert "second" in (after / LOG).read_text()
    assert recorder_of(before) is None
    keeper.close()
    assert recorder_of(after) is None


def test_before_there_is_a_run_nothing_is_kept(keeper: RunKeeper) -> None:
    keeper.record(Snapshot())
    assert not run_folder(Snapshot().attachment).exists()


def test_the_log_is_bounded(keeper: RunKeeper, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keeping, "_LOG_BYTES", 10_000)
    before = len(MILEPOST.handlers)
    keeper.record(BY_SAVE)
    wait_until(lambda: len(MILEPOST.handlers) > before)
    for n in range(2_000):
        MILEPOST.warning("channel %d: not told", n)
    folder = run_folder(BY_SAVE.attachment)
    logs = sorted(folder.glob(f"{LOG}*"))
    assert [log.name for log in logs] == [LOG, f"{LOG}.1"]
    assert sum(log.stat().st_size for log in logs) <= 20_000
    assert "channel 1999" in logs[0].read_text()


def test_a_folder_that_cannot_be_written_ends_nothing(
    keeper: RunKeeper, capfd: pytest.CaptureFixture[str]
) -> None:
    folder = run_folder(BY_SAVE.attachment)
    folder.parent.mkdir(parents=True)
    folder.touch()
    keeper.record(BY_SAVE)
    MILEPOST.warning("told to nobody")
    assert "Traceback" not in capfd.readouterr().err
