"""A sample of the guard's kills on containers: `python tests/guard_killed.py --backend rm` is the whole."""

from __future__ import annotations

import pytest
from campaign_places import places
from guard_killed import outcome

pytestmark = pytest.mark.engine


@pytest.mark.parametrize(
    ("backend", "stage"), [("rm", "starts the run"), ("detached", "has begun")]
)
def test_the_next_guard_goes_on(backend: str, stage: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("CAMPAIGN", "DOCKER_HOST", "HOME"):
        monkeypatch.setenv(name, "")  # taken back after the test, whatever it becomes
    with places(backend) as make:
        assert outcome(make(), stage, with_executor=True).faults == ()
