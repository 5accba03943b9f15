"""A save asked for and waited for, the run played by the test: it acts whenever the action waits."""

from __future__ import annotations

import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from save_folders import checkpoint, save

from tui.actions import saving, trigger
from tui.actions.containers import Ran
from tui.actions.context import Context, Done, cancel_file
from tui.actions.errors import StepFailed
from tui.actions.signals import target_of
from tui.model.action import ActionKind
from tui.model.plan import ActionPlan, AskToSave
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.target import RunTarget
from tui.runs.journal import Journal

PLAN = ActionPlan(
    id="20261129-181503-save-4f2a",
    kind=ActionKind.SAVE,
    title="Save run-a now",
    run_id="run-a-1f0c93ab",
    run_name="run-a",
    made_at=0.0,
    rows=(),
    steps=(),
    go="save now",
)
Happening = Callable[[], object]


class Stopped(Exception):  # noqa: N818
    """The process that acts is gone."""


@dataclass
class Scene:
    """A run with checkpoints 20 and 40, and the action on it."""

    folder: Path
    options: dict[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.root.mkdir()
        (self.state / "plans").mkdir(parents=True)
        save(self.root, 20)
        save(self.root, 40)
        self.log.write_text("before\n")

    @property
    def root(self) -> Path:
        return self.folder / "ckpt"

    @property
    def state(self) -> Path:
        return self.folder / "state"

    @property
    def trigger(self) -> Path:
        return self.folder / "save-now"

    @property
    def log(self) -> Path:
        return self.folder / "plain.log"

    def perform(self, *happenings: Happening) -> Done:
        """Begin, or go on where an earlier process stopped; a thing happens at each wait."""
        left = iter((*happenings, self.is_stuck))

        def pause(_: float) -> None:
            next(left)()

        records = Journal(self.state).actions()
        context = Context(
            plan=PLAN,
            folder=self.state,
            journal=Journal(self.state),
            step=0,
            again=bool(records),
            facts=dict(records[-1].facts) if records else {},
            pause=pause,
        )
        step = AskToSave(
            trigger=str(self.trigger),
            host_trigger=str(self.trigger),
            save_folder=str(self.root),
        )
        return saving.perform(replace(step, **self.options), context)  # type: ignore[arg-type]

    def failed(self, *happenings: Happening) -> StepFailed:
        with pytest.raises(StepFailed) as failure:
            self.perform(*happenings)
        return failure.value

    def interrupted(self, *happenings: Happening) -> None:
        """The process that acts is killed at the wait after these."""
        with pytest.raises(Stopped):
            self.perform(*happenings, stop)

    def lines(self) -> list[str]:
        return [entry.line for entry in Journal(self.state).entries()]

    def is_stuck(self) -> None:
        raise AssertionError(f"it waits for ever: {self.lines()}")

    # What the run does

    def begin(self) -> None:
        assert self.trigger.is_file()
        checkpoint(self.root, 45, stop_after=2, age_s=0.0)

    def write(self) -> None:
        save(self.root, 45, age_s=0.0)

    def consume(self) -> None:
        self.trigger.unlink()

    def say(self) -> None:
        stamp = time.strftime("%Y-%m-%d %H:%M:%S")
        with self.log.open("a") as log:
            log.write(
                f"(FSDPTrainRayActor pid=200) [{stamp}.000 actor_cell0_rank0] checkpoint.py:248 - "
                "[FSDP] Saved checkpoint to /ckpt/run-a/iter_0000045\n"
            )


def nothing() -> None:
    """A wait in which nothing happens."""


def stop() -> None:
    raise Stopped


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_asked_picked_up_and_durable(scene: Scene) -> None:
    done = scene.perform(nothing, scene.begin, scene.write, scene.consume)
    assert done.line.startswith("checkpoint 45 is whole: asked ")
    assert done.facts == {"saved_iteration": "45"}
    told = scene.lines()
    assert told == [
        "looking for a save that is under way",
        f"asked for a save: {scene.trigger} created",
        "picked up: checkpoint 45 is being saved",
        "checkpoint 45 is whole, and the request is gone",
    ]
    facts = Journal(scene.state).actions()[0].facts
    times = [float(facts[key]) for key in ("asked_at", "picked_up_at", "durable_at")]
    assert times == sorted(times)
    assert time.time() - 60.0 < times[0]


def test_whole_is_not_durable_before_the_request_is_gone(scene: Scene) -> None:
    scene.interrupted(scene.begin, scene.write, nothing, nothing)
    assert not any("the request is gone" in line for line in scene.lines())


def test_the_log_has_the_last_word(scene: Scene) -> None:
    scene.options = {"log": str(scene.log)}
    scene.interrupted(scene.write, scene.consume, nothing)
    assert scene.perform(nothing, scene.say).facts == {"saved_iteration": "45"}


def test_a_line_that_does_not_come_is_not_waited_for_long(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(saving, "_LINE_S", 0.0)
    scene.options = {"log": str(scene.log)}
    assert scene.perform(scene.write, scene.consume, nothing).facts == {"saved_iteration": "45"}


def test_a_lower_number_than_the_newest_counts(scene: Scene) -> None:
    """A run that went back is not yet where an older save got stuck."""
    checkpoint(scene.root, 80, stop_after=2)
    assert scene.perform(scene.write, scene.consume).facts == {"saved_iteration": "45"}


def test_the_same_number_saved_anew_counts(scene: Scene) -> None:
    def again() -> None:
        save(scene.root, 40, age_s=0.0)

    assert scene.perform(again, scene.consume).facts == {"saved_iteration": "40"}


def test_a_request_that_is_there_is_waited_for_and_not_touched(scene: Scene) -> None:
    scene.trigger.write_text("by hand")
    scene.interrupted(nothing)
    assert scene.trigger.read_text() == "by hand"
    assert "asked for already" in scene.lines()[-1]
    assert scene.perform(scene.write, scene.consume).facts == {"saved_iteration": "45"}


def test_a_save_under_way_is_waited_for_and_nothing_is_asked(scene: Scene) -> None:
    checkpoint(scene.root, 45, stop_after=2, age_s=0.0)
    done = scene.perform(nothing, scene.write)
    assert done.facts == {"saved_iteration": "45"}
    assert not scene.trigger.exists()
    assert not any("asked" in line for line in scene.lines())


def test_a_save_under_way_that_comes_to_nothing_is_followed_by_a_request(scene: Scene) -> None:
    checkpoint(scene.root, 45, stop_after=2, age_s=0.0)

    def gets_stuck() -> None:
        checkpoint(scene.root, 45, stop_after=2)

    def begin() -> None:
        assert scene.trigger.is_file()
        save(scene.root, 46, age_s=0.0)

    assert scene.perform(gets_stuck, begin, scene.consume).facts == {"saved_iteration": "46"}


def test_where_the_checkpoints_cannot_be_seen_the_request_and_the_log_tell(scene: Scene) -> None:
    scene.options = {"save_folder": "", "log": str(scene.log)}
    done = scene.perform(nothing, scene.say, scene.consume)
    assert done.line.startswith("checkpoint 45 was saved where it cannot be seen from here")


def test_a_megatron_save_is_seen_in_the_log_first(scene: Scene) -> None:
    scene.options = {"log": str(scene.log)}

    def begins() -> None:
        with scene.log.open("a") as log:
            log.write("[2026-11-29 12:00:00.123456] saving checkpoint at iteration      45 to ")
            log.write("/ckpt/run-a in torch_dist format\n")

    scene.interrupted(begins)
    assert scene.lines()[-1] == "picked up: checkpoint 45 is being saved"


class TestByACommandInTheContainer:
    """The container is this machine, and its engine is not always there."""

    @pytest.fixture(autouse=True)
    def outage(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> list[str]:
        scene.options = {"host_trigger": "", "container_id": "f" * 64}
        outage: list[str] = []

        def exec_in(_: str, argv: Sequence[str]) -> Reading[Ran]:
            if outage:
                return Unknown(why=Absence.MISSING, reason=outage[0])
            done = subprocess.run(argv, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            return known(Ran(exit_code=done.returncode, output=done.stdout), 0.0)

        monkeypatch.setattr(trigger, "exec_in", exec_in)
        return outage

    def test_it_is_asked_and_waited_for(self, scene: Scene) -> None:
        done = scene.perform(nothing, scene.begin, scene.write, scene.consume)
        assert done.facts == {"saved_iteration": "45"}

    def test_an_engine_that_restarts_is_waited_for(self, scene: Scene, outage: list[str]) -> None:
        outage.append("Docker is not running")
        done = scene.perform(
            nothing,
            outage.clear,
            scene.begin,
            lambda: outage.append("Docker is not running"),
            scene.write,
            scene.consume,
            nothing,
            outage.clear,
        )
        assert done.facts == {"saved_iteration": "45"}

    def test_an_engine_that_does_not_come_back(
        self, scene: Scene, outage: list[str], monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(saving, "_UNREACHABLE_S", 0.0)
        outage.append("Docker is not running")
        failure = scene.failed(nothing, nothing)
        assert failure.line == "the save could not be asked for: Docker is not running"


class TestEndsWithoutASave:
    """Each leaves the request where it is: who takes it away during a save ends the run."""

    def test_somebody_else_removed_it(self, scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(saving, "_LATE_S", 0.0)
        failure = scene.failed(scene.consume, nothing)
        assert failure.line == "the request is gone, and no whole checkpoint came of it"

    def test_left_off(self, scene: Scene) -> None:
        failure = scene.failed(cancel_file(scene.state, PLAN.id).touch)
        assert "the request stays" in failure.line
        assert scene.trigger.exists()

    def test_left_off_before_it_was_asked(self, scene: Scene) -> None:
        checkpoint(scene.root, 45, stop_after=2, age_s=0.0)
        failure = scene.failed(cancel_file(scene.state, PLAN.id).touch)
        assert "nothing was asked" in failure.line
        assert not scene.trigger.exists()

    def test_not_in_time(self, scene: Scene) -> None:
        scene.options = {"deadline_s": 0.0}
        failure = scene.failed(nothing)
        assert "no save within" in failure.line
        assert scene.trigger.exists()

    def test_the_folder_went_away(self, scene: Scene) -> None:
        scene.options = {"host_trigger": str(scene.folder / "gone" / "save-now")}
        failure = scene.failed()
        assert "could not be asked for: No such file" in failure.line


class TestTheRunEnds:
    """Its driver is a process of ours."""

    @pytest.fixture(autouse=True)
    def driver(self, scene: Scene) -> Iterator[subprocess.Popen[bytes]]:
        with subprocess.Popen("cat", stdin=subprocess.PIPE) as process:
            scene.options = {"target": RunTarget(driver=target_of(process.pid))}
            yield process
            process.kill()

    def end(self, driver: subprocess.Popen[bytes]) -> None:
        driver.kill()
        driver.wait()

    def test_before_it_was_asked(self, scene: Scene, driver: subprocess.Popen[bytes]) -> None:
        self.end(driver)
        failure = scene.failed()
        assert failure.line == "the run ended before it had saved"
        assert not scene.trigger.exists()

    def test_where_it_is_to_be_started_again(
        self, scene: Scene, driver: subprocess.Popen[bytes]
    ) -> None:
        self.end(driver)
        scene.options["may_end"] = True
        done = scene.perform(nothing)
        assert done.line == "not saved: the run ended before it had saved"

    def test_before_it_saved(self, scene: Scene, driver: subprocess.Popen[bytes]) -> None:
        failure = scene.failed(nothing, lambda: self.end(driver))
        assert failure.line == "the run ended before it had saved"
        assert "saves after its first rollout" in failure.remedy
        assert scene.trigger.exists()

    def test_while_it_saved(self, scene: Scene, driver: subprocess.Popen[bytes]) -> None:
        failure = scene.failed(scene.begin, lambda: self.end(driver))
        assert failure.line == "the run ended before it had saved"

    def test_when_all_was_on_disk(self, scene: Scene, driver: subprocess.Popen[bytes]) -> None:
        done = scene.perform(scene.write, lambda: self.end(driver))
        assert done.facts == {"saved_iteration": "45"}
        assert done.line.endswith("the run has ended since")


class TestEnteredAgain:
    """The process that acts was killed, at each of its waits and between."""

    def test_after_it_asked(self, scene: Scene) -> None:
        scene.interrupted()
        scene.interrupted(scene.begin)
        assert scene.perform(scene.write, scene.consume).facts == {"saved_iteration": "45"}
        assert sum("created" in line for line in scene.lines()) == 1

    def test_after_all_was_done_meanwhile(self, scene: Scene) -> None:
        scene.interrupted()
        scene.write()
        scene.consume()
        assert scene.perform().facts == {"saved_iteration": "45"}
        assert not scene.trigger.exists()

    def test_between_the_request_and_its_note(self, scene: Scene) -> None:
        scene.interrupted()
        without_last_line(scene.state)
        assert scene.perform(scene.write, scene.consume).facts == {"saved_iteration": "45"}

    def test_between_the_request_and_its_note_and_all_was_done_meanwhile(
        self, scene: Scene
    ) -> None:
        scene.interrupted()
        without_last_line(scene.state)
        scene.write()
        scene.consume()
        assert scene.perform().facts == {"saved_iteration": "45"}
        assert not scene.trigger.exists()

    def test_the_request_is_never_made_again(
        self, scene: Scene, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(saving, "_LATE_S", 0.0)
        scene.interrupted()
        scene.consume()
        assert "no whole checkpoint came of it" in scene.failed(nothing).line
        assert not scene.trigger.exists()


def without_last_line(state: Path) -> None:
    """The journal as if the process had been killed before its last note."""
    file = state / "journal.jsonl"
    *kept, last = file.read_text().splitlines(keepends=True)
    assert "asked" in last
    file.write_text("".join(kept))
