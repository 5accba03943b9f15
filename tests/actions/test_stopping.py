"""A tree of processes is asked, given time, forced, and what does not die is said."""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Iterable
from pathlib import Path

import psutil
import pytest
from families import Families, until
from hypothesis import given
from hypothesis import strategies as st

from tui.actions.process_table import read_row, stuck_in
from tui.actions.signals import Delivered, Delivery, target_of
from tui.actions.stopping import (
    Ask,
    Ended,
    Escalation,
    Force,
    Leave,
    Patience,
    Wait,
    World,
    decided,
    stop_tree,
)
from tui.model.target import ProcessTarget

SHORT = Patience(grace_s=0.5, linger_s=0.3, kill_s=20.0)
LONG = Patience(grace_s=60.0, linger_s=60.0, kill_s=60.0)


def started(families: Families, script: str, *args: str | Path) -> ProcessTarget:
    """A Python that prints a line when it is ready."""
    process = families.start(sys.executable, "-c", script, *args)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    found = target_of(process.pid, "the driver")
    assert found is not None
    return found


_CLEAN = """
import signal, subprocess, sys, time
child = subprocess.Popen(["sleep", "1000"])
def end(number, frame):
    child.terminate()
    open(sys.argv[1], "w").write("ended well")
    sys.exit(0)
signal.signal(signal.SIGTERM, end)
print("ready", flush=True)
while True:
    time.sleep(1000)
"""


def test_one_that_ends_well_is_let(families: Families, tmp_path: Path) -> None:
    top = started(families, _CLEAN, tmp_path / "end")
    said: list[str] = []
    stopped = stop_tree(top, patience=LONG, note=said.append)
    assert stopped.ended is Ended.ENDED
    assert stopped.is_gone
    assert (tmp_path / "end").read_text() == "ended well"
    assert said == [f"asking {top.pid} the driver to end (SIGTERM)"]
    assert len(stopped.members) == 2
    assert families.living() == []
    assert stop_tree(top, patience=LONG).ended is Ended.ALREADY_GONE


_DEAF = """
import os, signal, subprocess, sys, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
deaf = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(1000)"
child = subprocess.Popen([sys.executable, "-c", deaf], stdout=subprocess.PIPE)
child.stdout.readline()
print("ready", flush=True)
time.sleep(1000)
"""


def test_a_tree_that_does_not_listen_is_forced(families: Families) -> None:
    top = started(families, _DEAF)
    said: list[str] = []
    stopped = stop_tree(top, patience=SHORT, note=said.append)
    assert stopped.ended is Ended.FORCED
    assert stopped.line == "2 processes had to be forced to end"
    assert [line.split()[0] for line in said] == ["asking", "forcing"]
    assert stopped.seconds >= SHORT.grace_s
    assert families.living() == []


_DAEMON = """
import os, signal, sys, time
reader, writer = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(writer, b"x")
        time.sleep(1000)
    if sys.argv[1] == "now":
        os._exit(0)
    time.sleep(1000)
os.read(reader, 1)
if sys.argv[1] == "now":
    os.wait()
print("ready", flush=True)
time.sleep(1000)
"""


def test_a_daemon_whose_maker_lives_goes_with_the_tree(families: Families) -> None:
    top = started(families, _DAEMON, "later")
    stopped = stop_tree(top, patience=SHORT)
    assert stopped.ended is Ended.FORCED
    assert families.living() == []


def test_a_daemon_that_left_the_tree_goes_with_it_where_it_is_known(families: Families) -> None:
    """Its maker is gone and its session is its own: by kinship alone it is a stranger."""
    top = started(families, _DAEMON, "now")
    (daemon,) = (each.pid for each in families.living() if each.pid != top.pid)
    assert read_row(daemon) is not None
    known = target_of(daemon, "a daemon")
    assert known is not None
    stopped = stop_tree(top, patience=SHORT)
    assert stopped.is_gone
    assert [each.pid for each in families.living()] == [daemon]
    stopped = stop_tree(top, (known,), patience=SHORT)
    assert stopped.is_gone
    assert families.living() == []


_ZOMBIE_CHILD = """
import subprocess, time
child = subprocess.Popen(["true"])
while open(f"/proc/{child.pid}/stat").read().rpartition(")")[2].split()[0] != "Z":
    pass
print("ready", flush=True)
time.sleep(1000)
"""


def test_a_zombie_is_not_waited_for(families: Families) -> None:
    """The one on top is ours and stays a zombie until the test reaps it; so is its child."""
    top = started(families, _ZOMBIE_CHILD)
    stopped = stop_tree(top, patience=LONG)
    assert psutil.Process(top.pid).status() == psutil.STATUS_ZOMBIE
    assert stopped.ended is Ended.ENDED


def test_an_attempt_that_was_cut_short_is_finished_by_the_next(families: Families) -> None:
    """The one on top has ended since, and what is left is told by the first attempt's members."""
    top = started(families, _DEAF)
    members = tuple(
        found for each in families.living() if (found := target_of(each.pid)) is not None
    )
    os.kill(top.pid, signal.SIGKILL)
    os.waitpid(top.pid, 0)
    stopped = stop_tree(top, members, patience=SHORT)
    assert stopped.ended is Ended.FORCED
    assert families.living() == []


def test_a_held_process_is_forced(families: Families) -> None:
    process = families.start("sleep", "1000")
    os.kill(process.pid, signal.SIGSTOP)
    until(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
    top = target_of(process.pid)
    assert top is not None
    assert stop_tree(top, patience=SHORT).ended is Ended.FORCED


_DEAF_IN_THE_KERNEL = """
import ctypes, time
print("ready", flush=True)
ctypes.PyDLL(None).vfork() or time.sleep(1000)
"""


def test_where_a_process_is_deaf_to_signals_is_told(families: Families) -> None:
    """One that made a child with `vfork` waits for it as one waits for a driver: in state D."""
    top = started(families, _DEAF_IN_THE_KERNEL)
    until(lambda: stuck_in(top.pid) != "")
    world = World(send=lambda *_: Delivery(result=Delivered.SENT))
    stopped = stop_tree(top, patience=Patience(grace_s=0.1, kill_s=0.2), world=world)
    assert stopped.ended is Ended.SURVIVED
    (survivor,) = (each for each in stopped.survivors if each.target == top)
    assert survivor.state == "D"
    assert f"process {top.pid} the driver, state D in {survivor.waits_in}" in stopped.line
    assert stop_tree(top, patience=SHORT).is_gone


# Decisions, with a world of our own

TOP, CHILD, LATE = (
    ProcessTarget(pid=pid, start_ticks=pid, boot_id="b", title=title)
    for pid, title in ((2**22 + 1, "driver"), (2**22 + 2, "engine"), (2**22 + 3, "late"))
)
PATIENCE = Patience(grace_s=30.0, linger_s=3.0, kill_s=15.0)


class Fake:
    """Time and processes: each dies at a time, or by a signal, or not at all."""

    def __init__(self, *alive: ProcessTarget, dies_of: dict[int, set[int]] | None = None) -> None:
        self.now = 0.0
        self.alive = list(alive)
        self.dies_of = dies_of or {}
        self.sent: list[tuple[float, int, int]] = []
        self.refuses: set[int] = set()
        self.comes: tuple[float, ProcessTarget] | None = None

    def look(self, _: Iterable[ProcessTarget]) -> tuple[ProcessTarget, ...]:
        if self.comes is not None and self.now >= self.comes[0]:
            self.alive.append(self.comes[1])
            self.comes = None
        return tuple(self.alive)

    def send(self, target: ProcessTarget, number: signal.Signals) -> Delivery:
        self.sent.append((round(self.now), target.pid, int(number)))
        if target.pid in self.refuses:
            return Delivery(result=Delivered.REFUSED, reason="another user's")
        if number in self.dies_of.get(target.pid, {signal.SIGTERM, signal.SIGKILL}):
            self.alive.remove(target)
        return Delivery(result=Delivered.SENT)

    def pause(self, seconds: float) -> None:
        self.now += seconds

    @property
    def world(self) -> World:
        return World(look=self.look, send=self.send, clock=lambda: self.now, pause=self.pause)


def test_only_the_one_on_top_is_asked_and_the_rest_lingers() -> None:
    fake = Fake(TOP, CHILD)
    stopped = stop_tree(TOP, patience=PATIENCE, world=fake.world)
    assert fake.sent == [(0, TOP.pid, signal.SIGTERM), (3, CHILD.pid, signal.SIGKILL)]
    assert stopped.ended is Ended.FORCED
    assert stopped.line == "1 process had to be forced to end"


def test_without_one_on_top_all_are_asked() -> None:
    fake = Fake(CHILD)
    assert stop_tree(TOP, (CHILD,), patience=PATIENCE, world=fake.world).ended is Ended.ENDED
    assert fake.sent == [(0, CHILD.pid, signal.SIGTERM)]


def test_what_appears_late_is_forced_too() -> None:
    fake = Fake(TOP, dies_of={TOP.pid: {signal.SIGKILL}})
    fake.comes = (30.0, LATE)
    stopped = stop_tree(TOP, patience=PATIENCE, world=fake.world)
    assert {pid for _, pid, number in fake.sent if number == signal.SIGKILL} == {TOP.pid, LATE.pid}
    assert stopped.ended is Ended.FORCED


def test_what_does_not_die_is_said() -> None:
    fake = Fake(TOP, CHILD, dies_of={TOP.pid: {signal.SIGKILL}, CHILD.pid: set()})
    stopped = stop_tree(TOP, patience=PATIENCE, world=fake.world)
    assert stopped.ended is Ended.SURVIVED
    assert not stopped.is_gone
    assert [each.target for each in stopped.survivors] == [CHILD]
    assert stopped.line.startswith(
        f"does not die: host action needed: process {CHILD.pid} engine, state"
    )
    assert 45.0 <= stopped.seconds <= 46.0
    assert [number for _, pid, number in fake.sent if pid == CHILD.pid] == [signal.SIGKILL]


def test_no_right_to_is_said_at_once() -> None:
    fake = Fake(TOP, CHILD)
    fake.refuses = {TOP.pid}
    stopped = stop_tree(TOP, patience=PATIENCE, world=fake.world)
    assert (stopped.ended, stopped.line) == (Ended.REFUSED, "another user's")
    assert not stopped.is_gone
    assert [pid for _, pid, _ in fake.sent] == [TOP.pid]


def test_a_title_that_changes_makes_no_other_process() -> None:
    renamed = ProcessTarget(pid=TOP.pid, start_ticks=TOP.start_ticks, boot_id="b", title="ray::X")
    fake = Fake(renamed)
    assert stop_tree(TOP, patience=PATIENCE, world=fake.world).ended is Ended.ENDED
    assert fake.sent == [(0, TOP.pid, signal.SIGTERM)]


TIMES = st.none() | st.floats(min_value=0.0, max_value=100.0)


@given(
    asked_at=TIMES,
    top_gone_at=TIMES,
    forced_at=TIMES,
    top_lives=st.booleans(),
    child_lives=st.booleans(),
    now=st.floats(min_value=100.0, max_value=200.0),
)
def test_every_state_has_one_next_move(
    asked_at: float | None,
    top_gone_at: float | None,
    forced_at: float | None,
    top_lives: bool,
    child_lives: bool,
    now: float,
) -> None:
    alive = (*((TOP,) if top_lives else ()), *((CHILD,) if child_lives else ()))
    forced = frozenset(("b", each.pid, each.start_ticks) for each in alive)
    so_far = Escalation(
        patience=PATIENCE,
        asked_at=asked_at,
        top_gone_at=top_gone_at,
        forced_at=forced_at if asked_at is not None else None,
        forced=forced if asked_at is not None and forced_at is not None else frozenset(),
    )
    move = decided(so_far, TOP, alive, now)
    match move:
        case Leave():
            assert not alive or (forced_at is not None and now >= forced_at + PATIENCE.kill_s)
        case Ask():
            assert asked_at is None
            assert move.targets == ((TOP,) if top_lives else alive)
        case Force():
            assert asked_at is not None
            assert forced_at is None
            assert move.targets == alive
        case Wait():
            assert alive


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_neighbour_in_the_same_session_is_left_alone(
    families: Families, number: signal.Signals
) -> None:
    """Both were started by one shell; the run is one of its jobs."""
    script = "set -m; sleep 1000 & echo $!; sleep 1001 & echo $!; wait"
    shell = families.start("bash", "-c", script)
    assert shell.stdout is not None
    run, neighbour = (int(shell.stdout.readline()) for _ in range(2))
    top = target_of(run)
    assert top is not None
    if number == signal.SIGKILL:
        os.kill(run, signal.SIGSTOP)
    assert stop_tree(top, patience=SHORT).is_gone
    assert psutil.pid_exists(neighbour)
    assert shell.poll() is None
