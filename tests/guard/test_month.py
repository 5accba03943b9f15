"""A month of healthy running: no alarm, no word of the guard, and nothing done. Then a stall."""

from __future__ import annotations

import pickle
from collections import Counter

import pytest
from fake_box import NOW
from month import DAY, Month

from tui.guard.decision import Move, Policy, State, Terms
from tui.guard.notice import NewsDesk, Notice
from tui.guard.policy import decide
from tui.model.snapshot import Level, RunState, Snapshot

SEEDS, DAYS = (7, 8, 9), 10.0
"""A month in all."""
TERMS = Terms(policy=Policy.RESUME)


class Listener:
    """What a guard would have told and done."""

    def __init__(self) -> None:
        self.state, self.news = State(), NewsDesk()
        self.alarms: list[Notice] = []
        self.moves: Counter[tuple[Move, str]] = Counter()
        self.states: Counter[RunState] = Counter()
        self.bytes_kept: dict[int, int] = {}
        """At the begin of each day."""

    def __call__(self, snapshot: Snapshot) -> None:
        told = self.news.of(snapshot)
        self.alarms += [notice for notice in told if notice.level is not Level.INFO]
        self.state, decision = decide(self.state, snapshot, TERMS)
        if decision.move is not Move.WATCH:
            self.moves[decision.move, decision.line] += 1
        self.states[snapshot.verdict.state] += 1
        day = int((snapshot.now - NOW) // DAY)
        if day not in self.bytes_kept:
            self.bytes_kept[day] = len(pickle.dumps((snapshot, self.state, self.news)))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_healthy_month_raises_no_alarm(seed: int) -> None:
    listener = Listener()
    month = Month(look=listener, seed=seed)
    month.pass_days(DAYS)

    assert [f"{each.code}: {each.line}" for each in listener.alarms] == []
    assert dict(listener.moves) == {}
    assert set(listener.states) <= {RunState.STARTING, RunState.RUNNING}
    assert month.snapshot.story.rollouts_done > 400
    assert set(month.surprises) == {"clock", "zone", "rotation", "silence"}
    assert month.snapshot.story.clues == ()
    kept = listener.bytes_kept
    grown = max(kept[day] for day in (7, 8, 9)) - max(kept[day] for day in (1, 2, 3))
    assert grown < 100_000

    month.hang(900.0)
    assert month.snapshot.verdict.state is RunState.STALLED
    assert [each.code for each in listener.alarms] == ["stalled"]
