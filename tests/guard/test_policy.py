"""The policy: it acts on what is proven, once, within its limits; and holds back with a reason."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from fake_box import container, processes
from fake_run import alert, checkpoint, record, tree
from guarded import World
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from tui.guard.decision import Decision, Move, Policy, State, Terms, begun, refused
from tui.guard.limits import Bounds
from tui.guard.policy import decide
from tui.model.action import ActionKind, ActionState
from tui.model.checkpoint import Soundness, Verification
from tui.model.progress import NonFinite
from tui.model.reading import known
from tui.model.snapshot import Level, RunState, Snapshot

RESUME = Terms(policy=Policy.RESUME)
HOUR = 3600.0


class Guarded:
    """A world, and a policy that looks at it once a second."""

    def __init__(self, terms: Terms = RESUME, **world: Any) -> None:
        self.world, self.terms = World(**world), terms
        self.state = State()
        self.paused = ""
        self.acts: list[Decision] = []
        self.look()

    def look(self, seconds: float = 1.0) -> Decision:
        """One look, that much later."""
        self.world.now += seconds
        self.state, decision = decide(self.state, self.world.snapshot(), self.terms, self.paused)
        if decision.move is Move.ACT:
            self.acts.append(decision)
        return decision

    def until(self, *moves: Move, looks: int = 60) -> Decision:
        """What it comes to by itself: the first of these moves, else the last look."""
        decision = Decision()
        for _ in range(looks):
            decision = self.look()
            if decision.move in moves:
                break
        return decision

    def settled(self) -> Decision:
        """What it thinks after half a minute of the same."""
        return self.until(Move.ACT, Move.FINISH, Move.VERIFY)

    def carried_out(self, **outcome: Any) -> None:
        """The newest decision was done, and came to this."""
        deed = self.acts[-1].deed
        assert deed is not None
        action = f"action-{len(self.acts)}"
        self.state = begun(self.state, deed, action)
        self.world.now += 1.0
        self.world.acted(action)
        self.world.now += 20.0
        self.world.ended(**outcome)
        self.world.becomes("alive")


# What is acted on


def test_a_dead_run_is_resumed() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    decision = guarded.settled()

    assert decision.move is Move.ACT
    assert decision.ask is not None
    assert decision.ask.kind is ActionKind.RESUME
    assert not decision.needs_stop
    assert decision.evidence == (
        "container miles-run-a is exited, exit code 1; its driver process is gone",
    )


def test_a_stalled_run_is_killed_and_resumed_with_an_autopsy() -> None:
    guarded = Guarded()
    guarded.world.becomes("stalled")
    guarded.world.now += 200.0
    decision = guarded.settled()

    assert decision.move is Move.ACT
    assert decision.ask is not None
    assert decision.ask.take_autopsy
    assert decision.ask.save_first is False
    assert decision.needs_stop
    assert "GPU0 idle for a minute; its trainer uses no CPU" in decision.evidence[0]


def test_a_death_has_to_show_for_a_while() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    looks = [guarded.look().move for _ in range(6)]

    assert looks == [Move.WATCH] * 5 + [Move.ACT]


def test_a_checkpoint_is_verified_before_it_is_resumed_from() -> None:
    guarded = Guarded(is_verified=False)
    guarded.world.becomes("dead")
    asked = guarded.settled()
    waits = guarded.look()
    guarded.world.is_verified = True

    assert asked.move is Move.VERIFY
    assert asked.path.endswith("iter_0000060")
    assert waits.move is Move.HOLD
    assert "checkpoint 60 is not verified" in waits.line
    assert guarded.look().move is Move.ACT


def test_a_checkpoint_that_cannot_be_verified_is_tried_a_few_times_and_not_resumed_from() -> None:
    guarded = Guarded(is_verified=False)
    guarded.world.becomes("dead")
    moves = [guarded.look(5.0).move for _ in range(300)]

    assert moves.count(Move.VERIFY) == 4
    assert Move.ACT not in moves


# What is not


@pytest.mark.parametrize("fate", ["dead", "killed", "stalled"])
@pytest.mark.parametrize("policy", [Policy.NONE, Policy.SAVE_ON_ALERT, Policy.STOP_ON_MEMORY_FLOOR])
def test_another_policy_does_not_resume(policy: Policy, fate: str) -> None:
    guarded = Guarded(Terms(policy=policy))
    guarded.world.becomes(fate)
    guarded.world.now += 300.0
    guarded.settled()

    assert guarded.acts == []


@pytest.mark.parametrize(
    ("fate", "words"),
    [("asked", "asked to end: exit code 143"), ("finished", "")],
)
def test_what_was_meant_to_end_is_left_alone(fate: str, words: str) -> None:
    guarded = Guarded()
    guarded.world.becomes(fate)
    decision = guarded.settled()

    assert decision.move is (Move.HOLD if words else Move.WATCH)
    assert words in decision.line


def test_a_container_that_somebody_stopped_is_left_alone() -> None:
    """`docker stop` kills what does not end in time: its exit code tells nothing."""
    guarded = Guarded()
    guarded.world.becomes("dead")
    stopped = container(status="exited", exit_code=137, told_to_end=True)
    guarded.world.alter = lambda seen: replace(seen, container=known(stopped, seen.now))

    assert guarded.settled().line == "somebody stopped container miles-run-a"


@pytest.mark.parametrize("kind", [ActionKind.STOP, ActionKind.ROLLBACK, ActionKind.UNDO])
def test_a_person_at_work_is_not_disturbed(kind: ActionKind) -> None:
    guarded = Guarded()
    guarded.world.acted("by-a-person", kind)
    guarded.world.now += 5.0
    guarded.world.ended()
    guarded.world.becomes("dead")
    decision = guarded.settled()

    assert decision.move is Move.HOLD
    assert decision.code == "stopped"


def test_a_resume_by_a_person_ends_what_their_stop_forbade() -> None:
    guarded = Guarded()
    guarded.world.acted("stop", ActionKind.STOP)
    guarded.world.ended()
    guarded.world.now += 60.0
    guarded.world.acted("resume", ActionKind.RESUME)
    guarded.world.now += 60.0
    guarded.world.ended()
    guarded.look()
    guarded.world.becomes("dead")

    assert guarded.settled().move is Move.ACT


def test_a_run_that_was_dead_before_we_came_is_left_alone() -> None:
    guarded = Guarded(fate="dead")
    decision = guarded.settled()

    assert decision.move is Move.HOLD
    assert "before the guard began" in decision.line


@pytest.mark.parametrize(
    ("fate", "missed"),
    [
        ("dead", {"container", "processes"}),
        ("stalled", {"log"}),
        ("stalled", {"checkpoints"}),
        ("stalled", {"gpu", "processes"}),
    ],
)
def test_what_is_not_heard_proves_nothing(fate: str, missed: set[str]) -> None:
    guarded = Guarded()
    guarded.world.becomes(fate)
    guarded.world.missed = missed
    guarded.world.now += 300.0
    decision = guarded.settled()

    assert decision.move is Move.HOLD
    assert decision.code == "cannot tell"


def test_an_answer_that_has_grown_old_proves_nothing() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    old = guarded.world.snapshot()
    guarded.world.alter = lambda seen: replace(
        seen, container=old.container, processes=old.processes
    )
    guarded.world.now += 60.0
    decision = guarded.settled()

    assert decision.code == "cannot tell"
    assert "nothing that is heard now confirms it" in decision.line


def test_a_driver_that_is_still_there_is_not_dead_whatever_its_log_says() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    guarded.world.alter = lambda seen: replace(seen, processes=known(processes(), seen.now))
    decision = guarded.settled()

    assert decision.code == "cannot tell"
    assert "its driver, process 4100, is there" in decision.line


def test_a_stalled_run_whose_trainer_works_is_left_alone() -> None:
    guarded = Guarded()
    guarded.world.becomes("stalled")
    guarded.world.now += 300.0
    guarded.world.alter = lambda seen: replace(seen, processes=known(processes(), seen.now))
    decision = guarded.settled()

    assert decision.move is Move.HOLD
    assert "its trainer uses" in decision.line


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"has_checkpoint": False}, "checkpoint"),
        ({"memory_gib": 9.0}, "in the way"),
    ],
)
def test_it_waits_for_what_a_start_needs(changes: dict[str, Any], code: str) -> None:
    guarded = Guarded()
    guarded.world.becomes("dead", **changes)
    held = guarded.settled()
    guarded.world.has_checkpoint, guarded.world.memory_gib = True, 60.0

    assert (held.move, held.code) == (Move.HOLD, code)
    assert guarded.settled().move is Move.ACT


def test_it_does_not_resume_from_what_was_saved_after_the_damage() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    bad = NonFinite(key="train/loss", number=58, at=guarded.world.now, value="nan")
    guarded.world.alter = lambda seen: replace(seen, story=replace(seen.story, non_finite=bad))
    decision = guarded.settled()

    assert decision.code == "checkpoint"
    assert "train/loss is nan since step 58" in decision.line


def test_a_checkpoint_that_holds_nan_is_none() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    nan = Verification(soundness=Soundness.NOT_FINITE, at=guarded.world.now)
    spoilt = tree(checkpoint(60, tracked=True, verification=nan))
    guarded.world.alter = lambda seen: replace(seen, checkpoints=known(spoilt, seen.now))
    decision = guarded.settled()

    assert decision.code == "checkpoint"
    assert "no whole checkpoint that is sound" in decision.line


def test_a_person_pauses_it() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    guarded.paused = "paused by tui on tty1"
    held = guarded.until(Move.ACT, Move.VERIFY, looks=60)
    guarded.paused = ""

    assert (held.move, held.line) == (Move.HOLD, "paused by tui on tty1")
    assert guarded.look().move is Move.ACT


# Actions that are open


def test_while_an_action_is_under_way_nothing_is_done() -> None:
    guarded = Guarded()
    guarded.world.acted("resume-1")
    guarded.world.holder = "resume-1"
    guarded.world.becomes("dead")

    assert guarded.until(Move.ACT, Move.FINISH, looks=200).move is Move.WATCH


def test_an_action_whose_process_is_gone_is_finished_a_few_times_at_most() -> None:
    guarded = Guarded()
    guarded.world.acted("resume-1")
    guarded.world.becomes("dead")
    first = guarded.settled()
    moves = [guarded.look(5.0).move for _ in range(300)]

    assert first.move is Move.FINISH
    assert first.action == "resume-1"
    assert moves.count(Move.FINISH) == 3
    assert Move.ACT not in moves


# Once, and within limits


def test_one_fault_is_acted_on_once() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    decision = guarded.settled()
    assert decision.deed is not None
    guarded.state = begun(guarded.state, decision.deed, "action-1")

    assert guarded.until(Move.ACT, looks=400).move is Move.HOLD
    assert len(guarded.acts) == 1


def test_what_was_refused_is_tried_again_a_few_times() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    for _ in range(400):
        decision = guarded.look(5.0)
        if decision.move is Move.ACT:
            assert decision.deed is not None
            guarded.state = refused(guarded.state, decision.deed, guarded.world.now)

    assert len(guarded.acts) == 4


def test_after_a_resume_it_waits_for_news_of_it_and_says_when_there_is_none() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    guarded.settled()
    guarded.carried_out()
    guarded.world.becomes("dead")
    guarded.world.fate_at -= 60.0

    assert guarded.look().line == "waits for news of resume run-a"
    guarded.world.now += 300.0
    assert guarded.look().code == "no news"
    assert len(guarded.acts) == 1


def test_each_restart_waits_longer_and_the_fourth_is_one_too_many() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    begin = guarded.world.now
    waited = []
    for _ in range(3):
        died_at = guarded.world.now
        guarded.until(Move.ACT, looks=400)
        waited.append(round(guarded.world.now - died_at))
        guarded.carried_out()
        guarded.look()
        guarded.world.becomes("dead", step=guarded.world.step + 7)
    decision = guarded.until(Move.ACT, looks=400)

    assert len(guarded.acts) == 3
    assert waited == [6, 60, 120]
    assert decision.code == "limit"
    assert "3 times in 6 h 00 is the limit" in decision.line
    guarded.world.now = begin + 6 * HOUR + 60.0
    assert guarded.until(Move.ACT, looks=400).move is Move.ACT


@pytest.mark.parametrize(
    ("steps", "clues", "words"),
    [
        ((0, 0, 0), ("", "", ""), "two restarts in a row ended at step 60"),
        (
            (0, 7, 14),
            ("GPU out of memory",) * 3,
            "two restarts in a row ended with the same cause: GPU out of memory",
        ),
    ],
    ids=["poison step", "same cause"],
)
def test_it_gives_up_when_two_restarts_come_to_the_same_end(
    steps: tuple[int, ...], clues: tuple[str, ...], words: str
) -> None:
    guarded = Guarded(Terms(policy=Policy.RESUME, bounds=Bounds(most=10)))
    decision = Decision()
    for step, clue in zip(steps, clues, strict=True):
        guarded.look()
        guarded.world.becomes("dead", step=60 + step, clue=clue)
        decision = guarded.until(Move.ACT, looks=400)
        if decision.move is Move.ACT:
            guarded.carried_out()

    assert len(guarded.acts) == 2
    assert decision.line == f"gives up: {words}"


def test_a_person_who_resumes_it_gives_it_new_trust() -> None:
    guarded = Guarded(Terms(policy=Policy.RESUME, bounds=Bounds(most=10)))
    for _ in range(2):
        guarded.look()
        guarded.world.becomes("dead")
        guarded.until(Move.ACT, looks=400)
        guarded.carried_out()
    guarded.world.acted("by-a-person")
    guarded.world.now += 30.0
    guarded.world.ended()
    guarded.look()
    guarded.world.becomes("dead")

    assert guarded.until(Move.ACT, looks=400).move is Move.ACT


def test_what_began_wrong_is_not_begun_again() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    guarded.settled()
    guarded.carried_out(state=ActionState.FAILED, facts={"failure": "silent fresh start"})
    guarded.world.becomes("dead")
    decision = guarded.until(Move.ACT, looks=400)

    assert decision.code == "wrong start"
    assert len(guarded.acts) == 1


def test_what_a_person_gave_up_is_theirs() -> None:
    guarded = Guarded()
    guarded.world.becomes("dead")
    guarded.settled()
    guarded.carried_out(state=ActionState.GIVEN_UP)
    guarded.world.becomes("dead")
    guarded.world.fate_at -= 5.0

    assert guarded.until(Move.ACT, looks=400).code == "given up"


# Other policies


def test_memory_below_its_floor_stops_the_run_without_a_save() -> None:
    guarded = Guarded(Terms(policy=Policy.STOP_ON_MEMORY_FLOOR))
    guarded.world.memory_gib = 5.0
    first, second = guarded.look(), guarded.look()

    assert first.move is Move.WATCH
    assert second.move is Move.ACT
    assert second.ask is not None
    assert (second.ask.kind, second.ask.save_first) == (ActionKind.STOP, False)
    assert guarded.until(Move.ACT, looks=300).move is Move.WATCH


def test_memory_that_comes_back_at_once_stops_nothing() -> None:
    guarded = Guarded(Terms(policy=Policy.STOP_ON_MEMORY_FLOOR))
    for number in range(60):
        guarded.world.memory_gib = 5.0 if number % 2 else 60.0
        guarded.look()

    assert guarded.acts == []


def alerted(code: str, since: float = 1000.0) -> Callable[[Snapshot], Snapshot]:
    """A snapshot with this alert standing."""
    told = record(alert(code=code, level=Level.WARNING), first_at=since, since=since)
    return lambda seen: replace(seen, alert_log=(replace(told, last_at=seen.now),))


def test_an_alert_that_threatens_the_run_asks_for_a_save_once() -> None:
    guarded = Guarded(Terms(policy=Policy.SAVE_ON_ALERT))
    guarded.world.alter = alerted("gpu-hot")
    guarded.until(looks=200)

    assert [each.ask.kind for each in guarded.acts if each.ask] == [ActionKind.SAVE]


def test_an_alert_that_comes_again_and_again_asks_within_the_limits() -> None:
    guarded = Guarded(Terms(policy=Policy.SAVE_ON_ALERT))
    for since in range(1000, 1006):
        guarded.world.alter = alerted("gpu-hot", since)
        guarded.world.now += 300.0
        guarded.until(looks=15)

    assert len(guarded.acts) == 3


@pytest.mark.parametrize("code", ["probe-silent", "non-finite", "stalled"])
def test_other_alerts_ask_for_none(code: str) -> None:
    guarded = Guarded(Terms(policy=Policy.SAVE_ON_ALERT))
    guarded.world.alter = alerted(code)
    guarded.until()

    assert guarded.acts == []


@pytest.mark.parametrize("code", ["disk-full-at-next-save", "disk-read-only"])
def test_a_save_that_would_fail_is_not_asked_for(code: str) -> None:
    """A save that fails ends the run."""
    guarded = Guarded(Terms(policy=Policy.SAVE_ON_ALERT))
    full = alert(code=code, level=Level.CRITICAL)
    guarded.world.alter = alerted("gpu-hot")
    state, seen = guarded.state, guarded.world.snapshot()
    for seconds in range(60):
        later = replace(seen, now=seen.now + seconds, verdict=replace(seen.verdict, alerts=(full,)))
        state, decision = decide(state, later, guarded.terms)
        assert decision.move in (Move.WATCH, Move.HOLD)


# Whatever happens


class Anything(RuleBasedStateMachine):
    """Faults, persons, silence and actions in any order."""

    policy = Policy.RESUME

    def __init__(self) -> None:
        super().__init__()
        self.guarded = Guarded(Terms(policy=self.policy))
        self.done: list[tuple[float, str]] = []
        self.number = 0
        self.comes_to = "done"

    @property
    def world(self) -> World:
        return self.guarded.world

    @rule(looks=st.integers(1, 20), seconds=st.sampled_from([1.0, 2.0, 60.0]))
    def looks(self, looks: int, seconds: float) -> None:
        for _ in range(looks):
            decision = self.guarded.look(seconds)
            if decision.move is Move.ACT:
                self._may_act(decision)
                break

    @rule()
    def all_is_well(self) -> None:
        world = self.world
        world.missed, world.memory_gib, world.has_checkpoint = set(), 60.0, True
        self.guarded.paused = ""
        if not world.holder:
            world.becomes("alive")
            self.looks(1, 1.0)

    @precondition(lambda self: not self.world.holder)
    @rule(
        fate=st.sampled_from(["dead", "dead", "killed", "stalled"]),
        step=st.integers(60, 90),
        clue=st.sampled_from(["", "GPU out of memory"]),
        after_s=st.sampled_from([0.0, 60.0, 600.0]),
        comes_to=st.sampled_from(["done", "done", "done", "under way", "refused", "lost"]),
    )
    def trouble(self, fate: str, step: int, clue: str, after_s: float, comes_to: str) -> None:
        self.comes_to = comes_to
        self.world.becomes(fate, step=step, clue=clue)
        self.world.now += after_s + (300.0 if fate == "stalled" else 0.0)
        self.looks(45, 1.0)

    def _may_act(self, decision: Decision) -> None:
        """What has to be true of the world where anything is done to the run."""
        assert decision.deed is not None
        assert not self.guarded.paused
        assert not self.world.holder
        assert all(not each.is_open for each in self.world.actions)
        assert self.world.fate in ("dead", "killed", "stalled")
        assert self.world.has_checkpoint
        assert not {"log", "checkpoints"} & self.world.missed or self.world.fate != "stalled"
        newest = next((each for each in reversed(self.world.actions) if each.kind in _RUNS), None)
        assert newest is None or newest.kind is ActionKind.RESUME
        self._comes_to(decision)

    def _comes_to(self, decision: Decision) -> None:
        """What becomes of it: `lost` was launched, and nobody ever heard of it."""
        deed = decision.deed
        assert deed is not None
        self.number += 1
        if self.comes_to == "refused":
            self.guarded.state = refused(self.guarded.state, deed, self.world.now)
            return
        self.done.append((self.world.now, deed.fault))
        action = f"action-{self.number}"
        self.guarded.state = begun(self.guarded.state, deed, action)
        if self.comes_to == "lost":
            return
        self.world.now += 1.0
        self.world.acted(action)
        self.world.holder = action
        if self.comes_to == "done":
            self.world.now += 20.0
            self.world.ended()
            self.world.becomes("alive")

    @precondition(lambda self: self.world.holder)
    @rule(state=st.sampled_from(list(ActionState)), fate=st.sampled_from(["alive", "dead"]))
    def the_action_ends(self, state: ActionState, fate: str) -> None:
        self.world.now += 10.0
        if state is ActionState.OPEN:
            self.world.holder = ""  # its process was killed
        else:
            self.world.ended(state)
            self.world.now += 1.0
            self.world.becomes(fate)

    @precondition(lambda self: self.world.actions and self.world.actions[-1].is_open)
    @rule(state=st.sampled_from([ActionState.DONE, ActionState.GIVEN_UP]))
    def somebody_ends_what_was_left(self, state: ActionState) -> None:
        self.world.ended(state)

    @precondition(lambda self: not self.world.holder)
    @rule(fate=st.sampled_from(["alive", "asked", "finished"]))
    def fate(self, fate: str) -> None:
        self.world.becomes(fate)

    @precondition(lambda self: not any(each.is_open for each in self.world.actions))
    @rule(kind=st.sampled_from([ActionKind.STOP, ActionKind.RESUME, ActionKind.SAVE]))
    def a_person_acts(self, kind: ActionKind) -> None:
        self.world.now += 1.0
        self.number += 1
        self.world.acted(f"person-{self.number}", kind)
        self.world.now += 5.0
        self.world.ended()

    @rule(
        missed=st.sets(
            st.sampled_from(["log", "processes", "container", "checkpoints", "gpu"]), max_size=2
        )
    )
    def silence(self, missed: set[str]) -> None:
        self.world.missed = missed

    @rule(paused=st.sampled_from(["", "paused by somebody"]))
    def pause(self, paused: str) -> None:
        self.guarded.paused = paused

    @rule(seconds=st.sampled_from([-7200.0, -60.0, 600.0, 7200.0]))
    def time(self, seconds: float) -> None:
        self.world.now += seconds

    @rule(has_checkpoint=st.booleans(), memory_gib=st.sampled_from([5.0, 60.0]))
    def resources(self, has_checkpoint: bool, memory_gib: float) -> None:
        self.world.has_checkpoint, self.world.memory_gib = has_checkpoint, memory_gib

    @invariant()
    def never_more_than_its_limit(self) -> None:
        bounds = self.guarded.terms.bounds
        for at, _ in self.done:
            inside = [other for other, _ in self.done if at <= other < at + bounds.window_s]
            assert len(inside) <= bounds.most

    @invariant()
    def never_twice_about_one_fault(self) -> None:
        faults = [fault for _, fault in self.done]
        assert len(faults) == len(set(faults))


_RUNS = (ActionKind.RESUME, ActionKind.STOP)


class Nothing(Anything):
    """The same, with a policy that may do nothing."""

    policy = Policy.NONE

    @invariant()
    def never_acts(self) -> None:
        assert self.guarded.acts == []


TestAnything = Anything.TestCase
TestAnything.settings = settings(max_examples=40, stateful_step_count=30, deadline=None)
TestNothing = Nothing.TestCase
TestNothing.settings = settings(max_examples=10, stateful_step_count=20, deadline=None)


def test_a_healthy_run_is_watched_and_nothing_else() -> None:
    guarded = Guarded()
    snapshot = guarded.world.snapshot()

    assert snapshot.verdict.state is RunState.RUNNING
    assert guarded.settled() == Decision()
