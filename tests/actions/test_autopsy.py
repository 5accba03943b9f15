"""What a hung run is at is written down in bounded time, whatever hangs, and nothing is in the way."""

from __future__ import annotations

import json
import stat
import sys
import threading
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import psutil
import pytest
from fake_box import NO_GPU, NOW
from fake_run import lines
from fakes import running
from families import Families, until
from hypothesis import given
from hypothesis import strategies as st

from tui.actions import autopsy as autopsy_module
from tui.actions import evidence, py_spy
from tui.actions.autopsy import autopsy
from tui.actions.evidence import NotReadableError
from tui.actions.stacks import Frame, Group, Sight, Thread, grouped, page, telling, threads_of
from tui.model.launch import Process, ProcessTree
from tui.model.reading import known
from tui.model.snapshot import LogStatus, Snapshot

SECRET = "hf_abcdefghijklmnopqrstuvwx"
_HANGS = """
import threading, time
def all_reduce():
    print("ready", flush=True)
    time.sleep(1000)
def train():
    all_reduce()
threading.Thread(target=threading.Event().wait, daemon=True).start()
train()
"""
_WAITS = """
import threading
print("ready", flush=True)
threading.Event().wait()
"""


def member(families: Families, script: str, role: str, title: str) -> Process:
    process = families.start(sys.executable, "-c", script)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    started_at = psutil.Process(process.pid).create_time()
    return Process(pid=process.pid, started_at=started_at, role=role, title=title)


def seen(tmp_path: Path, *processes: Process) -> Snapshot:
    (tmp_path / "plain.log").touch()
    told = replace(lines()[-1], text=f"logged in with {SECRET}")
    return running(
        log=LogStatus(path=str(tmp_path / "plain.log")),
        processes=known(ProcessTree(processes=processes), NOW),
        lines=(*lines(), told),
    )


def folder_of(tmp_path: Path) -> Path:
    (folder,) = tmp_path.glob("plain-autopsy-*")
    return folder


@pytest.fixture
def with_py_spy() -> None:
    if py_spy.py_spy() is None:
        pytest.skip("needs py-spy: the extra `autopsy`")


@pytest.fixture
def run(families: Families) -> tuple[Process, ...]:
    """Three that hang in the same, and one that waits for them."""
    trainer = "ray::FSDPTrainRayActor.train"
    return (
        *(member(families, _HANGS, "trainer", trainer) for _ in range(3)),
        member(families, _WAITS, "driver", f"python3 train.py --hf-token {SECRET}"),
    )


@pytest.mark.usefixtures("with_py_spy")
def test_a_hung_run(run: tuple[Process, ...], tmp_path: Path) -> None:
    report = autopsy(seen(tmp_path, *run), tmp_path / "state")
    told = [each for each in report.absences if each.startswith("process")]
    assert not told, "is ptrace permitted here?"
    assert report.line.startswith(
        "4 processes: 3 in all_reduce (FSDPTrainRayActor.train), 1 in <module> (driver)"
    )
    folder = folder_of(tmp_path)
    assert report.folder == str(folder)
    names = {path.name for path in folder.iterdir()}
    assert {"summary.txt", "engines.txt", "gpu.txt", "memory.txt", "log.txt"} <= names
    assert len([name for name in names if name.startswith("process-")]) == 4
    summary = (folder / "summary.txt").read_text()
    assert report.line in summary
    assert "    all_reduce (<string>:5)\n    train (<string>:7)\n" in summary
    one = (folder / f"process-{run[0].pid}-trainer.txt").read_text()
    assert "thread MainThread" in one
    assert "Event.wait" in one
    assert "wchan:" in one
    assert "hrtimer_nanosleep" in one or "not readable" in one
    assert all(psutil.Process(each.pid).status() == psutil.STATUS_SLEEPING for each in run)


def test_no_secret_is_written(run: tuple[Process, ...], tmp_path: Path) -> None:
    report = autopsy(seen(tmp_path, *run), tmp_path / "state")
    written = "".join(path.read_text() for path in folder_of(tmp_path).iterdir())
    assert "logged in with" in written
    assert "train.py" in written
    assert SECRET not in written + report.line + "".join(report.absences)


def test_without_py_spy_the_kernel_is_asked(
    run: tuple[Process, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(py_spy, "py_spy", lambda: None)
    report = autopsy(seen(tmp_path, *run), tmp_path / "state")
    assert report.line.startswith("4 processes: ")
    hint = "py-spy is not installed: pip install 'milepost[autopsy]'"
    assert f"process {run[0].pid} trainer: {hint}" in report.absences
    sights = [sight for group in report.groups for sight in group.sights]
    assert {sight.pid for sight in sights} == {each.pid for each in run}
    assert all(sight.state == "S" for sight in sights)


def fake_py_spy(tmp_path: Path, script: str, monkeypatch: pytest.MonkeyPatch) -> None:
    program = tmp_path / "py-spy"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(program.stat().st_mode | stat.S_IXUSR)
    monkeypatch.setattr(py_spy, "py_spy", lambda: str(program))


def test_whatever_hangs_it_ends_in_time(
    run: tuple[Process, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Dumps that do not end, a kernel log that does not answer: the rest is there all the same."""
    fake_py_spy(tmp_path, "exec sleep 60", monkeypatch)
    go = threading.Event()

    def hangs() -> str:
        go.wait(60.0)
        return ""

    monkeypatch.setattr(evidence, "kernel_log", hangs)
    report = autopsy(seen(tmp_path, *run), tmp_path / "state", deadline_s=3.0)
    go.set()
    assert report.seconds < 60.0
    late = [each for each in report.absences if each.endswith(": no answer in time")]
    assert len(late) == len(run) + 1
    assert report.line == "no process was looked at; 5 sources did not answer"
    assert (folder_of(tmp_path) / "log.txt").exists()
    assert "no answer in time" in (folder_of(tmp_path) / "summary.txt").read_text()


def test_a_disk_that_hangs_costs_only_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    go = threading.Event()
    monkeypatch.setattr(autopsy_module, "_made", lambda *_: go.wait(60.0))
    report = autopsy(seen(tmp_path), tmp_path / "state", deadline_s=1.5)
    go.set()
    assert report.folder == ""
    assert report.absences[0] == "no folder could be made"
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    ("script", "fault"),
    [
        (
            "echo 'Error: Failed\n\nCaused by:\n    1: Permission denied (os error 13)\n\n"
            "Stack backtrace:\n   0: x' >&2; exit 1",
            "py-spy: 1: Permission denied (os error 13)",
        ),
        ("exit 1", "py-spy: it said nothing"),
        ("echo nonsense", "py-spy: it said nothing"),
        (f"echo token={SECRET} >&2", "py-spy: token=•••"),
    ],
)
def test_a_dump_that_fails_says_why(
    families: Families,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    fault: str,
) -> None:
    fake_py_spy(tmp_path, script, monkeypatch)
    one = member(families, _WAITS, "driver", "python3 train.py")
    assert py_spy.look_at(one, "").fault == fault


@pytest.mark.usefixtures("with_py_spy")
def test_a_process_that_is_gone_or_is_another_now(families: Families) -> None:
    one = member(families, _WAITS, "driver", "python3 train.py")
    other = replace(one, started_at=one.started_at - 10.0)
    assert py_spy.look_at(other, "").fault == "it is gone"
    assert py_spy.look_at(replace(one, pid=2**22 + 1), "").fault == "it is gone"
    assert py_spy.look_at(one, "").fault == ""


def test_each_goes_into_a_folder_of_its_own(tmp_path: Path) -> None:
    reports = [autopsy(seen(tmp_path), tmp_path / "state") for _ in range(3)]
    assert len({report.folder for report in reports}) == 3
    assert all(Path(report.folder).parent == tmp_path for report in reports)


@pytest.mark.parametrize("log", ["", "/nonexistent/plain.log", "/proc/self/plain.log"])
def test_where_the_logs_folder_takes_nothing_the_state_folder_does(
    tmp_path: Path, log: str
) -> None:
    state = tmp_path / "state" / "run-a"
    report = autopsy(running(log=LogStatus(path=log), processes=NO_GPU), state)
    assert Path(report.folder).parent == state
    assert Path(report.folder).name.startswith("plain-" if log else "run-")


def test_where_nothing_can_be_written_it_is_told_all_the_same(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    report = autopsy(running(log=LogStatus(), processes=NO_GPU), tmp_path / "file")
    assert report.folder == ""
    assert "no folder could be made" in report.absences
    assert report.line.startswith("no process was looked at")


def test_an_empty_snapshot(tmp_path: Path) -> None:
    report = autopsy(Snapshot(), tmp_path)
    assert {"gpu: not asked yet", "log: no line of the log is known"} <= set(report.absences)


class TestKernelLog:
    def run(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, journal: str, dmesg: str
    ) -> Callable[[], str]:
        for name, script in (("journalctl", journal), ("dmesg", dmesg)):
            if script:
                program = tmp_path / name
                program.write_text(f"#!/bin/sh\n{script}\n")
                program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}")
        return evidence.kernel_log

    def test_the_first_that_tells(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read = self.run(tmp_path, monkeypatch, "exit 1", "echo NVRM: Xid 79; echo usb; echo Xids")
        assert evidence.telling_lines(read()) == 1

    def test_why_there_is_none(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        read = self.run(
            tmp_path, monkeypatch, "exit 0", "echo dmesg: Operation not permitted >&2; exit 1"
        )
        with pytest.raises(NotReadableError) as told:
            read()
        assert str(told.value) == (
            "journalctl: it shows nothing to this user; dmesg: Operation not permitted"
        )

    def test_not_installed(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(NotReadableError, match="journalctl: not installed; dmesg: not"):
            self.run(tmp_path, monkeypatch, "", "")()


# Stacks


def thread(name: str, *functions: str) -> Thread:
    return Thread(
        name=name, frames=tuple(Frame(function=each, file="f.py", line=1) for each in functions)
    )


def test_the_main_thread_tells_unless_it_has_nothing_to_do() -> None:
    main, idle = thread("MainThread", "all_reduce", "train"), thread("MainThread", "Queue.get")
    worker, waiting = thread("worker", "backward"), thread("worker", "Condition.wait")
    assert telling((worker, main)) == main
    assert telling((idle, worker)) == worker
    assert telling((waiting, idle)) == idle
    assert telling((thread("MainThread"),)) is None
    assert telling(()) is None


def test_what_a_wait_is_for_is_said() -> None:
    waits = thread("MainThread", "Condition.wait", "Event.wait", "wait_for_weights", "train")
    assert Sight(pid=1, label="trainer", threads=(waits,)).doing == "wait_for_weights"


def test_groups() -> None:
    hung = (thread("MainThread", "all_reduce", "train"),)
    sights = [Sight(pid=pid, label="Trainer.train", threads=hung) for pid in (1, 2)]
    sights.append(Sight(pid=3, label="sglang::scheduler", state="D", waits_in="nv_wait"))
    sights.append(Sight(pid=4, label="driver", fault="it is gone"))
    groups = grouped(sights)
    assert [group.line for group in groups] == [
        "2 in all_reduce (Trainer.train)",
        "1 in nv_wait, deaf to signals (sglang::scheduler)",
        "1 not readable (driver)",
    ]
    assert "process 4 driver  state   (it is gone)" in page(groups)
    many = Group(
        at=("x",), sights=tuple(Sight(pid=i, label=str(i), waits_in="x") for i in range(3))
    )
    assert many.line == "3 in x (0, 1, …)"


ANYTHING = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)
NAMES = st.sampled_from(["name", "line", "filename", "short_filename", "other"])
FRAMES = st.lists(st.dictionaries(NAMES, ANYTHING | st.lists(ANYTHING)) | ANYTHING)


@given(
    st.lists(
        st.fixed_dictionaries({"frames": FRAMES | ANYTHING, "thread_name": ANYTHING}) | ANYTHING
    )
    | ANYTHING
)
def test_any_answer_gives_threads(answer: object) -> None:
    for each in threads_of(json.dumps(answer)):
        assert telling((each,)) == (each if each.frames else None)
        assert all("\n" not in str(frame.line) for frame in each.frames)


@pytest.mark.parametrize("answer", ["", "[", "nonsense", "\0"])
def test_no_answer_gives_none(answer: str) -> None:
    assert threads_of(answer) == ()


def test_no_thread_is_left(tmp_path: Path) -> None:
    before = set(threading.enumerate())
    autopsy(seen(tmp_path), tmp_path)
    until(lambda: set(threading.enumerate()) <= before)
