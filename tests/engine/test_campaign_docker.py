"""A sample of the kill campaign on containers: `python tests/campaign.py --backend rm` is the whole."""

from __future__ import annotations

import pytest
from campaign import Chosen, campaign
from campaign_trial import End
from dying import Fate

pytestmark = pytest.mark.engine


@pytest.mark.parametrize("backend", ["rm", "detached"])
def test_killed_and_its_engine_restarted_a_resume_comes_to_a_good_end(
    backend: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("CAMPAIGN", "DOCKER_HOST"):
        monkeypatch.setenv(name, "")  # taken back after the test, whatever it becomes
    fates = (Fate.ACTION, Fate.ENGINE)
    sample = Chosen(backend=backend, actions=("resume",), fates=fates, seed=1, sample=2, writes=20)
    outcomes = list(campaign(sample))
    assert outcomes
    assert [each.line for each in outcomes if each.end is End.FAULT] == []
