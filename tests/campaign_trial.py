"""One point of the kill campaign: an action meets its fate, and is seen through to its end."""

from __future__ import annotations

import os
import random
import shutil
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from campaign_places import RESTARTS
from campaign_watch import CONVERTER, DRIVER, Kept, Watch, instances, tracked, whole
from dying import Fate, Point, Signs
from places import InContainer, Place, until

from tui.model.action import ActionRecord, ActionState
from tui.runs.journal import Journal
from tui.runs.lock import holder_of

DYING = str(Path(__file__).with_name("dying.py"))
_GOES_ON = (Fate.FOLLOWER, Fate.RUN, Fate.ENGINE)
_ENDS_RUN = (Fate.RUN, *RESTARTS)
_SETTLES_S = 15.0
_ASKS_BESIDE = 0.2
"""How often another action is asked for while one is open."""


class End(StrEnum):
    """How it came to a good end, or that it did not."""

    AGAIN = "not begun, asked again"
    FINISHED = "finished by one command"
    ALONE = "went on by itself"
    ENDED = "had ended"
    GIVEN_UP = "given up, then resumed or undone"
    FAILED = "failed and said why, then resumed"
    TAKEN = "done, but the run died meanwhile, then resumed"
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


def _saved_twice(place: Place) -> None:
    until(lambda: len(whole(place.saves, time.time())) > 1)


def _rolled_back(place: Place) -> None:
    place.outcome("rollback", _older(place))


def _undone(place: Place) -> None:
    """Unless it is already."""
    place.box.milepost("rollback", "--undo", "--yes")


def _unconverted(place: Place) -> None:
    shutil.rmtree(place.saves.parent / "models", ignore_errors=True)


def _convert(place: Place) -> tuple[str, ...]:
    return ("convert", _newest(place))


ACTIONS: Mapping[str, Action] = {
    "save": Action(words=lambda _: ("save",), lives=True, leaves=True),
    "resume": Action(words=lambda _: ("resume",), lives=True, leaves=True),
    "resume-from": Action(
        words=lambda place: ("resume", "--from", _older(place)),
        lives=True,
        leaves=True,
        ready=_saved_twice,
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
        if not lives:
            self.kill()

    def kill(self) -> None:
        """End what lives of it, as the kernel does; a driver that is still to come too."""

        def is_gone() -> bool:
            for pid in self.drivers():
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            return self.place.is_gone

        until(is_gone)

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

    def finish(self) -> tuple[int, str]:
        """What was interrupted."""
        return self.milepost("actions", "--finish")

    def dying(self, point: Point, signs: Signs, *words: str) -> tuple[int, str]:
        """The same, its action's process meeting its fate."""
        program = (sys.executable, DYING, point.text, signs.folder)
        ran = self.place.box.run(*program, *words, timeout=300.0)
        return ran.returncode, f"{ran.stdout}{ran.stderr}".strip()


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
        faults = [*sorted(watch.faults), *kept.lost(place, watch.folders)]
        if (starts := len(place.logs) - len(kept.logs)) > self._most_starts(end):
            faults.append(f"it was started {starts} times")
        if faults:
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

    def _most_starts(self, end: End) -> int:
        """Each has a log of its own, where it has a file."""
        then_resumed = end in (End.FAILED, End.TAKEN, End.GIVEN_UP)
        return self.name.startswith("resume") + then_resumed

    def _seen_through(self, action: Action, signs: Signs) -> tuple[End, str]:
        """Do what a person would, who comes back to it."""
        words = action.words(self.scene.place)
        before = len(self.scene.records())
        try:
            with self._struck(signs):
                code, said = self.scene.dying(self.point, signs, words[0], "--yes", *words[1:])
            until(lambda: holder_of(self.scene.folder) is None)
            new = self.scene.records()[before:]
            if new:
                end, told = self._ended(new[0])
            elif signs.reached:
                end, told = self._asked_again(words, code, said)
            else:
                raise Fault(f"refused: exit code {code}: {said}")
            if self.point.fate in _ENDS_RUN and action.leaves and not self.scene.drivers():
                end, told = End.TAKEN, self._resumed(told)
            self._settled(lives=action.leaves or end is End.FAILED or self._is_brought_back(end))
        except AssertionError as fault:
            return End.FAULT, f"{fault}"
        return end, told

    def _is_brought_back(self, end: End) -> bool:
        return end is End.GIVEN_UP and self.name == "stop"

    def _asked_again(self, words: tuple[str, ...], code: int, said: str) -> tuple[End, str]:
        """Nothing was begun, so nothing was changed."""
        if code == 0:
            raise Fault(f"it says that it is done: {said}")
        code, said = self.scene.milepost(words[0], "--yes", *words[1:])
        if code != 0:
            raise Fault(f"asked again: exit code {code}: {said}")
        return End.AGAIN, said.rpartition("\n")[2]

    def _ended(self, record: ActionRecord) -> tuple[End, str]:
        end = End.ALONE if self.point.fate in _GOES_ON else End.ENDED
        if record.is_open and self.point.fate is Fate.GIVEN_UP:
            return End.GIVEN_UP, self._given_up(record)
        if record.is_open:
            end = End.FINISHED
            record = self._finished(record)
        if record.state is ActionState.DONE:
            return end, record.line
        return End.FAILED, self._failed(record)

    def _given_up(self, record: ActionRecord) -> str:
        """It is left as it stands, from where everything else goes on."""
        code, said = self.scene.milepost("actions", "--give-up")
        if code != 0 or self._now(record).state is not ActionState.GIVEN_UP:
            raise Fault(f"not given up: exit code {code}: {said}")
        match self.name:
            case "rollback" | "undo":
                code, said = self.scene.milepost("rollback", "--undo", "--yes")
                if code not in (0, 8):
                    raise Fault(f"given up, then not undone: exit code {code}: {said}")
                return said.rpartition("\n")[2]
            case "convert" | "convert-gone":
                until(lambda: not instances(CONVERTER, self.scene.place.mark))
                _unconverted(self.scene.place)
                return "its converter ended by itself"
            case _:
                return self._resumed(record.line)

    def _finished(self, record: ActionRecord) -> ActionRecord:
        """By one command; where fate wants it, by one that is killed and another."""
        self._check_told()
        if self.point.fate is Fate.TWICE:
            when = self.chance.choice(("before", "after"))
            again = Point(write=self.chance.randrange(8), when=when, fate=Fate.ACTION)
            Scene.dying(self.scene, again, self.scene.signs(), "actions", "--finish")
            until(lambda: holder_of(self.scene.folder) is None)
        code, said = 0, ""
        if self._now(record).is_open:
            code, said = self.scene.finish()
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
        if self.point.fate not in _ENDS_RUN or not record.line:
            raise Fault(f"failed: {record.line}")
        return self._resumed(record.line)

    def _resumed(self, told: str) -> str:
        code, said = self.scene.milepost("resume", "--yes")
        if code != 0:
            raise Fault(f"{told}; resumed: exit code {code}: {said}")
        return told

    @contextmanager
    def _struck(self, signs: Signs) -> Iterator[None]:
        """Once the point is reached, what the run depends on is hit, if that is its fate."""
        over = threading.Event()

        def strike() -> None:
            while not signs.reached:
                if over.wait(0.02):
                    return
            if self.point.fate is Fate.RUN:
                self.scene.kill()
                signs.go_on.touch()
            else:
                self._restart_engine(signs)

        thread = threading.Thread(target=strike)
        if self.point.fate in _ENDS_RUN:
            thread.start()
        yield
        over.set()
        if thread.is_alive():
            thread.join()

    def _restart_engine(self, signs: Signs) -> None:
        assert isinstance(self.scene.place, InContainer)
        engine = self.scene.place.engine
        engine.stop(self.chance.choice((signal.SIGTERM, signal.SIGKILL)))
        signs.go_on.touch()
        time.sleep(self.chance.choice((0.0, 3.0)))
        engine.start()

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
