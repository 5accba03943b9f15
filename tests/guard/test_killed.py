"""A guard that is killed at any stage of what it does: the next one sees to it that one run lives.

Every second stage with its action's process too; `python tests/guard_killed.py` is the whole.
"""

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


@pytest.mark.parametrize(
    ("stage", "with_executor"), [(stage, bool(at % 2)) for at, stage in enumerate(STAGES)]
)
def test_the_next_guard_goes_on(stage: str, with_executor: bool, made: Callable[[], Place]) -> None:
    assert outcome(made(), stage, with_executor=with_executor).faults == ()
