"""A resume starts another log and another process: the monitor goes on with those."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes import running

from tui import successor
from tui.attach import Finding
from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.events import Attached
from tui.model.launch import Attachment, Found
from tui.model.reduce import reduce
from tui.model.snapshot import Snapshot
from tui.successor import SuccessorFinder

OLD = Found(value="/runs/plain.log", source="output of the driver")
NEW = "/runs/plain-resume.log"
DRIVER = Found(value="4242", source="process 4242")


def record(at: float = 20.0, **facts: str) -> ActionRecord:
    return ActionRecord(
        id="r",
        kind=ActionKind.RESUME,
        title="Resume",
        state=ActionState.OPEN,
        began_at=at,
        changed_at=at,
        facts=facts,
    )


def seen(*records: ActionRecord) -> Snapshot:
    return Snapshot(
        attachment=Attachment(name="run-a", log=OLD, driver_pid=DRIVER), actions=records
    )


@pytest.fixture(autouse=True)
def _finds_only_the_log(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(successor, "found", lambda target, at: Finding(attachment=Attachment()))


def test_what_was_started_is_watched_instead() -> None:
    (event,) = SuccessorFinder(10.0).read(21.0, seen(record(log=NEW)))
    assert isinstance(event, Attached)
    assert event.succeeds
    assert event.attachment.log is not None
    assert event.attachment.log.value == NEW
    assert event.attachment.driver_pid is None
    assert event.attachment.name == "run-a"


@pytest.mark.parametrize(
    "records",
    [
        (),
        (record(at=5.0, log=NEW),),
        (record(),),
        (replace(record(log=NEW), kind=ActionKind.STOP),),
    ],
)
def test_nothing_else_makes_it_change_over(records: tuple[ActionRecord, ...]) -> None:
    assert SuccessorFinder(10.0).read(21.0, seen(*records)) == ()


def test_who_watches_the_new_log_already_loses_nothing_it_read() -> None:
    watching = seen(record(log=NEW))
    log = Found(value=NEW, source="--log")
    watching = replace(watching, attachment=replace(watching.attachment, log=log))
    assert SuccessorFinder(10.0).read(21.0, watching) == ()


def test_the_story_before_is_over_but_what_it_trained_stays() -> None:
    before = running()
    after = reduce(before, Attached(at=before.now, attachment=before.attachment, succeeds=True))
    assert after.story.rollout is None
    assert after.story.ending is None
    assert after.lines == ()
    assert after.story.series == before.story.series
    assert after.story.saves == before.story.saves
