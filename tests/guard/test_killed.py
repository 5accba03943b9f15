"""A guard that is killed at any stage of what it does: the next one sees to it that one run lives."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pytest
from campaign_places import places
from guard_killed import STAGES, outcome
from places import Place


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[[], Place]]:
    """What makes the place of a run that is a process."""
    for name in ("CAMPAIGN", "HOME"):
        monkeypatch.setenv(name, "")  # taken back after the test, whatever it becomes
    with places("process") as make:
        yield make


@pytest.mark.parametrize("with_executor", [False, True], ids=["guard", "guard and executor"])
@pytest.mark.parametrize("stage", STAGES)
def test_the_next_guard_goes_on(stage: str, with_executor: bool, made: Callable[[], Place]) -> None:
    assert outcome(made(), stage, with_executor=with_executor).faults == ()
