"""The recipe is kept once for each start, and what stands in the way is a note."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import fakes
import pytest
from sightings import NOW, container, process

from tui.model.events import ProbeMissed
from tui.model.launch import Attachment, Found
from tui.model.reading import Absence
from tui.model.recipe import RecipeKind
from tui.model.snapshot import Snapshot
from tui.probes.recipe import RecipeProbe
from tui.runs import recipe, recipe_sources
from tui.runs.merge import FoundRun
from tui.runs.recipe_store import kept
from tui.runs.state_dir import run_folder, runs_folder

ATTACHMENT = Attachment(
    name="run-a",
    log=Found(value="/lab/plain.log", source="x"),
    driver_pid=Found(value="9", source="x"),
)
DRIVER = process(9, "python3 train.py", log="/lab/plain.log", cwd="/lab")


def snapshot(**changes: Any) -> Snapshot:
    return Snapshot(now=NOW, attachment=replace(ATTACHMENT, **changes))


class Looks:
    """What is seen, and how often it was looked for."""

    def __init__(self, run: FoundRun | None) -> None:
        self.run = run
        self.count = 0

    def __call__(self, attachment: Attachment, at: float) -> FoundRun | None:
        self.count += 1
        return self.run


@pytest.fixture(autouse=True)
def _readable(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (recipe, recipe_sources):
        monkeypatch.setattr(module, "may_be_read", lambda _: True)
    monkeypatch.setattr(recipe_sources, "environment_of", lambda _: (("PATH", "/bin"),))


def test_it_is_kept_once_and_costs_nothing_after() -> None:
    looks = Looks(FoundRun(driver=DRIVER))
    probe = RecipeProbe(looks)
    for _ in range(5):
        assert probe.read(NOW, snapshot()) == ()
    assert looks.count == 1
    found = kept(run_folder(ATTACHMENT))
    assert found is not None
    assert (found.kind, found.argv) == (RecipeKind.PROCESS, DRIVER.argv)


def test_another_start_is_looked_at_and_the_one_before_stays() -> None:
    looks = Looks(FoundRun(driver=DRIVER))
    probe = RecipeProbe(looks)
    probe.read(NOW, snapshot())
    later = process(10, "python3 train.py --load /x", after_s=60.0, cwd="/lab")
    looks.run = FoundRun(driver=later)
    probe.read(NOW, snapshot(driver_pid=Found(value="10", source="x")))
    assert looks.count == 2
    found = kept(run_folder(ATTACHMENT))
    assert found is not None
    assert found.pid == 10
    assert len(list(run_folder(ATTACHMENT).glob("recipe-*.json"))) == 1


def test_what_is_kept_of_a_client_outlives_it() -> None:
    client = process(7, "docker run --rm --name=run-a miles python3 train.py", log="/lab/plain.log")
    around = container("run-a", "python3 train.py")
    seen = FoundRun(client=client, container=around, driver=DRIVER, is_here=False)
    probe = RecipeProbe(Looks(seen))
    probe.read(NOW, snapshot())
    without = RecipeProbe(Looks(replace(seen, client=None)))
    without.read(NOW, snapshot())
    found = kept(run_folder(ATTACHMENT))
    assert found is not None
    assert found.argv == client.argv


@pytest.mark.parametrize(
    "seen",
    [
        Snapshot(now=NOW),
        Snapshot(now=NOW, attachment=Attachment(log=ATTACHMENT.log)),
        replace(fakes.failed(), attachment=ATTACHMENT),
    ],
    ids=["nothing", "only a log", "ended"],
)
def test_nothing_that_lives_is_looked_at_nowhere(seen: Snapshot) -> None:
    looks = Looks(FoundRun(driver=DRIVER))
    assert RecipeProbe(looks).read(NOW, seen) == ()
    assert looks.count == 0


def test_what_cannot_be_seen_yet_is_looked_for_again() -> None:
    looks = Looks(None)
    probe = RecipeProbe(looks)
    assert probe.read(NOW, snapshot()) == probe.read(NOW, snapshot()) == ()
    assert looks.count == 2


def test_why_it_cannot_be_kept_is_told_until_it_can() -> None:
    runs_folder().parent.mkdir(parents=True)
    runs_folder().touch()
    probe = RecipeProbe(Looks(FoundRun(driver=DRIVER)))
    (event,) = probe.read(NOW, snapshot())
    assert isinstance(event, ProbeMissed)
    assert event.fault.why is Absence.ERROR
    assert event.fault.reason.startswith("how the run was started cannot be kept: ")
    assert str(runs_folder()) in event.fault.reason
    assert probe.read(NOW, snapshot()) == (event,)
    runs_folder().unlink()
    assert probe.read(NOW, snapshot()) == ()
    assert kept(run_folder(ATTACHMENT)) is not None


def test_a_start_of_another_user_is_told_with_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(recipe, "may_be_read", lambda _: False)
    (event,) = RecipeProbe(Looks(FoundRun(driver=DRIVER))).read(NOW, snapshot())
    assert isinstance(event, ProbeMissed)
    assert event.fault.reason.endswith("run milepost as that user or with sudo")


def test_it_is_too_early_to_tell_of_an_idle_container() -> None:
    idle = FoundRun(container=container("run-a", "bash"), is_idle=True, is_here=False)
    assert RecipeProbe(Looks(idle)).read(NOW, snapshot()) == ()
    assert kept(run_folder(ATTACHMENT)) is None
