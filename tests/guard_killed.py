"""A guard that is killed at a stage of its own restart of a run, and the next one that goes on.

`python tests/guard_killed.py --backend rm` prints a table of stages and outcomes.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import psutil
from campaign_places import FATES, places
from campaign_trial import Scene
from campaign_watch import Kept, Watch
from places import Place, until

from tui.model.action import ActionKind, ActionState

Line = Callable[[dict[str, Any]], bool]
_RESUMED_S = 600.0


def _remark(code: str) -> Line:
    return lambda line: line.get("remark", {}).get("code") == code


def _step(number: int, mark: str) -> Line:
    return lambda line: line.get("mark") == mark and line.get("step") == number


STAGES: dict[str, Line] = {
    "verifies": _remark("guard-verifies"),
    "has written down what it does": _remark("guard-acts"),
    "has begun": lambda line: line.get("mark") == "started",
    "starts the run": _step(0, "step begun"),
    "has started the run": _step(0, "step done"),
    "proves": _step(1, "noted"),
}
"""By a line in the run's journal, of a run that is dead: there is nothing to stop."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of one stage; no faults is what is wanted."""

    stage: str
    with_executor: bool
    faults: tuple[str, ...]
    told: str
    seconds: float

    @property
    def line(self) -> str:
        who = "guard and executor" if self.with_executor else "guard"
        end = f"FAULT: {'; '.join(self.faults)}" if self.faults else "resumed once"
        return f"{self.seconds:5.1f} s  {self.stage}, {who}: {end}: {self.told}"


def outcome(place: Place, stage: str, *, with_executor: bool) -> Outcome:
    """Start the run, have it die under a guard, and kill that one at its stage."""
    began = time.monotonic()
    scene = Scene(place)
    told, faults = "", []
    try:
        kept = Kept.of(place)
        with Watch(place) as watch:
            _meets_its_fate(scene, stage, with_executor=with_executor)
            with guard(place):
                until(lambda: _is_resumed(scene), _RESUMED_S)
        faults = [*sorted(watch.faults), *kept.lost(place, watch.folders), *_wrong(scene)]
        told = scene.records()[-1].line
    except AssertionError as fault:
        faults.append(f"{fault}: {[f'{each.title}: {each.line}' for each in scene.records()]}")
    finally:
        scene.kill()
    return Outcome(stage, with_executor, tuple(faults), told, time.monotonic() - began)


def _meets_its_fate(scene: Scene, stage: str, *, with_executor: bool) -> None:
    with guard(scene.place) as first:
        until(lambda: any(map(_remark("guard-watches"), _lines(scene))))
        scene.kill()
        until(lambda: any(map(STAGES[stage], _lines(scene))))
        first.kill()
    for process in _executors(scene.place) if with_executor else ():
        with suppress(psutil.Error):
            process.kill()


@contextmanager
def guard(place: Place, *options: str) -> Iterator[psutil.Process]:
    """One that may resume; killed at the end."""
    entered = place.box.start(
        *(sys.executable, "-m", "tui", "guard", *place.named, "--act", "resume", *options),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    until(lambda: bool(psutil.Process(entered.pid).children()))
    (process,) = psutil.Process(entered.pid).children()
    try:
        yield process
    finally:
        with suppress(psutil.Error):
            process.kill()
        entered.wait(30)


def _lines(scene: Scene) -> list[dict[str, Any]]:
    found = []
    for line in (scene.folder / "journal.jsonl").read_text().split("\n"):
        with suppress(ValueError):
            found.append(json.loads(line))
    return found


def _executors(place: Place) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            words = process.cmdline()
            if "tui.actions" in words and any(str(place.state) in word for word in words):
                found.append(process)
    return found


def _is_resumed(scene: Scene) -> bool:
    records = scene.records()
    is_done = bool(records) and records[-1].state is ActionState.DONE
    return is_done and len(scene.drivers()) == 1


def _wrong(scene: Scene) -> Iterator[str]:
    records = scene.records()
    if [each.kind for each in records] != [ActionKind.RESUME]:
        yield f"it was acted on {len(records)} times"
    if (count := len(scene.drivers())) != 1:
        yield f"{count} drivers live"


def main() -> None:
    """Run it, and print its table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--backend", choices=FATES, default="process")
    given = parser.parse_args()
    outcomes = []
    with places(given.backend) as make:
        for stage in STAGES:
            for with_executor in (False, True):
                outcomes.append(outcome(make(), stage, with_executor=with_executor))
                print(outcomes[-1].line, file=sys.stderr, flush=True)
    print("| killed when the guard | killed | resumed once | FAULT |\n|---|---|---|---|")
    for each in outcomes:
        who = "guard and executor" if each.with_executor else "guard"
        print(f"| {each.stage} | {who} | {'' if each.faults else '1'} | {'; '.join(each.faults)} |")
    sys.exit(any(each.faults for each in outcomes))


if __name__ == "__main__":
    main()
