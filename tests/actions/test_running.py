"""`milepost run`: detached, a new log, the recipe kept before it begins, and adopted by who watches."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest
from begun import is_alive, wait_until

from tui.actions.running import Started, start_command
from tui.attach import Target, found
from tui.errors import MilepostError, UsageError
from tui.model.launch import Attachment, Found
from tui.model.recipe import Recipe
from tui.runs.recipe_keeping import keep_seen
from tui.runs.recipe_store import FILE, kept
from tui.runs.state_dir import run_folder, runs_folder

DEMO = (sys.executable, "-m", "tui.demo", "--speed", "1", "--num-rollout", "5000", "--dir", "demo")


@pytest.fixture
def pids() -> Iterator[list[int]]:
    """Whose sessions end with the test."""
    started: list[int] = []
    yield started
    for leader in started:
        for pid in psutil.pids():
            try:
                if os.getsid(pid) == leader:
                    os.kill(pid, signal.SIGKILL)
            except ProcessLookupError:
                continue


def by_log(log: str) -> Attachment:
    return Attachment(log=Found(value=log, source=""))


def test_it_is_started_and_known_by_its_log(
    tmp_path: Path, pids: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GREETING", "good day")
    started = start_command(("sh", "-c", "echo $GREETING; exec sleep 600"), folder=tmp_path)
    pids.append(started.pid)
    assert started.log == str(tmp_path / "run.log")
    wait_until(lambda: Path(started.log).read_text() == "good day\n", "it never printed")
    assert os.getsid(started.pid) == started.pid
    recipe = kept(run_folder(by_log(started.log)))
    assert recipe is not None
    assert started.run_id == run_folder(by_log(started.log)).name
    assert (recipe.ours, recipe.source, recipe.pid) == (True, "milepost run", started.pid)
    assert ("GREETING", "good day") in (recipe.environment or ())
    assert [file.name for file in run_folder(by_log(started.log)).glob("recipe*")] == [FILE]


def test_a_run_is_known_by_where_it_saves(tmp_path: Path, pids: list[int]) -> None:
    started = start_command((*DEMO, "--save", "ckpt/run-a"), folder=tmp_path)
    pids.append(started.pid)
    assert started.log == str(tmp_path / "run-a.log")
    end = time.monotonic() + 60.0
    while True:
        finding = found(Target(log=Path(started.log)), at=time.time())
        if finding.run is not None:
            break
        assert time.monotonic() < end, "it was never found"
        time.sleep(0.05)
    assert run_folder(finding.attachment).name == started.run_id
    seen = keep_seen(finding.run, finding.attachment, time.time())
    assert isinstance(seen, Recipe)
    assert (seen.ours, seen.source) == (True, "milepost run")


def test_a_script_whose_run_saves_elsewhere_is_still_what_is_started_again(
    tmp_path: Path, pids: list[int]
) -> None:
    (tmp_path / "start.sh").write_text(f"{' '.join(DEMO)} --save ckpt/run-a &\nexec true")
    started = start_command(("bash", "start.sh"), folder=tmp_path)
    pids.append(started.pid)
    end = time.monotonic() + 60.0
    while True:
        finding = found(Target(log=Path(started.log)), at=time.time())
        if finding.run is not None:
            break
        assert time.monotonic() < end, "it was never found"
        time.sleep(0.05)
    wait_until(lambda: not is_alive(started.pid), "the script goes on")
    folder = run_folder(finding.attachment)
    assert folder.name != started.run_id
    assert kept(folder) is None
    seen = keep_seen(finding.run, finding.attachment, time.time())
    assert isinstance(seen, Recipe)
    assert seen.argv == ("bash", "start.sh")
    assert kept(folder) == seen


def test_names_of_logs(tmp_path: Path, pids: list[int]) -> None:
    def run(**options: object) -> str:
        started: Started = start_command(("sleep", "600"), folder=tmp_path, **options)  # type: ignore[arg-type]
        pids.append(started.pid)
        return os.path.relpath(started.log, tmp_path)

    assert [run(), run(), run(name="first"), run(name="first")] == [
        *("run.log", "run-2.log", "first.log", "first-2.log")
    ]
    assert run(log=Path("own.txt")) == "own.txt"
    with pytest.raises(UsageError, match="is there already"):
        run(log=Path("own.txt"))


@pytest.mark.parametrize(
    ("command", "line"),
    [
        (("no-such-program",), "no-such-program: no such command"),
        (("docker", "run", "-d", "miles"), "with --detach"),
    ],
)
def test_what_cannot_be_started_leaves_nothing(
    tmp_path: Path, command: tuple[str, ...], line: str
) -> None:
    with pytest.raises(UsageError, match=line):
        start_command(command, folder=tmp_path)
    assert list(tmp_path.iterdir()) == []
    assert not runs_folder().exists()


def test_nothing_is_started_whose_recipe_cannot_be_kept(tmp_path: Path) -> None:
    runs_folder().parent.mkdir(parents=True)
    runs_folder().touch()
    with pytest.raises(MilepostError):
        start_command(("touch", "begun"), folder=tmp_path)
    assert not (tmp_path / "begun").exists()
