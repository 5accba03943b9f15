"""The kill campaign: every action, killed at every write of its journal, must come to a good end.

`python tests/campaign.py --backend process --actions resume,save` prints a table of stages and
outcomes. A point is a write, before or after it, and what happens there: the action's process is
killed, who follows it, both, or the Docker engine is stopped and started.
"""

from __future__ import annotations

import argparse
import random
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from campaign_keys import KEYS, ByKeys
from campaign_places import FATES, places
from campaign_trial import ACTIONS, End, Outcome, Scene, Trial
from dying import Fate, Point

NEVER = Point(write=-1, when="after", fate=Fate.ACTION)
_POINTS_A_PLACE = 12
"""Then begins a new run in a new folder: logs and checkpoints only become more."""
_SOME_WRITES = 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which of all points."""

    backend: str
    actions: tuple[str, ...]
    fates: tuple[Fate, ...]
    by_keys: bool = False
    """By the screen, and not by commands."""
    seed: int = 0
    sample: int = 0
    """How many of each action; 0: all."""
    writes: int = 0
    """How often an action writes; 0: that is counted first."""
    until: float = float("inf")
    """Epoch seconds; none begins after that."""


def campaign(chosen: Chosen) -> Iterator[Outcome]:
    """What comes of each point."""
    chance = random.Random(chosen.seed)
    with places(chosen.backend) as make:
        kind = ByKeys if chosen.by_keys else Scene
        stage = Stage(lambda: kind(make()), chance)
        for name in chosen.actions:
            writes = chosen.writes
            if not writes:
                left_alone, writes = stage.tried(name, NEVER)
                if left_alone.end is not End.ENDED:
                    yield left_alone
            for point in _points(chosen, writes or _SOME_WRITES, chance):
                if time.time() > chosen.until:
                    return
                outcome, _ = stage.tried(name, point)
                if outcome.stage or outcome.end is End.FAULT:
                    yield outcome


def _points(chosen: Chosen, writes: int, chance: random.Random) -> list[Point]:
    found = [
        Point(write=write, when=when, fate=fate)
        for write in range(writes)
        for when in ("before", "after")
        for fate in chosen.fates
    ]
    return chance.sample(found, min(chosen.sample, len(found))) if chosen.sample else found


class Stage:
    """A new scene every now and then, and after each fault."""

    def __init__(self, make: Callable[[], Scene], chance: random.Random) -> None:
        self._make = make
        self._chance = chance
        self._left = 0
        self._scene: Scene | None = None

    def tried(self, name: str, point: Point) -> tuple[Outcome, int]:
        """What came of the point, and the number of writes."""
        try:
            trial = Trial(scene=self._set(), name=name, point=point, chance=self._chance)
            outcome, writes = trial.outcome()
        except AssertionError as fault:
            told = f"could not be made ready or tidied: {fault}"
            outcome = Outcome(action=name, point=point, stage="", end=End.FAULT, told=told)
            writes = 0
        if outcome.end is End.FAULT:
            self._left = 0
        return outcome, writes

    def _set(self) -> Scene:
        if self._scene is None or self._left == 0:
            if self._scene is not None:
                self._scene.kill()
            self._scene = self._make()
            self._left = _POINTS_A_PLACE
        self._left -= 1
        return self._scene


def table(outcomes: Iterable[Outcome]) -> str:
    """Stages and what came of the points there, in Markdown."""
    counts: dict[tuple[str, str], Counter[End]] = {}
    for outcome in outcomes:
        counts.setdefault((outcome.action, outcome.stage), Counter())[outcome.end] += 1
    rows = [("action", "stage", *End, "all"), ("---",) * (len(End) + 3)]
    rows += [(*key, *_cells(count)) for key, count in counts.items()]
    rows.append(("all", "", *_cells(sum(counts.values(), Counter[End]()))))
    return "\n".join(f"| {' | '.join(row)} |" for row in rows)


def _cells(count: Counter[End]) -> tuple[str, ...]:
    return (*(str(count[end] or "") for end in End), str(count.total()))


def main() -> None:
    """Run it, and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", choices=FATES, default="process")
    parser.add_argument("--actions", help="by default all")
    parser.add_argument("--fates", default="", help="by default all of the backend")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=0, help="points of each action; 0: all")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    parser.add_argument("--by-keys", action="store_true", help="of the screen")
    given = parser.parse_args()
    fates = tuple(map(Fate, filter(None, given.fates.split(",")))) or FATES[given.backend]
    chosen = Chosen(
        backend=given.backend,
        actions=tuple(
            given.actions.split(",") if given.actions else KEYS if given.by_keys else ACTIONS
        ),
        fates=fates,
        by_keys=given.by_keys,
        seed=given.seed,
        sample=given.sample,
        until=time.time() + 60 * given.minutes,
    )
    outcomes: list[Outcome] = []
    try:
        for outcome in campaign(chosen):
            outcomes.append(outcome)
            print(outcome.line, file=sys.stderr, flush=True)
    finally:
        print(table(outcomes))
    sys.exit(any(outcome.end is End.FAULT for outcome in outcomes))


if __name__ == "__main__":
    main()
