"""The command line: what it refuses, what it prints, what it tells the shell."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tui.attach import Target, attached
from tui.cli import arguments, overview, run
from tui.config import load_config
from tui.errors import ConfigError, ExitCode, NothingFoundError
from tui.model.document import VERSION, snapshot_of


def test_explain_prints_state_cause_and_evidence(
    data: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(["explain", str(data / "captures" / "actordied.log")])
    told = capsys.readouterr().out

    assert code == ExitCode.ENDED_BADLY
    assert "FAILED" in told
    assert "a worker process died, and nothing read says why" in told
    assert "resumed at rollout 12" in told


def test_explain_as_json_is_a_document(data: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code = run(["explain", "--json", str(data / "captures" / "resume.log")])
    document = json.loads(capsys.readouterr().out)

    assert code == ExitCode.WELL
    assert document["milepost"] == VERSION
    assert document["summary"]["state"] == "finished"
    assert snapshot_of(document).story.step == 5


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (["--no-such"], "unrecognized arguments: --no-such"),
        (["explain"], "LOG"),
        (["demo", "--speed", "0"], "--speed 0 is not between"),
        (["demo", "--fault", "nonsense"], "nonsense"),
        (["status", "--interval"], "--interval"),
        (["explain", "x.log", "--as-of"], "--as-of"),
        (["--interval", "900"], "900 s is not between"),
    ],
)
def test_what_is_refused_says_why(
    argv: list[str], words: str, capsys: pytest.CaptureFixture[str]
) -> None:
    code = run(argv)
    told = capsys.readouterr()

    assert code == ExitCode.USAGE
    assert words in told.err
    assert told.out == ""


def test_a_log_that_is_not_there_is_nothing_found(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["explain", "/nowhere/plain.log"]) == ExitCode.NOTHING_FOUND
    assert "/nowhere/plain.log" in capsys.readouterr().err


@pytest.mark.parametrize("command", [[], ["demo"], ["status"], ["explain"]])
def test_help_teaches(command: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as left:
        run([*command, "--help"])
    told = capsys.readouterr().out

    assert left.value.code == 0
    assert "usage: milepost" in told
    assert "exit codes" in told or command in (["demo"], ["explain"])


def test_help_names_every_command_and_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(["--help"])
    told = capsys.readouterr().out
    listed = [name for commands in overview.COMMANDS.values() for name in commands]

    assert sorted(listed) == sorted(["(none)", *arguments.commands_there_are()])
    for name in listed:
        assert f"\n  {name} " in told
    for code in ExitCode:
        assert re.search(rf"\b{code.value} \w", told) is not None


def test_a_reader_that_goes_away_is_no_error(data: Path) -> None:
    log = data / "captures" / "fresh.log"
    command = f"{sys.executable} -m tui explain {log} | head -c 5; echo ${{PIPESTATUS[0]}}"
    told = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=True)

    assert told.stdout.endswith("0\n")
    assert told.stderr == ""


def test_status_of_a_copied_log(data: Path, tmp_path: Path) -> None:
    told = subprocess.run(
        [sys.executable, "-m", "tui", "status", "--json", "--log", data / "captures" / "fresh.log"],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "DOCKER_HOST": "unix:///nowhere/docker.sock"},
    )
    document = json.loads(told.stdout)

    assert told.returncode == ExitCode.WELL
    assert document["summary"]["state"] == "finished"
    assert document["summary"]["rollout"] == 3
    assert document["snapshot"]["memory"]["value"]["total_bytes"] > 0


def test_a_name_is_a_file_a_folder_or_a_container(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    log = tmp_path / "plain.log"
    log.touch()

    assert attached(Target(name=str(log)), at=0.0).log is not None
    assert attached(Target(name=str(tmp_path)), at=0.0).checkpoints is not None
    with pytest.raises(NothingFoundError, match="container nobody-has-this-name"):
        attached(Target(name="nobody-has-this-name"), at=0.0)
    with pytest.raises(NothingFoundError, match="no such file"):
        attached(Target(name="runs/none.log"), at=0.0)
    with pytest.raises(NothingFoundError, match="not a Miles driver"):
        attached(Target(name=str(os.getpid())), at=0.0)


GOOD = """
theme = "day"
interval_s = 2
[limits]
work_at_risk_s = 1800
memory_warn_gib = 20
[keys]
quit = "x"
"""


def test_a_configuration_file(tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(GOOD)
    config = load_config(path)

    assert (config.theme, config.interval_s, config.keys) == ("day", 2.0, {"quit": "x"})
    assert config.limits.work_at_risk_s == 1800.0
    assert config.limits.memory_warn_bytes == 20 * 2**30


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("thema = 'day'", r"unknown key thema; did you mean theme\?"),
        (
            "[limits]\nwork_at_risk = 5",
            r"limits.work_at_risk; did you mean limits.work_at_risk_s\?",
        ),
        ("theme = 5", "theme = 5 has the wrong type"),
        ("ascii = 1", "wrong type"),
        ("interval_s = true", "wrong type"),
        ("interval_s = 0", "not between"),
        ("[limits]\nstall_factor = -1", "not a number above 0"),
        ("[keys]\nquit = 3", "not the name of a key"),
        ("theme = ", "not valid TOML"),
    ],
)
def test_a_bad_configuration_names_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)

    with pytest.raises(ConfigError, match=words) as refused:
        load_config(path)
    assert str(path) in str(refused.value)


def test_a_named_configuration_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="no such file"):
        load_config(tmp_path / "none.toml")
