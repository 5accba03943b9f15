"""A sample of the kill campaign, of which `python tests/campaign.py` is the whole."""

from __future__ import annotations

import pytest
from campaign import Chosen, campaign
from campaign_places import KILLS
from campaign_trial import End


@pytest.mark.parametrize(
    ("action", "writes"), [("save", 8), ("resume", 22), ("rollback", 8), ("convert", 9)]
)
def test_killed_at_some_writes_it_comes_to_a_good_end(
    action: str, writes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CAMPAIGN", "")  # taken back after the test, whatever it becomes
    sample = Chosen(
        backend="process", actions=(action,), fates=KILLS, seed=1, sample=1, writes=writes
    )
    outcomes = list(campaign(sample))
    assert outcomes
    assert [each.line for each in outcomes if each.end is End.FAULT] == []
