"""A command is started once, detached, whoever is killed on the way."""

from __future__ import annotations

import os
import random
import signal
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
from begun import Stage, is_alive, killed_after, killed_at, staged, wait_until

from tui.actions import spawn, spawning
from tui.model.action import ActionState
from tui.model.plan import ActionPlan
from tui.model.recipe import Bounds
from tui.runs.journal import Journal
from tui.runs.recipe_store import kept


@pytest.fixture
def stage(tmp_path: Path) -> Iterator[Stage]:
    with staged(tmp_path) as stage:
        yield stage


def test_it_runs_detached_with_its_own_log_folder_and_environment(stage: Stage) -> None:
    script = "echo $GREETING ${HOME-no home}; pwd; ls -l /proc/self/fd; cat; exec sleep 600"
    record = stage.carried_out(stage.plan(stage.recipe(script)))
    pid = stage.has_begun()
    wait_until(lambda: "/dev/null" in stage.log.read_text(), "it never printed")

    assert record.state is ActionState.DONE
    assert record.line == f"started process {pid}, log {stage.log}"
    assert record.facts["pid"] == str(pid)
    lines = stage.log.read_text().splitlines()
    assert lines[:3] == ["hello", "hello no home", str(stage.folder)]
    opened = [line.split()[-3:] for line in lines[3:] if "->" in line]
    log = str(stage.log)
    assert [each for each in opened if "/fd" not in each[2]] == [
        ["0", "->", "/dev/null"],
        ["1", "->", log],
        ["2", "->", log],
    ]
    assert os.getsid(pid) == pid != os.getsid(0)
    assert psutil.Process(pid).ppid() not in (os.getpid(), record.facts["pid"])
    assert stat.S_IMODE(stage.log.stat().st_mode) == 0o644 & ~_umask()


def _umask() -> int:
    text = Path("/proc/self/status").read_text()
    return int(text.partition("Umask:")[2].split()[0], 8)


def test_it_has_the_limits_and_priorities_of_the_start_before(stage: Stage) -> None:
    bounds = Bounds(limits=(("NOFILE", 300, 400),), umask=0o27, nice=5, oom_score_adj=17)
    script = "ulimit -S -n; ulimit -H -n; umask; nice; cat /proc/self/oom_score_adj; exec sleep 600"
    stage.carried_out(stage.plan(stage.recipe(script, bounds=bounds)))
    stage.has_begun()
    wait_until(lambda: "\n17\n" in stage.log.read_text(), "it never printed")

    assert stage.log.read_text().split()[1:] == ["300", "400", "0027", "5", "17"]


def test_signals_are_as_a_shell_would_have_them(stage: Stage) -> None:
    ignored = signal.signal(signal.SIGHUP, signal.SIG_IGN)
    try:
        stage.carried_out(stage.plan())
    finally:
        signal.signal(signal.SIGHUP, ignored)
    status = Path(f"/proc/{stage.has_begun()}/status").read_text()
    for name in ("SigBlk", "SigIgn"):
        assert int(status.partition(f"{name}:")[2].split()[0], 16) == 0


def test_the_recipe_of_the_new_start_is_kept(stage: Stage) -> None:
    stage.carried_out(stage.plan())
    recipe = kept(stage.state)
    assert recipe is not None
    assert (recipe.pid, recipe.ours, recipe.log) == (stage.has_begun(), True, str(stage.log))
    assert abs(recipe.run_started_at - psutil.Process(recipe.pid).create_time()) < 0.1
    assert recipe.argv == stage.recipe().argv


@pytest.mark.parametrize(
    ("changes", "line"),
    [
        ({"argv": ("no-such-program",)}, "no-such-program cannot be started: "),
        ({"cwd": "/no/such/folder"}, "/no/such/folder: No such file or directory"),
        ({"argv": ("/etc/passwd",)}, "/etc/passwd: Permission denied"),
    ],
)
def test_what_cannot_begin_says_why_and_may_be_tried_again(
    stage: Stage, changes: dict[str, Any], line: str
) -> None:
    record = stage.carried_out(stage.plan(stage.recipe(**changes)))
    assert record.state is ActionState.FAILED
    assert line in record.line
    assert stage.begun() == []
    stage.log.rename(stage.log.with_name("failed.log"))
    later = replace(stage.plan(), id="20261129-181504-resume-1111")
    stage.keep(later)
    assert stage.carried_out(later).state is ActionState.DONE
    stage.has_begun()


def test_a_log_that_is_there_is_never_touched(stage: Stage) -> None:
    stage.log.write_text("of another run")
    record = stage.carried_out(stage.plan())
    assert record.state is ActionState.FAILED
    assert record.line == f"{stage.log} is there already, and is not overwritten"
    assert stage.log.read_text() == "of another run"
    assert stage.begun() == []


def test_a_log_that_is_a_link_is_not_followed(stage: Stage) -> None:
    stage.log.symlink_to(stage.folder / "elsewhere")
    assert stage.carried_out(stage.plan()).state is ActionState.FAILED
    assert not (stage.folder / "elsewhere").exists()


def test_an_environment_that_was_not_readable_is_ours(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREETING", "from milepost")
    stage.carried_out(stage.plan(stage.recipe("echo $GREETING; sleep 600", environment=None)))
    wait_until(lambda: "from milepost" in stage.log.read_text(), "it never printed")


def test_of_a_name_given_twice_the_first_value_counts(stage: Stage) -> None:
    pairs = (("PATH", os.environ["PATH"]), ("TWICE", "first"), ("TWICE", "second"))
    stage.carried_out(stage.plan(stage.recipe("echo $TWICE; sleep 600", environment=pairs)))
    wait_until(lambda: "first" in stage.log.read_text(), "it never printed")


def test_words_that_are_no_text_come_through(stage: Stage) -> None:
    odd = os.fsdecode(b'\xff\xfe o\'dd\n"$HOME"')
    argv = (sys.executable, "-c", "import sys; print(ascii(sys.argv[1]))", odd)
    stage.carried_out(stage.plan(stage.recipe(argv=argv)))
    wait_until(lambda: ascii(odd) in stage.log.read_text(), "it never printed")


# Killed on the way


def finish(stage: Stage, plan: ActionPlan) -> None:
    """Carried out by whoever comes next, unless it has ended; it began once by then."""
    (record,) = Journal(stage.state).actions() or (None,)
    if record is None or record.is_open:
        record = stage.carried_out(plan)
    assert record.state is ActionState.DONE, record.line
    pid = stage.has_begun()
    assert stage.alive() == [pid]
    assert record.facts["pid"] == str(pid)
    wait_until(lambda: stage.log.read_text() == "hello\n", "its log is not what it printed")
    recipe = kept(stage.state)
    assert recipe is not None
    assert recipe.pid == pid


def test_killed_before_any_step_into_the_world_it_still_begins_once(tmp_path: Path) -> None:
    number = 0
    while True:
        number += 1
        with staged(tmp_path / str(number)) as stage:
            plan = stage.plan()
            if not killed_at(number, partial(stage.carried_out, plan)):
                break
            finish(stage, plan)
    assert number > 15


def test_killed_at_any_moment_it_still_begins_once(tmp_path: Path) -> None:
    chance = random.Random(7)
    in_time = 0
    for number in range(40):
        with staged(tmp_path / str(number)) as stage:
            plan = stage.plan()
            if killed_after(chance.uniform(0.001, 0.12), partial(stage.carried_out, plan)):
                in_time += 1
                finish(stage, plan)
            else:
                assert stage.alive() == [stage.has_begun()]
    assert in_time


def test_entered_again_after_it_ended_it_is_not_begun_again(stage: Stage) -> None:
    plan = stage.plan(stage.recipe("exit 3"))
    number = 1
    while killed_at(number, partial(stage.carried_out, plan)):
        if stage.begun():
            break
        number += 1
    wait_until(lambda: stage.alive() == [], "it never ended")
    if any(record.is_open for record in Journal(stage.state).actions()):
        assert stage.carried_out(plan).state is ActionState.DONE
    assert len(stage.begun()) == 1


def test_the_helper_killed_on_the_way_begins_it_at_most_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    outcomes = set()
    number = 0
    while True:
        number += 1
        with staged(tmp_path / str(number)) as stage:
            killer = stage.folder / "killer.py"
            killer.write_text(KILLER.format(at=number, spawn=spawn.__file__))
            monkeypatch.setattr(spawning, "_HELPER", killer)
            record = stage.carried_out(stage.plan())
            if record.state is ActionState.DONE:
                if has_come_to_begin(stage, int(record.facts["pid"])):
                    assert stage.alive() == [stage.has_begun()]
                    break
                continue
            outcomes.add(record.line)
            assert stage.begun() == []
    assert outcomes == {"sh cannot be started: it was killed"}
    assert number > 3


def has_come_to_begin(stage: Stage, pid: int) -> bool:
    """Whether the process counted itself before it ended."""
    wait_until(lambda: bool(stage.begun()) or not is_alive(pid), "it hangs")
    return bool(stage.begun())


KILLER = """
import os, signal, sys
seen = 0
def hook(event, arguments):
    global seen
    if event.startswith(("os.", "fcntl.")) or event == "open" and "null" in str(arguments[0]):
        seen += 1
        if seen == {at}:
            os.kill(os.getpid(), signal.SIGKILL)
source = compile(open({spawn!r}).read(), "spawn.py", "exec")
sys.addaudithook(hook)
exec(source, {{"__name__": "__main__"}})
"""


def test_a_start_that_hangs_keeps_every_other_away(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(spawning, "_LOCK_S", 0.1)
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(stage.state / spawning.FILE)], stdout=subprocess.PIPE
    )
    assert holder.stdout is not None
    with holder:
        holder.stdout.readline()
        record = stage.carried_out(stage.plan())
        holder.kill()
    assert record.state is ActionState.FAILED
    assert record.line == "a start before this one hangs"
    assert stage.begun() == []


HOLDER = """
import fcntl, sys, time
file = open(sys.argv[1], "a")
fcntl.flock(file, fcntl.LOCK_EX)
print("locked", flush=True)
time.sleep(600)
"""


def test_a_mark_of_a_box_that_went_down_is_none(stage: Stage) -> None:
    for text in (b"", b"\0" * 256, b'["', b'["another plan", 1, 2, "boot"]', b"7"):
        (stage.state / spawning.FILE).write_bytes(text)
        with spawning.gate(stage.state, "key") as gate:
            assert gate.begun is None
