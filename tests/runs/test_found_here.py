"""Runs of this machine, found end to end with no option at all. Each test has a box of its own."""

from __future__ import annotations

import json
import os
import socket
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from box import Box, opened_box

from tui.errors import ExitCode


@pytest.fixture
def box() -> Iterator[Box]:
    with opened_box() as box:
        yield box


@pytest.mark.parametrize(
    ("command", "words"),
    [
        ("nohup DEMO --dir here > plain.log 2>&1", "output of the driver"),
        ("DEMO --dir here 2>&1 | tee plain.log > /dev/null", "output of the driver"),
        ("DEMO --dir here 2>&1 | cat | tee -a plain.log > /dev/null", "output of the driver"),
    ],
)
def test_a_bare_process(box: Box, tmp_path: Path, command: str, words: str) -> None:
    box.shell(command, tmp_path)
    run = box.the_run()

    pid = run["attachment"]["driver_pid"]["value"]
    assert run["attachment"]["log"] == {
        "value": str(tmp_path / "plain.log"),
        "source": f"{words}, process {pid}",
    }
    assert run["attachment"]["checkpoints"]["value"] == str(tmp_path / "here" / "checkpoints")
    assert run["attachment"]["checkpoints"]["source"] == "--save in its log"
    assert run["found_by"] == [f"driver, process {pid}"]
    assert (run["verdict"], run["engines"] != []) == ("running", True)
    status = box.status()
    assert status["snapshot"]["log"]["path"] == str(tmp_path / "plain.log")
    assert status["snapshot"]["processes"]["value"]["processes"]
    assert box.milepost("status", pid).returncode == ExitCode.WELL


def test_none(box: Box) -> None:
    assert box.runs() == []
    told = box.milepost("status")
    assert told.returncode == ExitCode.NOTHING_FOUND
    for words in ("no Miles run", "Docker is not running", "train_async.py", "127.0.0.1:8265"):
        assert words in told.stderr


@pytest.mark.pty
def test_none_on_the_screen_and_one_that_starts_later(box: Box, tmp_path: Path) -> None:
    with box.screen() as terminal:
        terminal.shows("No Miles run was found", "Docker is not running", "d demo")
        box.shell("DEMO --dir here > plain.log 2>&1", tmp_path)
        terminal.shows("● RUNNING", "plain.log", "of 5 000")
        assert terminal.leave() == 0


def two_runs(box: Box, folder: Path) -> list[dict[str, Any]]:
    for count, name in enumerate(("first", "second"), 1):
        box.shell(f"DEMO --dir {name} > {name}.log 2>&1", folder)
        box.runs_until(partial(is_of_size, count))
    return box.runs_until(lambda runs: all(run["rollout"] is not None for run in runs))


def is_of_size(count: int, runs: list[dict[str, Any]]) -> bool:
    return len(runs) == count


def test_two_at_once_are_listed_and_one_is_named(box: Box, tmp_path: Path) -> None:
    second, first = two_runs(box, tmp_path)
    assert (first["attachment"]["name"], second["attachment"]["name"]) == ("first", "second")

    printed = " ".join(box.milepost("runs").stdout.split())
    for words in ("2 runs on this machine", "● RUNNING", "5 000", f"milepost {first['handle']}"):
        assert words in printed
    assert f"first.log (output of the driver, process {first['handle']})" in printed, printed
    told = box.milepost("status")
    assert told.returncode == ExitCode.USAGE
    assert f"2 runs on this machine: {second['handle']} (second), {first['handle']}" in told.stderr
    for name in (first["handle"], str(tmp_path / "first.log")):
        named = box.status(name)["snapshot"]["attachment"]
        assert named["log"]["value"] == str(tmp_path / "first.log")
        assert named["driver_pid"]["value"] == first["handle"]


@pytest.mark.pty
def test_two_at_once_are_chosen_from_on_the_screen(box: Box, tmp_path: Path) -> None:
    two_runs(box, tmp_path)
    with box.screen() as terminal:
        terminal.shows("2 runs on this machine", "▶ second", "running for", "first.log", "found by")
        terminal.type("\x1b[B")
        terminal.shows("▶ first")
        terminal.type("\r")
        terminal.shows("● RUNNING", "first.log", "actor_train")
        assert "second.log" not in terminal.text
        assert terminal.leave() == 0


def test_a_copied_log_is_of_no_run(box: Box, tmp_path: Path) -> None:
    box.shell("DEMO --dir here > plain.log 2>&1", tmp_path)
    box.the_run()
    copy = tmp_path / "copy.log"
    copy.write_bytes((tmp_path / "plain.log").read_bytes())
    (tmp_path / "link.log").symlink_to("plain.log")

    assert box.status("--log", str(copy))["snapshot"]["attachment"]["driver_pid"] is None
    linked = box.status("--log", str(tmp_path / "link.log"))["snapshot"]["attachment"]
    assert linked["driver_pid"] is not None


@pytest.fixture
def of_nobody(box: Box) -> Iterator[Path]:
    """A folder with the run of another user. `python3` there is a shell, so that anybody can run it."""
    if os.geteuid() != 0:
        pytest.skip("needs root to be another user")
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "python3").symlink_to("/bin/sh")
        (folder / "train.py").write_text("echo begun; sleep 600\n")
        other = "setpriv --reuid=65534 --regid=65534 --clear-groups"
        box.shell(f"{other} ./python3 train.py --save {folder}/ckpt > plain.log", folder)
        yield folder


POWERLESS = ("setpriv", "--inh-caps=-all", "--bounding-set=-all")
"""Root without its powers: what is another user's is out of its reach as it is of anybody's."""


def test_what_another_user_keeps_to_itself_is_said_and_the_rest_is_found(
    box: Box, of_nobody: Path
) -> None:
    (allowed,) = box.runs_until(lambda runs: len(runs) == 1)
    assert allowed["attachment"]["log"]["value"] == str(of_nobody / "plain.log")
    with socket.socket(socket.AF_UNIX) as engine:
        engine.bind(str(of_nobody / "docker.sock"))
        os.chown(of_nobody / "docker.sock", 65534, 65534)
        box.docker_host = f"unix://{of_nobody}/docker.sock"
        told = box.run(*POWERLESS, sys.executable, "-m", "tui", "runs", "--json")

    document = json.loads(told.stdout)
    (run,) = document["runs"]
    assert len(run["attachment"]["notes"]) == 1, run
    (note,) = run["attachment"]["notes"]
    assert run["attachment"]["log"] is None
    assert run["attachment"]["checkpoints"]["value"] == f"{of_nobody}/ckpt"
    assert "only root and its own user may see where process" in note
    assert "run milepost as that user or with sudo, or name the log with --log FILE" in note
    assert (
        "containers of Miles: no permission for Docker: join the docker group or run with sudo"
        in document["looked_for"]
    )
