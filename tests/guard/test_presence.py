"""A guard is seen while it lives, dead when it died, off when it ended; and it can be paused."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import fakes
import pytest
from fake_box import NOW
from rows_read import text

from tui.actions.desk import Desk
from tui.guard import presence as presences
from tui.guard.presence import Presence, Unseen
from tui.model.events import GuardRead
from tui.model.guard import GuardState, GuardStatus
from tui.model.snapshot import Snapshot
from tui.probes.guard import GuardProbe
from tui.runs.guard_card import CARD, LOCK, SILENT_S, guard_of, pause, paused_by, unpause
from tui.runs.lock import LockHeldError, holder_of
from tui.runs.state_dir import made, run_folder
from tui.view import header, report
from tui.view.rows import Look, Role

KILLED = """\
import sys, time
from pathlib import Path
from tui.guard.presence import Presence
seen = Presence("resume", time.time())
seen.watch(Path(sys.argv[1]))
seen.say("watches", time.time())
seen.watch(Path(sys.argv[1]))
print("there", flush=True)
sys.stdin.read()
"""


def wait_until(is_so: Callable[[], object]) -> None:
    deadline = time.monotonic() + 30.0
    while not is_so():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def seen(folder: Path, now: float | None = None) -> GuardStatus:
    status = guard_of(folder, time.time() if now is None else now)
    assert status is not None
    return status


@pytest.fixture
def guard() -> Presence:
    return Presence("resume", NOW, lambda: ("ntfy://•••",))


class TestPresence:
    """What others see of a guard."""

    def test_nobody_was_ever_there(self, tmp_path: Path) -> None:
        assert guard_of(tmp_path, NOW) is None
        assert guard_of(tmp_path / "none", NOW) is None

    def test_while_it_lives(self, tmp_path: Path, guard: Presence) -> None:
        guard.say("verifies checkpoint 60", NOW + 5)
        guard.watch(tmp_path)
        status = seen(tmp_path)

        assert (status.state, status.pid, status.policy) == (GuardState.ON, os.getpid(), "resume")
        assert (status.since, status.words, status.said_at) == (
            NOW,
            "verifies checkpoint 60",
            NOW + 5,
        )
        assert status.channels == ("ntfy://•••",)
        assert abs(time.time() - status.seen_at) < 60.0
        assert (tmp_path / CARD).stat().st_mode & 0o777 == 0o600

    def test_its_words_are_seen_at_the_next_look(self, tmp_path: Path, guard: Presence) -> None:
        guard.watch(tmp_path)
        guard.say("resumes it", NOW + 9)
        guard.watch(tmp_path)
        assert seen(tmp_path).words == "resumes it"

    def test_after_it_said_goodbye(self, tmp_path: Path, guard: Presence) -> None:
        guard.watch(tmp_path)
        guard.end(NOW + 60)
        status = seen(tmp_path)
        assert (status.state, status.seen_at) == (GuardState.OFF, NOW + 60)
        assert holder_of(tmp_path, LOCK) is None

    def test_killed_it_is_dead_and_not_off(self, tmp_path: Path) -> None:
        with subprocess.Popen(
            [sys.executable, "-c", KILLED, str(tmp_path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        ) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"there\n"
            assert seen(tmp_path).state is GuardState.ON
            process.send_signal(signal.SIGKILL)
        status = seen(tmp_path)
        assert (status.state, status.words) == (GuardState.DEAD, "watches")
        assert status.seen_at == pytest.approx(time.time(), abs=60.0)

    def test_one_that_hangs_is_silent(self, tmp_path: Path, guard: Presence) -> None:
        guard.watch(tmp_path)
        assert seen(tmp_path, time.time() + SILENT_S + 9).state is GuardState.SILENT

    def test_a_clock_that_is_set_back_makes_nobody_silent(
        self, tmp_path: Path, guard: Presence
    ) -> None:
        guard.watch(tmp_path)
        assert seen(tmp_path, time.time() - 7200).state is GuardState.ON

    def test_its_sign_of_life_is_given_again(
        self, tmp_path: Path, guard: Presence, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        guard.watch(tmp_path)
        os.utime(tmp_path / LOCK, (NOW, NOW))
        guard.watch(tmp_path)
        assert seen(tmp_path).seen_at == NOW
        monkeypatch.setattr(presences, "BEAT_S", 0.0)
        guard.watch(tmp_path)
        assert seen(tmp_path).seen_at > NOW or time.time() < NOW

    def test_there_is_one_to_a_run(self, tmp_path: Path, guard: Presence) -> None:
        guard.watch(tmp_path)
        second = Presence("none", NOW)
        with pytest.raises(LockHeldError) as held:
            second.watch(tmp_path)
        assert held.value.holder == f"guard, process {os.getpid()}"
        assert seen(tmp_path).policy == "resume"
        guard.end(NOW)
        second.watch(tmp_path)
        assert seen(tmp_path).policy == "none"

    def test_it_moves_with_the_run_and_leaves_nothing_behind(
        self, tmp_path: Path, guard: Presence
    ) -> None:
        before, after = made(tmp_path / "by-log"), made(tmp_path / "by-save")
        guard.watch(before)
        guard.watch(after)
        assert seen(before).state is GuardState.OFF
        assert seen(after).state is GuardState.ON
        guard.watch(after)
        assert seen(after).state is GuardState.ON

    def test_a_folder_that_was_removed_is_made_again(
        self, tmp_path: Path, guard: Presence, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(presences, "BEAT_S", 0.0)
        guard.watch(tmp_path)
        for file in tmp_path.iterdir():
            file.unlink()
        guard.watch(tmp_path)
        assert seen(tmp_path).state is GuardState.ON

    def test_a_folder_that_cannot_be_written_ends_nothing(
        self, tmp_path: Path, guard: Presence
    ) -> None:
        in_the_way = tmp_path / "file"
        in_the_way.touch()
        guard.watch(in_the_way / "folder")
        assert "Not a directory" in guard.fault
        guard.watch(tmp_path)
        assert guard.fault == ""
        assert seen(tmp_path).state is GuardState.ON

    @pytest.mark.parametrize(
        "card",
        ["", "{", "[]", "null", '{"milepost_guard": 2}', '{"milepost_guard": 1, "pid": 1}'],
    )
    def test_a_card_that_is_none_is_no_guard(self, tmp_path: Path, card: str) -> None:
        for written in (card, "[" * 9999):
            (tmp_path / CARD).write_text(written)
            assert guard_of(tmp_path, NOW) is None

    def test_a_card_of_the_one_before_is_not_that_of_who_has_just_begun(
        self, tmp_path: Path, guard: Presence
    ) -> None:
        guard.watch(tmp_path)
        card = json.loads((tmp_path / CARD).read_text())
        (tmp_path / CARD).write_text(json.dumps({**card, "pid": 1}))
        assert guard_of(tmp_path, NOW) is None

    def test_one_that_does_nothing_is_not_seen(self, tmp_path: Path) -> None:
        unseen = Unseen()
        unseen.watch(tmp_path)
        unseen.say("would resume it", NOW)
        unseen.end(NOW)
        assert list(tmp_path.iterdir()) == []


class TestPause:
    """A person outranks it."""

    def test_it_is_paused_until_told_otherwise(self, tmp_path: Path, guard: Presence) -> None:
        guard.watch(tmp_path)
        pause(tmp_path, "a person at the screen")
        assert seen(tmp_path).paused == "a person at the screen"
        guard.end(NOW)
        assert paused_by(tmp_path) == "a person at the screen"
        unpause(tmp_path)
        unpause(tmp_path)
        assert paused_by(tmp_path) == ""

    def test_an_empty_or_unreadable_word_is_a_pause_too(self, tmp_path: Path) -> None:
        (tmp_path / "guard.paused").touch()
        assert paused_by(tmp_path) == "somebody"
        (tmp_path / "guard.paused").unlink()
        (tmp_path / "guard.paused").mkdir()
        assert paused_by(tmp_path) == "somebody"

    @pytest.mark.parametrize("read_only", [False, True])
    def test_the_desk_pauses_and_only_read_only_does_not_go_on(self, *, read_only: bool) -> None:
        snapshot = fakes.guarded()
        folder = run_folder(snapshot.attachment)
        desk = Desk(lambda: snapshot, read_only=read_only)
        assert desk.pause_guard(paused=True) == ""
        assert paused_by(folder) == "a person at the screen"
        told = desk.pause_guard(paused=False)
        assert bool(told) is read_only
        assert bool(paused_by(folder)) is read_only


class TestProbe:
    """Into the snapshot, when it is news."""

    def test_it_tells_what_changed(self, tmp_path: Path, guard: Presence) -> None:
        snapshot = fakes.running()
        probe, folder = GuardProbe(), made(run_folder(snapshot.attachment))
        assert probe.read(NOW, snapshot) == ()

        guard.watch(folder)
        now = time.time()
        (event,) = probe.read(now, snapshot)
        assert isinstance(event, GuardRead)
        assert event.guard is not None
        assert event.guard.is_on
        assert probe.read(now, snapshot) == ()

        guard.end(now)
        (event,) = probe.read(now, snapshot)
        assert isinstance(event, GuardRead)
        assert event.guard is not None
        assert not event.guard.is_on


class TestSaid:
    """On the screen and in the report."""

    @pytest.mark.parametrize(
        ("snapshot", "wide", "narrow"),
        [
            (fakes.running(), "guard off", ""),
            (fakes.guarded(), "guard on: resume since 14:00", "guard on"),
            (fakes.guarded(policy="none"), "guard on since 14:00", "guard on"),
            (fakes.guarded(paused="a person"), "guard paused: resume", "guard paused"),
            (fakes.guarded(state=GuardState.OFF), "guard off", ""),
            (
                fakes.guarded(state=GuardState.DEAD, seen_at=NOW - 180),
                "guard died 3 min ago",
                "guard died",
            ),
            (
                fakes.guarded(state=GuardState.SILENT, seen_at=NOW - 180),
                "guard silent for 3 min",
                "guard silent",
            ),
        ],
    )
    def test_by_the_header(self, snapshot: Snapshot, wide: str, narrow: str) -> None:
        assert wide in text(header.rows(snapshot, 160, 1, Look()))
        shown = text(header.rows(snapshot, 80, 1, Look()))
        assert narrow in shown if narrow else "guard" not in shown
        assert "● RUNNING" in shown
        assert "14:02:11" in shown

    def test_a_dead_one_warns_and_stays_longest(self) -> None:
        dead = fakes.guarded(state=GuardState.DEAD)
        (row,) = header.rows(dead, 40, 1, Look())
        assert "guard died" in text((row,))
        assert any(span.role is Role.WARNING and "guard" in span.text for span in row)

    def test_by_the_report(self) -> None:
        told = text(report.rows(fakes.guarded(paused="milepost guard --pause"), 100, Look()))
        assert "guard        paused: policy resume, since 14:00, process 5150" in told
        assert "paused by milepost guard --pause: it tells, and does not act" in told
        assert "watches, 2 min ago" in told
        assert "· ntfy://•••" in told

    def test_a_copied_log_has_no_guard(self) -> None:
        copied = replace(fakes.running(), live=False)
        assert "guard" not in text(header.rows(copied, 160, 1, Look()))
        assert "guard" not in text(report.rows(copied, 100, Look()))
