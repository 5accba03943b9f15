"""`milepost guard` as a process: it tells, is seen, ends in order, and is seen dead when killed."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from acting import MILEPOST, ActedOn, acted_on, until
from receivers import Hook

from tui.cli import run
from tui.errors import ExitCode
from tui.guard.service import units_folder
from tui.model.document import snapshot_of
from tui.model.guard import GuardState, GuardStatus
from tui.model.snapshot import Snapshot
from tui.runs.guard_card import LOCK, guard_of, pause, paused_by
from tui.runs.lock import holder_of
from tui.runs.state_dir import runs_folder

SPEED = 60.0


@pytest.fixture(autouse=True)
def _no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    monkeypatch.setenv("no_proxy", "127.0.0.1")


@contextmanager
def guarding(on: ActedOn, *options: str) -> Iterator[subprocess.Popen[str]]:
    """A guard of that run, killed at the end if it is still there."""
    with subprocess.Popen(
        [*MILEPOST, "guard", *on.target, *options],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env={**os.environ, "XDG_STATE_HOME": str(on.state)},
        text=True,
    ) as process:
        try:
            yield process
        finally:
            process.kill()


def folder_of(on: ActedOn) -> Path:
    """The state folder of the run, once there is a guard in it."""
    runs = on.state / "milepost" / "runs"
    until(lambda: any(runs.glob(f"*/{LOCK}")))
    (lock,) = runs.glob(f"*/{LOCK}")
    return lock.parent


def status(on: ActedOn) -> GuardStatus | None:
    """As `milepost status --json` tells it."""
    told = on.milepost("status", "--json", *on.target, code=None)
    snapshot: Snapshot = snapshot_of(json.loads(told.splitlines()[-1]))
    return snapshot.guard


def guard_is(on: ActedOn, state: GuardState) -> bool:
    seen = guard_of(folder_of(on), 0.0)
    return seen is not None and seen.state is state


def words_of(on: ActedOn) -> str:
    """What it told last."""
    seen = status(on)
    return seen.words if seen is not None else ""


def remarks(folder: Path) -> list[dict[str, Any]]:
    lines = (folder / "journal.jsonl").read_text().splitlines()
    return [entry["remark"] for line in lines if "remark" in (entry := json.loads(line))]


class TestProcess:
    """On a simulated run."""

    def test_what_goes_wrong_is_told_once_with_evidence_and_the_end_is_in_order(
        self, tmp_path: Path
    ) -> None:
        prom = tmp_path / "milepost.prom"
        faulty = acted_on(tmp_path, speed=SPEED, faults=["trainer-dies@2"])
        with Hook() as hook, faulty as on:
            options = ("--notify", hook.url, "--textfile", str(prom), "--listen", "127.0.0.1:0")
            with guarding(on, *options) as process:
                until(lambda: any(each["code"] == "run-failed" for each in hook.received))
                folder = folder_of(on)
                seen = status(on)
                assert seen is not None
                assert (seen.state, seen.pid, seen.policy) == (GuardState.ON, process.pid, "none")
                until(lambda: 'state="failed"} 1' in prom.read_text())
                until(lambda: words_of(on).startswith("run-failed: "))
                process.send_signal(signal.SIGTERM)
                assert process.wait(60.0) == 128 + signal.SIGTERM
                assert process.stdout is not None
                said = process.stdout.read()
        failed = [each for each in hook.received if each["code"] == "run-failed"]
        assert len(failed) == 1
        assert failed[0]["level"] == "critical"
        assert "a worker process died" in failed[0]["text"]
        assert failed[0]["host"] == os.uname().nodename
        assert "T0PS3CRET" not in said
        assert [each for each in remarks(folder) if each["code"] == "run-failed"]
        assert guard_is(on, GuardState.OFF)
        assert not prom.exists()
        assert list((folder / "samples").glob("*.samples"))
        log = (folder / "guard.log").read_text()
        assert "run-failed" in log
        assert "T0PS3CRET" not in log + json.dumps(remarks(folder))

    def test_killed_it_is_seen_dead_and_the_next_one_takes_over(self, tmp_path: Path) -> None:
        with acted_on(tmp_path, speed=SPEED) as on:
            with guarding(on, "--act", "resume") as process:
                folder = folder_of(on)
                until(lambda: guard_is(on, GuardState.ON))
                process.kill()
                process.wait()
            seen = status(on)
            assert seen is not None
            assert (seen.state, seen.policy) == (GuardState.DEAD, "resume")
            assert re.search(r"guard +died .* ago", on.milepost("status", *on.target, code=None))
            with guarding(on) as second:
                until(lambda: holder_of(folder, LOCK) == f"guard, process {second.pid}")
                until(lambda: guard_is(on, GuardState.ON))

    def test_a_second_guard_is_refused(self, tmp_path: Path) -> None:
        with acted_on(tmp_path, speed=SPEED) as on, guarding(on) as first:
            folder_of(on)
            until(lambda: guard_is(on, GuardState.ON))
            told = on.milepost("guard", *on.target, code=ExitCode.REFUSED)
            assert f"guard, process {first.pid}, watches this run already" in told
            assert first.poll() is None

    def test_a_dry_run_writes_nothing_and_is_not_seen(self, tmp_path: Path) -> None:
        with (
            acted_on(tmp_path, speed=SPEED) as on,
            guarding(on, "--act", "resume", "--dry-run") as process,
        ):
            assert process.stdout is not None
            assert "would act by policy resume" in process.stdout.readline()
            process.send_signal(signal.SIGINT)
            assert process.wait(60.0) == 130
            written = {file.name for file in on.state.rglob("*") if file.is_file()} - {
                "run.json",
                "recipe.json",
                f"recipe.{process.pid}.tmp",  # it was told to end in the middle of that write
            }
            assert written == set()

    def test_it_is_paused_and_let_go_on_from_outside(self, tmp_path: Path) -> None:
        with acted_on(tmp_path, speed=SPEED) as on, guarding(on, "--act", "resume"):
            folder = folder_of(on)
            until(lambda: guard_is(on, GuardState.ON))
            assert "paused" in on.milepost("guard", "--pause", *on.target)
            seen = status(on)
            assert seen is not None
            assert seen.paused == "milepost guard --pause"
            on.milepost("guard", "--unpause", *on.target)
            assert paused_by(folder) == ""

    def test_under_nohup_a_hangup_does_not_end_it(self, tmp_path: Path) -> None:
        with acted_on(tmp_path, speed=SPEED) as on:
            before = signal.signal(signal.SIGHUP, signal.SIG_IGN)
            try:
                with guarding(on) as process:
                    folder_of(on)
                    until(lambda: guard_is(on, GuardState.ON))
                    process.send_signal(signal.SIGHUP)
                    process.send_signal(signal.SIGTERM)
                    assert process.wait(60.0) == 128 + signal.SIGTERM
            finally:
                signal.signal(signal.SIGHUP, before)

    def test_metrics_are_answered_and_only_here(self, tmp_path: Path) -> None:
        with acted_on(tmp_path, speed=SPEED) as on, guarding(on, "--listen", "127.0.0.1:0") as own:
            folder_of(on)
            ports: list[Any] = []

            def listens() -> bool:
                ports[:] = [
                    each.laddr
                    for each in psutil.Process(own.pid).net_connections("tcp")
                    if each.status == psutil.CONN_LISTEN
                ]
                return bool(ports)

            until(listens)
            ((host, port),) = ports
            assert host == "127.0.0.1"

            def answers() -> bool:
                with urllib.request.urlopen(f"http://{host}:{port}/metrics", timeout=300) as page:
                    return b"milepost_guard_state{run=" in page.read()

            until(answers)

    def test_it_is_no_python_to_those_who_end_processes_by_name(self, tmp_path: Path) -> None:
        with acted_on(tmp_path, speed=SPEED) as on, guarding(on) as process:
            folder_of(on)
            comm = Path(f"/proc/{process.pid}/comm")
            until(lambda: comm.read_text() == "milepost\n")


class TestRunWithGuard:
    """`milepost run --guard`."""

    COMMAND = (sys.executable, "-m", "tui.demo", "--speed", "60", "--num-rollout", "200")

    def test_a_guard_starts_with_the_run_and_goes_on_without_us(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        own = ("--dir", str(tmp_path / "demo"), "--save", str(tmp_path / "demo" / "checkpoints"))
        code = run(["run", "--guard", "save-on-alert", "--", *self.COMMAND, *own])
        told = capsys.readouterr().out
        pids = [int(pid) for pid in re.findall(r"^pid +(\d+)", told, re.MULTILINE)]
        try:
            assert code == 0
            assert "guard  watches it" in told
            until(lambda: bool(list(runs_folder().glob(f"*/{LOCK}"))))
            (lock,) = runs_folder().glob(f"*/{LOCK}")
            until(lambda: guard_of(lock.parent, 0.0) is not None)
            seen = guard_of(lock.parent, 0.0)
            assert seen is not None
            assert seen.policy == "save-on-alert"
            pids.append(seen.pid)
            assert os.getsid(seen.pid) == seen.pid
        finally:
            for pid in pids:
                with suppress(psutil.Error):
                    leader = psutil.Process(pid)
                    for process in (*leader.children(recursive=True), leader):
                        with suppress(psutil.Error):
                            process.kill()

    def test_an_unknown_policy_is_refused_before_anything_starts(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
    ) -> None:
        monkeypatch.chdir(tmp_path)
        assert run(["run", "--guard", "always", "--", "true"]) == ExitCode.USAGE
        assert "there is no policy always" in capsys.readouterr().err
        assert list(tmp_path.iterdir()) == []


class TestTesting:
    """`--test-notify`."""

    def test_each_channel_says_what_became_of_it(self, capsys: pytest.CaptureFixture[str]) -> None:
        with Hook() as hook:
            bad = "http://127.0.0.1:1/T0PS3CRET"
            code = run(["guard", "--test-notify", "--notify", hook.url, "--notify", bad])
        told = capsys.readouterr().out
        assert code == ExitCode.ERROR
        assert re.search(r"^http://127\.0\.0\.1:\d+/•••  told$", told, re.MULTILINE)
        assert "http://127.0.0.1:1/•••  not told: " in told
        assert "T0PS3CRET" not in told
        assert hook.received[0]["code"] == "guard-test"

    def test_all_well_is_well(self, capsys: pytest.CaptureFixture[str]) -> None:
        with Hook() as hook:
            assert run(["guard", "--test-notify", "--notify", hook.url]) == 0

    def test_without_a_channel_it_is_no_use(self, capsys: pytest.CaptureFixture[str]) -> None:
        assert run(["guard", "--test-notify"]) == ExitCode.USAGE
        assert "no channel is named" in capsys.readouterr().err


class TestConfiguration:
    """`[guard]` of config.toml."""

    def written(self, tmp_path: Path, text: str, mode: int = 0o600) -> str:
        file = tmp_path / "config.toml"
        file.write_text(text)
        file.chmod(mode)
        return str(file)

    def test_its_channels_are_told_and_a_file_that_others_read_is_warned_of(
        self, tmp_path: Path, capsys: pytest.CaptureFixture[str]
    ) -> None:
        with Hook() as hook:
            file = self.written(tmp_path, f'[guard]\nnotify = ["{hook.url}"]\n', 0o644)
            assert run(["guard", "--test-notify", "--config", file]) == 0
            assert "chmod 600" in capsys.readouterr().err
            Path(file).chmod(0o600)
            assert run(["guard", "--test-notify", "--config", file]) == 0
            assert capsys.readouterr().err == ""
        assert len(hook.received) == 2

    @pytest.mark.parametrize(
        ("text", "words"),
        [
            ("[guard]\nnotfy = []\n", "unknown key guard.notfy; did you mean guard.notify?"),
            ('[guard]\nnotify = "ntfy://T0PS3CRET"\n', "guard.notify has the wrong type"),
            ("[guard]\nnotify = [1]\n", "guard.notify is not a list of addresses"),
            ("guard = 3\n", "guard = 3 has the wrong type"),
            ("[guard.limits]\nmost = 3\n", "unknown key guard.limits.most"),
            ("[guard.limits]\nmost_actions = 0.5\n", "is no whole number above 0"),
            ("[guard.limits]\nwindow_hours = -1\n", "is no number above 0"),
            ('[guard]\nact = "always"\n', "there is no policy always"),
            ('read_only = true\n[guard]\nact = "resume"\n', "read-only by its configuration"),
        ],
    )
    def test_what_is_wrong_with_it_is_said(
        self, tmp_path: Path, text: str, words: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["guard", "--config", self.written(tmp_path, text)]) == ExitCode.USAGE
        told = capsys.readouterr().err
        assert words in told
        assert "T0PS3CRET" not in told


class TestInstall:
    """`--install` and `--uninstall`."""

    @pytest.fixture
    def log(self, data: Path) -> str:
        return str(data / "captures" / "fresh.log")

    def test_a_unit_of_that_run_is_written_and_what_to_run_is_said(
        self, log: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        assert run(["guard", log, "--install", "--act", "resume"]) == 0
        told = capsys.readouterr().out
        (unit,) = units_folder().iterdir()
        assert f"systemctl --user enable --now {unit.name}" in told
        assert "loginctl enable-linger" in told
        assert "before it acts, looking back: " in told
        assert "tmux new-session -d" in told
        (command,) = re.findall(r"^ExecStart=(.*)$", unit.read_text(), re.MULTILINE)
        name = command.split()[5]
        assert unit.name == f"milepost-guard-{name}.service"
        assert command.endswith("--act resume")
        # It finds the run by that name, where nothing of it runs.
        assert run(["status", name]) in (ExitCode.WELL, ExitCode.NOTHING_FOUND)

        assert run(["guard", log, "--uninstall"]) == 0
        assert "removed" in capsys.readouterr().out
        assert list(units_folder().iterdir()) == []
        assert run(["guard", log, "--uninstall"]) == ExitCode.NOTHING_FOUND

    def test_no_address_of_a_channel_gets_into_a_unit(
        self, log: str, capsys: pytest.CaptureFixture[str]
    ) -> None:
        argv = ["guard", log, "--install", "--notify", "https://example.org/T0PS3CRET"]
        assert run(argv) == ExitCode.USAGE
        told = capsys.readouterr()
        assert "config.toml" in told.err
        assert "T0PS3CRET" not in told.err + told.out
        assert not units_folder().exists()


def test_a_guard_is_told_that_it_is_paused_when_it_begins(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with acted_on(tmp_path, speed=SPEED) as on:
        with guarding(on):
            folder = folder_of(on)
        pause(folder, "a person at the screen")
        with guarding(on) as process:
            assert process.stdout is not None
            process.stdout.readline()
            assert "paused by a person at the screen" in process.stdout.readline()


@pytest.mark.parametrize("module", ["tui.guard.loop", "tui.cli.on_guard", "tui.guard.notify"])
def test_it_needs_no_screen_and_no_apprise(module: str) -> None:
    told = subprocess.run(
        [sys.executable, "-c", f"import sys, {module}; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    assert not {"textual", "rich", "apprise", "docker", "pynvml"} & set(told)
