"""The loop: it tells once, writes down before it acts, acts through the desk, and goes on watching."""

from __future__ import annotations

import errno
import gc
import os
import threading
import time
import tracemalloc
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import fake_plans
import pytest
from fake_run import alert, record
from guarded import World

import tui.guard.loop as loop_module
from tui.errors import ExitCode
from tui.guard.decision import Policy, Terms
from tui.guard.flood import MOST
from tui.guard.loop import Guard, run_guard
from tui.guard.notice import Notice
from tui.model.action import ActionKind
from tui.model.journal import Entry, Mark
from tui.model.plan import ActionPlan, Ask, Refusal, StopRun
from tui.model.snapshot import Alert, Level, Snapshot
from tui.model.target import ProcessTarget, RunTarget
from tui.runs.guard_card import pause
from tui.runs.journal import Journal
from tui.runs.lock import LockHeldError, locked
from tui.runs.state_dir import run_folder

RESUME = Terms(policy=Policy.RESUME)
DEADLINE_S = 200.0


def until(condition: Callable[[], object]) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.005)


class Desk:
    """Plans what it is told to plan, and begins what nobody holds up."""

    def __init__(self) -> None:
        self.asks: list[Ask] = []
        self.launched: list[str] = []
        self.finished: list[str] = []
        self.why_not = ""
        self.gate = threading.Event()
        self.gate.set()
        self.answer: Callable[[Ask], ActionPlan | Refusal] = lambda ask: fake_plans.plan(
            ask.kind, id=f"{ask.kind.value}-{len(self.asks)}"
        )

    def plan(self, ask: Ask) -> ActionPlan | Refusal:
        self.asks.append(ask)
        self.gate.wait(DEADLINE_S)
        return self.answer(ask)

    def launch(self, plan: ActionPlan) -> str:
        if not self.why_not:
            self.launched.append(plan.id)
        return self.why_not

    def finish(self, action: str) -> str:
        self.finished.append(action)
        return self.why_not


class Company:
    """Everybody that a guard deals with, and a world that it looks at once a second."""

    def __init__(self, terms: Terms = RESUME, *, dry_run: bool = False) -> None:
        self.desk, self.world = Desk(), World()
        self.told: list[Notice] = []
        self.verified: list[str | None] = []
        self.seen_at: list[Path] = []
        self.terms, self.dry_run = terms, dry_run
        self.guard = self.begun()
        self.folder = run_folder(self.world.snapshot().attachment)
        self.look()

    def begun(self) -> Guard:
        """A guard as it begins, with nothing in mind."""
        return Guard(
            self, self.terms, desk=self.desk, teller=self, presence=self, dry_run=self.dry_run
        )

    @property
    def journal(self) -> Journal:
        return Journal(self.folder)

    def codes(self) -> list[str]:
        return [notice.code for notice in self.told]

    def look(self, looks: int = 1) -> None:
        """So many looks, each after what the hands are at."""
        for _ in range(looks):
            self.world.now += 1.0
            self.guard.look(self.world.snapshot())
            self.settle()

    def settle(self) -> None:
        thread = self.guard._hands._thread
        if thread is not None:
            thread.join(DEADLINE_S)

    def entry(self, action: str, mark: Mark, **rest: Any) -> None:
        self.journal.write(
            Entry(at=self.world.now, action=action, kind=ActionKind.RESUME, mark=mark, **rest)
        )

    # What the loop calls

    def tell(self, notice: Notice) -> None:
        self.told.append(notice)

    def record(self, snapshot: Snapshot) -> None: ...

    def export(self, snapshot: Snapshot) -> None: ...

    def start(self, publish: Callable[[Snapshot], None]) -> None: ...

    def verify(self, path: str | None) -> None:
        self.verified.append(path)

    def stop(self) -> None: ...

    def watch(self, folder: Path) -> None:
        self.seen_at.append(folder)

    def say(self, words: str, at: float) -> None: ...

    def end(self, at: float) -> None: ...


def standing(*alerts: Alert) -> Callable[[Snapshot], Snapshot]:
    """A world in which these alerts stand."""
    return lambda seen: replace(
        seen,
        alert_log=tuple(record(each, first_at=1.0, since=1.0, last_at=seen.now) for each in alerts),
    )


HOT = alert(code="gpu-hot", level=Level.WARNING, subject="0", line="GPU 0 is at 90 °C")


# Telling


def test_an_alert_is_told_once_and_is_in_the_journal() -> None:
    company = Company(Terms())
    company.world.alter = standing(HOT)
    company.look(20)
    (notice,) = company.told
    (told,) = [each for each in company.journal.remarks() if each.code == "gpu-hot"]

    assert notice.line == told.line == "GPU 0 is at 90 °C"
    assert told.evidence == HOT.evidence
    assert told.news == "began"


def test_who_reads_the_journal_for_actions_passes_the_remarks_over() -> None:
    company = Company(Terms())
    company.world.alter = standing(HOT)
    company.look()
    company.entry("resume-1", Mark.STARTED, title="Resume run-a")

    assert [each.id for each in company.journal.actions()] == ["resume-1"]
    assert len(list(company.journal.entries())) == 1


def test_a_storm_of_alerts_is_told_in_part_and_then_counted() -> None:
    company = Company(Terms())
    for number in range(120):  # a minute, and 10,080 alerts
        subjects = (str(number * 84 + each) for each in range(84))
        company.world.alter = standing(*(replace(HOT, subject=each) for each in subjects))
        company.look()
    told = company.codes().count("gpu-hot")
    company.world.alter = standing()
    company.world.now += 700.0
    company.look(2)

    assert told <= MOST
    assert "guard-flood" in company.codes()
    assert company.journal.size_bytes() < 200_000


def test_memory_stays_flat_while_alerts_come_and_go() -> None:
    company = Company()

    def some(looks: int) -> int:
        for number in range(looks):
            subjects = (f"{company.world.now}-{each}" for each in range(20))
            company.world.alter = standing(*(replace(HOT, subject=each) for each in subjects))
            company.look()
            company.world.now += 60.0 * (number % 3)
            company.told.clear()
            company.seen_at.clear()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    some(60)
    grown = some(80) - some(40)
    tracemalloc.stop()

    assert abs(grown) < 100_000


# Acting


def test_a_dead_run_is_resumed_through_the_desk_and_its_outcome_is_told() -> None:
    company = Company()
    company.world.becomes("dead")
    company.look(8)
    (action,) = company.desk.launched
    company.entry(action, Mark.STARTED, title="Resume run-a", steps=("start", "prove"))
    company.look()
    company.entry(action, Mark.ENDED, line="resumed at rollout 60 from iteration 60")
    company.look(3)

    assert [ask.kind for ask in company.desk.asks] == [ActionKind.RESUME]
    assert company.codes() == ["run-failed", "guard-acts", "guard-outcome"]
    assert company.told[1].line == "resumes it; checkpoint 60 is sound"
    assert company.told[2].line == ("Resume run-a: done: resumed at rollout 60 from iteration 60")


def test_what_it_does_is_written_down_before_it_is_done() -> None:
    company = Company()
    written: list[bool] = []

    def launch(plan: ActionPlan) -> str:
        remarks = company.journal.remarks()
        written.append(any(each.facts.get("action") == plan.id for each in remarks))
        return ""

    company.desk.launch = launch  # type: ignore[method-assign]
    company.world.becomes("dead")
    company.look(8)

    assert written == [True]


def test_a_guard_that_was_killed_goes_on_where_it_was() -> None:
    """Between the word in the journal and the deed, too: it is begun, and not planned again."""
    company = Company()
    company.world.becomes("dead")
    company.look(8)
    (action,) = company.desk.launched
    company.guard = company.begun()
    company.look(70)

    assert company.desk.finished == [action]
    assert len(company.desk.asks) == 1
    assert company.codes().count("run-failed") == 1


def test_what_was_written_down_and_has_no_plan_is_planned_anew() -> None:
    """It was killed before it could keep the plan, so nobody can carry it out."""
    company = Company()
    company.world.becomes("dead")
    company.look(8)
    company.guard = company.begun()
    company.desk.why_not = "plans/resume-1.json: cannot be used as a plan"
    company.look(62)
    company.desk.why_not = ""
    company.look(60)

    assert len(company.desk.finished) == 1
    assert len(company.desk.asks) == len(company.desk.launched) == 2


def test_an_outcome_that_nobody_told_is_told_by_the_next_guard() -> None:
    company = Company()
    company.world.becomes("dead")
    company.look(8)
    (action,) = company.desk.launched
    company.entry(action, Mark.STARTED, title="Resume run-a", steps=("start", "prove"))
    company.entry(action, Mark.ENDED, line="it ended before its first step", ok=False)
    company.guard = company.begun()
    company.look(2)
    company.guard = company.begun()
    company.look(2)

    assert company.codes().count("guard-outcome") == 1
    assert company.told[-1].level is Level.CRITICAL


def test_a_checkpoint_is_verified_by_the_monitor_first() -> None:
    company = Company()
    company.world.is_verified = False
    company.world.becomes("dead")
    company.look(8)
    before = list(company.desk.asks)
    company.world.is_verified = True
    company.look(2)

    assert before == []
    assert company.verified == ["/ckpt/run-a/iter_0000060"]
    assert len(company.desk.launched) == 1


def test_a_refusal_is_told_and_asked_again_later() -> None:
    company = Company()
    company.desk.answer = lambda _: Refusal(reason="how run-a was started was never seen")
    company.world.becomes("dead")
    company.look(120)

    assert 2 <= len(company.desk.asks) <= 4
    assert company.desk.launched == []
    assert "does nothing: how run-a was started was never seen" in [n.line for n in company.told]


def stops(driver: bool) -> Callable[[Ask], ActionPlan]:
    here = ProcessTarget(pid=4100, start_ticks=1, boot_id="b", title="train.py")
    target = RunTarget(driver=here if driver else None, members=(here,))
    return lambda ask: fake_plans.plan(ask.kind, steps=(StopRun(target=target),))


@pytest.mark.parametrize(
    ("fate", "answer", "words"),
    [
        ("dead", stops(driver=True), "it was taken for dead, and its driver was found"),
        ("stalled", lambda ask: fake_plans.plan(ask.kind), "nothing that could be stopped"),
    ],
)
def test_a_plan_that_found_something_else_is_not_launched(
    fate: str, answer: Callable[[Ask], ActionPlan], words: str
) -> None:
    company = Company()
    company.desk.answer = answer
    company.world.becomes(fate)
    company.world.now += 300.0
    company.look(45)

    assert company.desk.asks
    assert company.desk.launched == []
    assert any(words in notice.line for notice in company.told)


def test_an_action_whose_process_is_gone_is_finished() -> None:
    company = Company()
    company.entry("resume-9", Mark.STARTED, title="Kill and resume run-a", steps=("stop",))
    company.look(10)
    company.entry("resume-9", Mark.ENDED, line="resumed at rollout 60 from iteration 60")
    company.look(2)

    assert company.desk.finished == ["resume-9"]
    assert company.codes() == ["guard-finishes", "guard-outcome"]


def test_an_action_that_is_at_work_is_waited_for() -> None:
    company = Company()
    company.entry("resume-9", Mark.STARTED, title="Kill and resume run-a", steps=("stop",))
    company.world.becomes("dead")
    with locked(company.folder, "resume-9"):
        company.look(60)

    assert not company.desk.finished
    assert not company.desk.asks


def test_a_guard_that_may_do_nothing_does_nothing() -> None:
    company = Company(Terms())
    company.entry("resume-9", Mark.STARTED, title="Kill and resume run-a", steps=("stop",))
    company.world.becomes("dead")
    company.look(60)

    assert not company.desk.finished
    assert not company.desk.asks


def test_a_person_pauses_it() -> None:
    company = Company()
    pause(company.folder, "me on tty1")
    company.world.becomes("dead")
    company.look(60)

    assert company.desk.asks == []
    assert "does nothing: paused by me on tty1" in [notice.line for notice in company.told]


def test_while_the_desk_is_slow_alerts_are_told() -> None:
    company = Company()
    company.world.becomes("dead")
    company.desk.gate.clear()
    company.settle = lambda: None  # type: ignore[method-assign]
    company.look(8)
    until(lambda: company.desk.asks)
    company.world.alter = standing(HOT)
    company.look(3)
    assert "gpu-hot" in company.codes()

    company.desk.gate.set()
    until(lambda: company.desk.launched)


def test_a_defect_in_a_plan_does_not_end_the_watch() -> None:
    company = Company()

    def broken(_: Ask) -> ActionPlan:
        raise ZeroDivisionError("division by zero")

    company.desk.answer = broken
    company.world.becomes("dead")
    company.look(20)

    assert "does nothing: ZeroDivisionError: division by zero" in [n.line for n in company.told]


# A state folder that cannot be written to


def test_what_cannot_be_written_down_is_not_done_and_said_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    company = Company()
    full = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    def remark(self: Journal, _: object) -> None:
        raise full

    with monkeypatch.context() as disk:
        disk.setattr(Journal, "remark", remark)
        company.world.becomes("dead")
        company.look(60)
        while_full = list(company.desk.launched)
    company.look(200)

    assert while_full == []
    assert company.codes().count("guard-journal") == 1
    assert "No space left on device" in company.told[company.codes().index("guard-journal")].line
    assert len(company.desk.launched) == 1


def test_a_dry_run_says_what_it_would_do_and_leaves_no_trace() -> None:
    company = Company(dry_run=True)
    company.world.becomes("dead")
    company.look(200)

    assert company.desk.asks
    assert company.desk.launched == []
    assert company.told[-2].line == "would do this: resumes it; checkpoint 60 is sound"
    assert not company.folder.exists()


def test_a_dry_run_tells_of_a_run_that_is_dead_already_too() -> None:
    company = Company(dry_run=True)
    company.world.becomes("dead")
    company.guard = company.begun()
    company.look(20)

    assert "would do this: resumes it; checkpoint 60 is sound" in [n.line for n in company.told]


# The loop itself


class Runner:
    """`run_guard` on a thread, fed by hand."""

    def __init__(self, company: Company) -> None:
        self.company = company
        self.publish: Callable[[Snapshot], None] = lambda _: None
        self.stop_event = threading.Event()
        self.stopped = threading.Event()
        self.code: int | None = None
        self.fault: BaseException | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        self.publish = publish

    def verify(self, path: str | None) -> None: ...

    def stop(self) -> None:
        self.stopped.set()

    def _run(self) -> None:
        company = self.company
        try:
            self.code = run_guard(
                self, company.terms, desk=company.desk, teller=company, keeper=company,
                shower=company, presence=company, stop=self.stop_event,
            )  # fmt: skip
        except LockHeldError as fault:
            self.fault = fault


@pytest.fixture
def runner() -> Runner:
    runner = Runner(Company(Terms()))
    runner.thread.start()
    until(lambda: runner.publish.__name__ == "publish")
    return runner


def test_told_to_stop_it_ends_in_order(runner: Runner) -> None:
    runner.publish(runner.company.world.snapshot())
    until(lambda: len(runner.company.seen_at) > 1)
    runner.stop_event.set()
    runner.thread.join(DEADLINE_S)

    assert runner.code == ExitCode.WELL
    assert runner.stopped.is_set()
    assert list(runner.company.journal.remarks())[-1].code == "guard-ended"


def test_a_second_guard_is_sent_away(runner: Runner) -> None:
    def held(_: Path) -> None:
        raise LockHeldError("guard, process 4242")

    runner.company.watch = held  # type: ignore[assignment, method-assign]
    runner.publish(runner.company.world.snapshot())
    runner.thread.join(DEADLINE_S)

    assert isinstance(runner.fault, LockHeldError)
    assert runner.stopped.is_set()


def test_a_run_that_is_over_for_long_is_not_guarded_any_more(runner: Runner) -> None:
    runner.company.world.becomes("finished")
    runner.company.world.now += 700.0
    runner.publish(runner.company.world.snapshot())
    runner.thread.join(DEADLINE_S)

    assert runner.code == ExitCode.WELL


def test_a_monitor_that_tells_nothing_any_more_ends_it_with_an_error(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(loop_module, "_LOOK_S", 0.001)
    runner = Runner(Company(Terms()))
    runner.thread.start()
    runner.thread.join(DEADLINE_S)

    assert runner.code == ExitCode.ERROR
    assert runner.company.codes() == ["guard-blind"]
