"""A run that was seen here and of which nothing runs any more is gone; anything less is not."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from tui.model.launch import Attachment, Found
from tui.model.recipe import Recipe, RecipeKind
from tui.model.snapshot import Snapshot
from tui.probes.gone import GoneProbe
from tui.runs.recipe_end import has_ended
from tui.runs.recipe_store import keep
from tui.runs.state_dir import run_folder
from tui.watch import is_gone

NOW = 1_795_956_000.0
LOG = Found(value="/runs/plain.log", source="--log")
ALONE = Snapshot(attachment=Attachment(log=LOG))


@pytest.fixture
def sleeper() -> Iterator[psutil.Process]:
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield psutil.Process(process.pid)
        process.kill()


def recipe(process: psutil.Process, **changes: object) -> Recipe:
    made = Recipe(
        kind=RecipeKind.PROCESS,
        source="a test",
        captured_at=NOW,
        pid=process.pid,
        run_started_at=process.create_time(),
    )
    return replace(made, **changes)  # type: ignore[arg-type]


def test_once_it_is_gone_its_driver_has_exited_since() -> None:
    probe = GoneProbe(lambda *_: True)
    reads = [probe.read(NOW + 5.0 * look, ALONE) for look in range(5)]

    assert reads[:3] == [(), (), ()]
    for read in reads[3:]:
        (event,) = read
        assert event.tree.value.driver_exited_at == NOW  # type: ignore[attr-defined]


def test_one_that_is_seen_again_was_not_gone() -> None:
    answers = iter([True, True, False, True, True, True])
    probe = GoneProbe(lambda *_: next(answers))

    assert [probe.read(NOW + 5.0 * look, ALONE) for look in range(6)] == [()] * 6


@pytest.mark.parametrize(
    "changes", [{"driver_pid": LOG}, {"container": LOG}, {"job": LOG}, {"log": None}]
)
def test_where_something_of_it_is_known_others_tell(changes: dict[str, Found | None]) -> None:
    known_of = replace(ALONE.attachment, **changes)  # type: ignore[arg-type]
    assert GoneProbe(lambda *_: True).read(NOW, replace(ALONE, attachment=known_of)) == ()


def test_one_that_is_not_gone_is_told_nothing_of() -> None:
    assert GoneProbe(lambda *_: False).read(NOW, ALONE) == ()


def test_a_process_that_lives_has_not_ended(sleeper: psutil.Process) -> None:
    assert not has_ended(recipe(sleeper), NOW)


def test_a_process_that_is_gone_or_another_by_now_has(sleeper: psutil.Process) -> None:
    other = recipe(sleeper, run_started_at=sleeper.create_time() - 3600.0)
    gone = recipe(sleeper)
    sleeper.kill()
    sleeper.wait()

    assert has_ended(other, NOW)
    assert has_ended(gone, NOW)


@pytest.mark.parametrize("changes", [{"pid": 0}, {"container_id": "ab12"}, {"submission_id": "j"}])
def test_what_cannot_be_asked_about_may_live(
    changes: dict[str, object], sleeper: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    before = recipe(sleeper, run_started_at=1.0, **changes)

    assert not has_ended(before, NOW)


def test_a_log_of_no_run_that_was_seen_here_is_never_gone(tmp_path: Path) -> None:
    log = Found(value=str(tmp_path / "copied.log"), source="--log")

    assert not is_gone(Attachment(log=log), time.time())


def test_a_run_that_was_seen_here_is_gone_with_its_process(
    tmp_path: Path, sleeper: psutil.Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    attachment = Attachment(log=Found(value=str(tmp_path / "plain.log"), source="--log"))
    (tmp_path / "plain.log").touch()
    keep(run_folder(attachment), recipe(sleeper, log=str(tmp_path / "plain.log")))
    lives = is_gone(attachment, time.time())
    sleeper.kill()
    sleeper.wait()

    assert not lives
    assert is_gone(attachment, time.time())


@pytest.mark.parametrize("log", ["", "plain.log"])
def test_a_new_log_is_that_of_a_start_nobody_has_seen_yet(tmp_path: Path, log: str) -> None:
    """What is known is the start before it: the new one may be a script that is still at work."""
    log = log and str(tmp_path / log)
    attachment = Attachment(log=Found(value=str(tmp_path / "plain-resume.log"), source="started"))
    with subprocess.Popen([sys.executable, "-c", ""]) as process:
        ended = recipe(psutil.Process(process.pid), log=log)
    keep(run_folder(attachment), ended)

    assert has_ended(ended, NOW)
    assert not is_gone(attachment, time.time())
