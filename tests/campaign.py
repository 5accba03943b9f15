"""The kill campaign: every action, killed at every write of its journal, must come to a good end.

`python tests/campaign.py --backend process --actions resume,save` prints a table of stages and
outcomes. A point is a write, before or after it, and what happens there: the action's process is
killed, who follows it, both, or the Docker engine is stopped and started.
"""

from __future__ import annotations

import argparse
import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from box import opened_box
from campaign_watch import CONVERTER, DRIVER, ENVIRONMENT, Kept, Watch, instances, tracked, whole
from docker_box import opened_engine
from dying import Fate, Point, Signs
from places import BareProcess, DetachedContainer, InContainer, Place, RemovedContainer, until

from tui.model.action import ActionRecord, ActionState
from tui.runs.journal import Journal
from tui.runs.lock import holder_of

DYING = str(Path(__file__).with_name("dying.py"))
KILLS = (Fate.ACTION, Fate.FOLLOWER, Fate.BOTH, Fate.TWICE)
RESTARTS = (Fate.ENGINE, Fate.CRASH)
FATES = {"process": KILLS, "rm": (*KILLS, *RESTARTS), "detached": (*KILLS, *RESTARTS)}
NEVER = Point(write=-1, when="after", fate=Fate.ACTION)
_POINTS_A_PLACE = 12
"""Then begins a new run in a new folder: logs and checkpoints only become more."""
_SOME_WRITES = 20
_SETTLES_S = 15.0
_ASKS_BESIDE = 0.2
"""How often another action is asked for while one is open."""


class End(StrEnum):
    """How it came to a good end, or that it did not."""

    AGAIN = "not begun, asked again"
    FINISHED = "finished by one command"
    ALONE = "went on by itself"
    ENDED = "had ended"
    FAILED = "failed and said why, then resumed"
    FAULT = "FAULT"


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What came of one point."""

    action: str
    point: Point
    stage: str
    """Where in the action it was, as its journal says."""
    end: End
    told: str = ""
    seconds: float = 0.0

    @property
    def line(self) -> str:
        where = f"{self.action}, {self.point.when} {self.point.write} ({self.stage})"
        return f"{self.seconds:5.1f} s  {where}, {self.point.fate}: {self.end}: {self.told}"


class Fault(AssertionError):  # noqa: N818 - an outcome
    """Something was not as it must be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """One command, and the run that it needs and leaves."""

    words: Callable[[Place], tuple[str, ...]]
    lives: bool
    """The run, before."""
    leaves: bool
    """It living."""
    ready: Callable[[Place], object] = lambda place: None
    tidy: Callable[[Place], object] = lambda place: None


def _newest(place: Place) -> str:
    return place.tracker.strip()


def _older(place: Place) -> str:
    newest = int(_newest(place))
    return str(next(e.iteration for e in whole(place.saves, time.time()) if e.iteration < newest))


def _rolled_back(place: Place) -> None:
    place.outcome("rollback", _older(place))


def _undone(place: Place) -> None:
    place.outcome("rollback", "--undo")


def _unconverted(place: Place) -> None:
    shutil.rmtree(place.saves.parent / "models")


def _convert(place: Place) -> tuple[str, ...]:
    return ("convert", _newest(place))


ACTIONS: Mapping[str, Action] = {
    "save": Action(words=lambda _: ("save",), lives=True, leaves=True),
    "resume": Action(words=lambda _: ("resume",), lives=True, leaves=True),
    "resume-from": Action(
        words=lambda place: ("resume", "--from", _older(place)), lives=True, leaves=True
    ),
    "resume-gone": Action(words=lambda _: ("resume",), lives=False, leaves=True),
    "stop": Action(words=lambda _: ("stop",), lives=True, leaves=False),
    "rollback": Action(
        words=lambda place: ("rollback", _older(place)), lives=False, leaves=False, tidy=_undone
    ),
    "undo": Action(
        words=lambda _: ("rollback", "--undo"), lives=False, leaves=False, ready=_rolled_back
    ),
    "convert": Action(words=_convert, lives=True, leaves=True, tidy=_unconverted),
    "convert-gone": Action(words=_convert, lives=False, leaves=False, tidy=_unconverted),
}


class Scene:
    """One run that is acted on, again and again."""

    def __init__(self, place: Place) -> None:
        self.place = place
        place.start()
        place.wait_for_checkpoint(8)
        place.box.status()
        until(lambda: any(place.state.rglob("recipe.json")))

    def made(self, *, lives: bool) -> None:
        """Have the run live, or be gone."""
        if lives and not self.drivers():
            self.place.outcome("resume")
        if not lives and self.drivers():
            self.place.kill()

    def drivers(self) -> list[int]:
        return instances(DRIVER, self.place.mark)

    @property
    def folder(self) -> Path:
        """Milepost's folder of the run."""
        (recipe,) = self.place.state.rglob("recipe.json")
        return recipe.parent

    def records(self) -> tuple[ActionRecord, ...]:
        return Journal(self.folder).actions()

    def signs(self) -> Signs:
        """Where a point is told of."""
        return Signs(Path(tempfile.mkdtemp(dir=self.place.folder)))

    def milepost(self, *words: str) -> tuple[int, str]:
        ran = self.place.box.milepost(*words)
        return ran.returncode, f"{ran.stdout}{ran.stderr}".strip()

    def dying(self, point: Point, signs: Signs, *words: str) -> tuple[int, str]:
        """The same, its action's process meeting its fate."""
        program = (sys.executable, DYING, point.text, signs.folder)
        ran = self.place.box.run(*program, *words, timeout=300.0)
        return ran.returncode, f"{ran.stdout}{ran.stderr}".strip()


# One point


@dataclass(slots=True, kw_only=True)
class Trial:
    """One point of one action, seen through."""

    scene: Scene
    name: str
    point: Point
    chance: random.Random

    def outcome(self) -> tuple[Outcome, int]:
        """What came of it, and how often the action wrote until it was over."""
        began, place, action = time.monotonic(), self.scene.place, ACTIONS[self.name]
        self.scene.made(lives=action.lives)
        action.ready(place)
        kept, signs = Kept.of(place), self.scene.signs()
        with Watch(place) as watch:
            end, told = self._seen_through(action, signs)
        if faults := [*sorted(watch.faults), *kept.lost(place, watch.folders)]:
            end, told = End.FAULT, "; ".join((*faults, told))
        if end is not End.FAULT:
            action.tidy(place)
        outcome = Outcome(
            action=self.name,
            point=self.point,
            stage=signs.reached,
            end=end,
            told=told,
            seconds=time.monotonic() - began,
        )
        return outcome, signs.writes.stat().st_size if signs.writes.exists() else 0

    def _seen_through(self, action: Action, signs: Signs) -> tuple[End, str]:
        """Do what a person would, who comes back to it."""
        words = action.words(self.scene.place)
        before = len(self.scene.records())
        try:
            with self._engine_restarted(signs):
                code, said = self.scene.dying(self.point, signs, words[0], "--yes", *words[1:])
            until(lambda: holder_of(self.scene.folder) is None)
            new = self.scene.records()[before:]
            if new:
                end, told = self._ended(new[0])
            elif signs.reached:
                end, told = self._asked_again(words, code, said)
            else:
                raise Fault(f"refused: exit code {code}: {said}")
            self._settled(lives=action.leaves or end is End.FAILED)
        except AssertionError as fault:
            return End.FAULT, f"{fault}"
        return end, told

    def _asked_again(self, words: tuple[str, ...], code: int, said: str) -> tuple[End, str]:
        """Nothing was begun, so nothing was changed."""
        if code == 0:
            raise Fault(f"it says that it is done: {said}")
        code, said = self.scene.milepost(words[0], "--yes", *words[1:])
        if code != 0:
            raise Fault(f"asked again: exit code {code}: {said}")
        return End.AGAIN, said.rpartition("\n")[2]

    def _ended(self, record: ActionRecord) -> tuple[End, str]:
        end = End.ALONE if self.point.fate in (Fate.FOLLOWER, Fate.ENGINE) else End.ENDED
        if record.is_open:
            end = End.FINISHED
            record = self._finished(record)
        if record.state is ActionState.DONE:
            return end, record.line
        return End.FAILED, self._failed(record)

    def _finished(self, record: ActionRecord) -> ActionRecord:
        """By one command; where fate wants it, by one that is killed and another."""
        self._check_told()
        if self.point.fate is Fate.TWICE:
            when = self.chance.choice(("before", "after"))
            again = Point(write=self.chance.randrange(8), when=when, fate=Fate.ACTION)
            self.scene.dying(again, self.scene.signs(), "actions", "--finish")
            until(lambda: holder_of(self.scene.folder) is None)
        code, said = 0, ""
        if self._now(record).is_open:
            code, said = self.scene.milepost("actions", "--finish")
        if self._now(record).is_open:
            raise Fault(f"it stays open: exit code {code}: {said}")
        return self._now(record)

    def _now(self, record: ActionRecord) -> ActionRecord:
        return next(each for each in self.scene.records() if each.id == record.id)

    def _check_told(self) -> None:
        code, said = self.scene.milepost("actions")
        if code != 0 or "interrupted" not in said:
            raise Fault(f"an open action is not told: exit code {code}: {said}")
        if self.chance.random() < _ASKS_BESIDE:
            self._check_alone()

    def _check_alone(self) -> None:
        code, said = self.scene.milepost("stop", "--yes")
        if code != 8 or "is still open" not in said:
            raise Fault(f"another action begins beside it: exit code {code}: {said}")

    def _failed(self, record: ActionRecord) -> str:
        """An engine that went down took the run along; a resume brings it back."""
        if self.point.fate not in RESTARTS or not record.line:
            raise Fault(f"failed: {record.line}")
        code, said = self.scene.milepost("resume", "--yes")
        if code != 0:
            raise Fault(f"failed: {record.line}; resumed: exit code {code}: {said}")
        return record.line

    @contextmanager
    def _engine_restarted(self, signs: Signs) -> Iterator[None]:
        """Once the point is reached, if that is its fate."""
        if self.point.fate not in RESTARTS:
            yield
            return
        assert isinstance(self.scene.place, InContainer)
        over, engine = threading.Event(), self.scene.place.engine
        number = self.chance.choice((signal.SIGTERM, signal.SIGKILL))
        down_s = self.chance.choice((0.0, 3.0))

        def restart() -> None:
            while not signs.reached:
                if over.wait(0.02):
                    return
            engine.stop(number)
            signs.go_on.touch()
            time.sleep(down_s)
            engine.start()

        thread = threading.Thread(target=restart)
        thread.start()
        yield
        over.set()
        thread.join()

    # What must be true in the end

    def _settled(self, *, lives: bool) -> None:
        place = self.scene.place
        if any(record.is_open for record in self.scene.records()):
            raise Fault("an action is still open")
        end = time.monotonic() + _SETTLES_S
        while len(self.scene.drivers()) != lives and time.monotonic() < end:
            time.sleep(0.1)
        if len(self.scene.drivers()) != lives:
            raise Fault(f"{len(self.scene.drivers())} drivers live")
        if instances(CONVERTER, place.mark):
            raise Fault("a converter lives")
        named = tracked(place.saves)
        wholes = [f"iter_{each.iteration:07d}" for each in whole(place.saves, time.time())]
        if named is None or named.name not in wholes:
            raise Fault(f"the tracker names {named}, which is not whole")
        if place.trigger.exists() and not lives:
            raise Fault("a request to save is left, and nobody to save")
        models = place.saves.parent / "models"
        for path in models.iterdir() if models.exists() else ():
            if path.suffix in (".pid", ".exit", ".failed"):
                raise Fault(f"left beside the model: {path.name}")
        if isinstance(place, InContainer):
            _check_containers(place, lives=lives)


def _check_containers(place: InContainer, *, lives: bool) -> None:
    found = place.containers
    states = [*found.values()]
    if states.count("running") != lives or not set(states) <= {"running", "exited"}:
        raise Fault(f"containers: {found}")


# Which points, and where


@dataclass(frozen=True, slots=True, kw_only=True)
class Chosen:
    """Which of all points."""

    backend: str
    actions: tuple[str, ...]
    fates: tuple[Fate, ...]
    seed: int = 0
    sample: int = 0
    """How many of each action; 0: all."""
    until: float = float("inf")
    """Epoch seconds; none begins after that."""


def campaign(chosen: Chosen) -> Iterator[Outcome]:
    """What comes of each point."""
    chance = random.Random(chosen.seed)
    with places(chosen.backend) as make:
        stage = _Stage(make, chance)
        for name in chosen.actions:
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


class _Stage:
    """A new scene every now and then, and after each fault."""

    def __init__(self, make: Callable[[], Place], chance: random.Random) -> None:
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
            if self._scene is not None and self._scene.drivers():
                self._scene.place.kill()
            self._scene = Scene(self._make())
            self._left = _POINTS_A_PLACE
        self._left -= 1
        return self._scene


@contextmanager
def places(backend: str) -> Iterator[Callable[[], Place]]:
    """What makes a new place of this kind; milepost's own files are in it too."""
    with ExitStack() as stack:
        root = Path(tempfile.mkdtemp(prefix="campaign"))
        stack.callback(shutil.rmtree, root, ignore_errors=True)
        if backend == "process":
            box = stack.enter_context(opened_box())
            yield lambda: _at_home(BareProcess(box, _folder(root)))
            return
        engine = stack.enter_context(opened_engine())
        os.environ["DOCKER_HOST"] = engine.host
        kind = {"rm": RemovedContainer, "detached": DetachedContainer}[backend]

        def make() -> Place:
            engine.remove_all()
            place = kind(engine, _folder(root))
            place.options = (*place.options, "-e", f"{ENVIRONMENT}={place.mark}")
            return _at_home(place)

        yield make


def _folder(root: Path) -> Path:
    return Path(tempfile.mkdtemp(dir=root))


def _at_home(place: Place) -> Place:
    os.environ["HOME"] = str(place.folder)
    os.environ[ENVIRONMENT] = place.mark
    return place


# What is told of it


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
    parser.add_argument("--actions", default=",".join(ACTIONS))
    parser.add_argument("--fates", default="", help="by default all of the backend")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sample", type=int, default=0, help="points of each action; 0: all")
    parser.add_argument("--minutes", type=float, default=float("inf"))
    given = parser.parse_args()
    fates = tuple(map(Fate, filter(None, given.fates.split(",")))) or FATES[given.backend]
    chosen = Chosen(
        backend=given.backend,
        actions=tuple(given.actions.split(",")),
        fates=fates,
        seed=given.seed,
        sample=given.sample,
        until=time.time() + 60 * given.minutes,
    )
    outcomes = []
    for outcome in campaign(chosen):
        outcomes.append(outcome)
        print(outcome.line, file=sys.stderr, flush=True)
    print(table(outcomes))
    sys.exit(any(outcome.end is End.FAULT for outcome in outcomes))


if __name__ == "__main__":
    main()
