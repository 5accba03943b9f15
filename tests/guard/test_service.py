"""A guard that comes back: the unit that systemd takes, and the ways without it."""

from __future__ import annotations

import configparser
import os
import shlex
import shutil
import stat
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tui.errors import MilepostError
from tui.guard.service import Service, units_folder

RUN = "run-a-1f0c93ab"


def unit(service: Service) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(interpolation=None, strict=False)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(service.unit())
    return parser


def test_it_starts_the_guard_of_that_run_by_its_id() -> None:
    service = Service(run=RUN, options=("--act", "resume"))
    words = unit(service)["Service"]["ExecStart"].split()
    assert words == [sys.executable, "-P", "-m", "tui", "guard", RUN, "--act", "resume"]
    assert service.name == "milepost-guard-run-a-1f0c93ab.service"


def test_it_comes_back_unless_the_run_is_over_and_takes_nothing_with_it() -> None:
    told = unit(Service(run=RUN))["Service"]
    assert told["Restart"] == "always"
    assert told["RestartPreventExitStatus"] == "0"
    assert set(told["SuccessExitStatus"].split()) == {"129", "130", "143"}
    assert told["KillMode"] == "process"
    assert told["OOMPolicy"] == "continue"
    assert unit(Service(run=RUN))["Unit"]["StartLimitIntervalSec"] == "0"
    assert unit(Service(run=RUN))["Install"]["WantedBy"] == "default.target"


def test_odd_words_are_quoted_as_systemd_reads_them() -> None:
    odd = ("--textfile", "/data/100% mine/$HOME.prom", "--notify-command", 'say "it" a\\b')
    line = unit(Service(run=RUN, options=odd))["Service"]["ExecStart"]
    assert '"/data/100%% mine/$$HOME.prom"' in line
    assert r'"say \"it\" a\\b"' in line


def test_what_the_shell_has_set_is_set_there_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", "/data/my state")
    monkeypatch.setenv("DOCKER_HOST", "unix:///run/user/1000/docker.sock")
    text = Service(run=RUN).unit()
    assert 'Environment="XDG_STATE_HOME=/data/my state"\n' in text
    assert "Environment=DOCKER_HOST=unix:///run/user/1000/docker.sock\n" in text


@pytest.mark.skipif(shutil.which("systemd-analyze") is None, reason="no systemd here")
@pytest.mark.parametrize("options", [(), ("--act", "resume", "--textfile", "/data/a 100% $b.prom")])
def test_systemd_takes_it(tmp_path: Path, options: tuple[str, ...]) -> None:
    service = Service(run=RUN, options=options)
    file = tmp_path / service.name
    file.write_text(service.unit())
    told = subprocess.run(
        ["systemd-analyze", "--user", "verify", str(file)],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "XDG_RUNTIME_DIR": str(tmp_path)},
    )
    own = [line for line in told.stderr.splitlines() if RUN in line]
    # The two that make the pauses longer came with systemd 254; an older one leaves them out.
    assert [line for line in own if "Restart" not in line or "Unknown key" not in line] == []


class TestInstall:
    """The file, and nothing else."""

    def test_it_is_written_once_and_brought_up_to_date(self) -> None:
        service = Service(run=RUN)
        assert service.install()
        assert not service.install()
        assert service.file.read_text() == service.unit()
        assert service.file.parent == units_folder()

        other = Service(run=RUN, options=("--act", "resume"))
        assert other.install()
        assert "--act resume" in other.file.read_text()
        assert list(units_folder().iterdir()) == [service.file]

    def test_it_is_removed_with_what_started_it(self) -> None:
        service = Service(run=RUN)
        service.install()
        wanted = units_folder() / "default.target.wants" / service.name
        wanted.parent.mkdir()
        wanted.symlink_to(service.file)
        another = Service(run="run-b-00000000")
        another.install()

        assert service.uninstall()
        assert not service.uninstall()
        assert not os.path.lexists(wanted)
        assert another.file.exists()

    def test_a_folder_that_cannot_be_written_is_said(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setenv("XDG_CONFIG_HOME", "/dev/null/config")
        with pytest.raises(MilepostError, match="Not a directory"):
            Service(run=RUN).install()


def test_what_to_run_is_said_with_lingering() -> None:
    told = "\n".join(Service(run=RUN).next_steps())
    assert "systemctl --user daemon-reload" in told
    assert f"systemctl --user enable --now milepost-guard-{RUN}.service" in told
    assert "loginctl enable-linger" in told


def test_without_systemd_each_way_is_a_command_of_the_same_guard(tmp_path: Path) -> None:
    service = Service(run=RUN, options=("--textfile", "/data/a b.prom"))
    tmux, detached, cron = service.without_systemd()
    assert shlex.split(shlex.split(tmux)[-1]) == list(service.command)
    assert shlex.split(detached)[2 : 2 + len(service.command)] == list(service.command)
    assert shlex.split(cron, comments=True)[1:] == list(service.command)


def test_the_detached_way_outlives_its_shell(tmp_path: Path) -> None:
    """As it is printed, with a command that shows who leads its session."""
    probe = tmp_path / "probe"
    probe.write_text(
        '#!/bin/sh\ncut -d" " -f1,6 /proc/$$/stat > "$0.draft" && mv "$0.draft" "$0.told"\n'
    )
    probe.chmod(probe.stat().st_mode | stat.S_IXUSR)
    _, detached, _ = Service(run=RUN).without_systemd()
    command = detached.replace(shlex.join(Service(run=RUN).command), str(probe))
    subprocess.run(["sh", "-c", f"{command} true"], check=True, stdin=subprocess.DEVNULL)
    deadline = time.monotonic() + 30.0
    while not (told := tmp_path / "probe.told").exists():
        assert time.monotonic() < deadline
        time.sleep(0.01)
    pid, session = told.read_text().split()
    assert pid == session
