"""The run is looked for until it is found, and what is watched is never swapped for another."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fakes
import pytest
from demo_runs import plain_run

from tui import watch
from tui.attach import Finding, Target
from tui.config import Config
from tui.errors import NothingFoundError
from tui.model.events import Attached, RunsFound
from tui.model.launch import Attachment, Found, ListedRun
from tui.model.snapshot import RunState, Snapshot
from tui.watch import RunFinder, glanced

NOW = 1_795_956_000.0
LOG = Found(value="/home/me/plain.log", source="output of `docker run`, process 10")
CONTAINER = Found(value="ab12", source="container run-a")
DRIVER = Found(value="40", source="process 40")
Looks = Callable[[Finding], list[tuple[Target, bool]]]


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    """Say what a look finds; the looks that were taken."""

    def looks(finding: Finding) -> list[tuple[Target, bool]]:
        taken: list[tuple[Target, bool]] = []

        def look(target: Target, *, at: float, log_grows: bool, past: bool) -> Finding:
            taken.append((target, log_grows))
            return finding

        monkeypatch.setattr(watch, "found", look)
        return taken

    return looks


def seen(**parts: Any) -> Snapshot:
    return Snapshot(now=NOW, attachment=Attachment(**parts))


def test_a_run_that_starts_later_is_attached_to(looks: Looks) -> None:
    attachment = Attachment(name="run-a", log=LOG, driver_pid=DRIVER)
    looks(Finding(attachment=attachment))
    assert RunFinder(Target()).read(NOW, seen(read_only=True)) == (
        Attached(at=NOW, attachment=replace(attachment, read_only=True)),
    )


def test_several_are_told_and_told_again_when_there_are_none(looks: Looks) -> None:
    runs = fakes.several().choices
    looks(Finding(attachment=Attachment(), choices=runs))
    assert RunFinder(Target()).read(NOW, seen()) == (RunsFound(at=NOW, runs=runs),)

    looks(Finding(attachment=Attachment()))
    (event,) = RunFinder(Target()).read(NOW, replace(seen(), choices=runs))
    assert isinstance(event, Attached)  # which empties the list


def test_news_of_what_was_looked_for_are_told_and_nothing_twice(looks: Looks) -> None:
    looks(Finding(attachment=Attachment(notes=("new",))))
    (event,) = RunFinder(Target()).read(NOW, seen(notes=("old",)))
    assert isinstance(event, Attached)
    assert event.attachment.notes == ("new",)
    assert RunFinder(Target()).read(NOW, seen(notes=("new",))) == ()


@pytest.mark.parametrize(
    ("watched", "aim"),
    [
        ({"container": CONTAINER, "log": LOG}, Target(container="ab12")),
        ({"log": LOG}, Target(log=Path(LOG.value))),
        ({}, Target()),
    ],
)
def test_the_rest_of_what_is_watched_is_looked_for_and_no_other_run(
    looks: Looks, watched: dict[str, Found], aim: Target
) -> None:
    taken = looks(Finding(attachment=Attachment(driver_pid=DRIVER, log=DRIVER)))
    (event,) = RunFinder(Target()).read(NOW, seen(**watched))
    assert taken == [(aim, False)]
    assert isinstance(event, Attached)
    assert (event.attachment.driver_pid, event.attachment.log) == (
        DRIVER,
        watched.get("log", DRIVER),
    )


def test_once_there_is_a_driver_or_an_end_nothing_is_looked_for(
    looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch, "started_again", lambda before, at: None)
    taken = looks(Finding(attachment=Attachment()))
    assert RunFinder(Target()).read(NOW, seen(driver_pid=DRIVER)) == ()
    assert RunFinder(Target()).read(NOW, fakes.failed()) == ()
    assert taken == []


def test_a_run_that_has_ended_is_followed_when_somebody_starts_it_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ended = fakes.failed()
    later = Attachment(name="plain-2", container=CONTAINER, log=LOG, driver_pid=DRIVER)
    monkeypatch.setattr(watch, "started_again", lambda before, at: later)
    name = ended.attachment.name
    expected = Attached(at=NOW, attachment=replace(later, name=name), succeeds=True)
    assert RunFinder(Target()).read(NOW, ended) == (expected,)
    assert RunFinder(Target()).read(NOW, replace(ended, action_holder="a resume")) == ()


def test_a_named_log_is_seen_growing(looks: Looks, tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    taken = looks(Finding(attachment=Attachment()))
    finder = RunFinder(Target(log=log))
    finder.read(NOW, seen())
    for text in ("a", "ab", "ab"):
        log.write_text(text)
        finder.read(NOW, seen())
    assert [grows for _, grows in taken] == [False, False, True, True]


def test_a_name_that_is_not_there_yet_is_no_event(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> Finding:
        raise NothingFoundError("there is no container run-a")

    monkeypatch.setattr(watch, "found", refuse)
    assert RunFinder(Target(name="run-a")).read(NOW, seen()) == ()


def test_a_glance_tells_the_state_and_the_save_folder_from_the_log(tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    log.write_text(plain_run().log)
    attachment = Attachment(log=Found(value=str(log), source="x"))
    listed = ListedRun(handle="40", attachment=attachment, state="running")
    run, snapshot = glanced(listed, Config(), at=NOW)
    assert snapshot.verdict.state is RunState.FINISHED
    assert run.attachment.checkpoints is not None
    assert run.attachment.checkpoints.source == "--save in its log"
    assert Path(run.attachment.checkpoints.value).is_dir()
