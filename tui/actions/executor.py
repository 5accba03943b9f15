"""Carries a plan out, step by step, with the run's journal written before and after each.

Each step can be entered twice with the same end, so that an action whose process died is finished
by carrying its plan out again.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tui.actions.context import Context, Done, cancel_file, plan_file
from tui.actions.errors import StepFailed
from tui.errors import UsageError
from tui.miles.secrets import masked_text
from tui.model.action import ActionRecord
from tui.model.journal import Entry, Mark
from tui.model.plan import ActionPlan
from tui.model.plan_document import plan_of
from tui.runs.journal import Journal
from tui.runs.lock import LockHeldError, locked

Perform = Callable[[Any, Context], Done]
"""Carries one step out. Raises StepFailed."""


@dataclass(slots=True, kw_only=True)
class Executor:
    """The one that acts on one run."""

    folder: Path
    """The run's state folder."""
    performers: Mapping[type, Perform]
    clock: Callable[[], float] = time.time
    begun: Callable[[], None] = lambda: None
    """Called once nothing speaks against it any more."""
    journal: Journal = field(init=False)

    def __post_init__(self) -> None:
        self.journal = Journal(self.folder)

    def carry_out(self, action: str) -> ActionRecord:
        """Do what is left of that plan.

        Raises:
            LockHeldError: another action is under way.
            UsageError: there is no such plan, it has ended, or is too old to begin.
            OSError: plan or journal cannot be used.
        """
        with self._locked(action):
            plan = read_plan(self.folder, action)
            record = self._record(action)
            if record is None and self.clock() - plan.made_at > plan.valid_s:
                raise UsageError(
                    f"the plan of {plan.title} is too old: what it rests on may differ"
                )
            if record is not None and not record.is_open:
                raise UsageError(f"{plan.title} has ended already: {record.line}")
            self._open_others_closed(action)
            self._write(plan, Mark.STARTED, title=plan.title, steps=_names(plan))
            self.begun()
            if (failure := self._failure(action)) is not None:
                self._end(plan, failure, ok=False)
            else:
                self._steps(plan, record)
            ended = self._record(action)
            assert ended is not None
            return ended

    def _title_of(self, holder: str) -> str:
        """What it is called; it may not have written down yet that it has begun."""
        with suppress(UsageError):
            return read_plan(self.folder, holder).title
        return holder

    @contextmanager
    def _locked(self, action: str) -> Iterator[None]:
        try:
            with locked(self.folder, action):
                yield
        except LockHeldError as held:
            raise LockHeldError(self._title_of(held.holder)) from None

    def _steps(self, plan: ActionPlan, record: ActionRecord | None) -> None:
        done = record.done if record is not None else ()
        facts = dict(record.facts) if record is not None else {}
        under_way = record.step if record is not None else None
        line = done[-1] if done else ""
        for number in range(len(done), len(plan.steps)):
            context = Context(
                plan=plan,
                folder=self.folder,
                journal=self.journal,
                step=number,
                again=number == under_way,
                facts=dict(facts),
                clock=self.clock,
            )
            try:
                outcome = self._step(context)
            except StepFailed as failed:
                told = masked_text(f"{failed.line}\n{failed.remedy}".strip())
                self._write(plan, Mark.STEP_FAILED, step=number, line=told, facts=failed.facts)
                self._end(plan, told, ok=False)
                return
            line = masked_text(outcome.line)
            self._write(plan, Mark.STEP_DONE, step=number, line=line, facts=outcome.facts)
            facts = dict(self._facts(plan.id))
        self._end(plan, line, ok=True)

    def _step(self, context: Context) -> Done:
        step = context.plan.steps[context.step]
        self._write(context.plan, Mark.STEP_BEGUN, step=context.step)
        try:
            return self.performers[type(step)](step, context)
        except StepFailed:
            raise
        except Exception as fault:
            # A defect of ours must not leave a run half stopped without a word.
            raise StepFailed(f"{step.name}: {type(fault).__name__}: {fault}") from fault

    def _end(self, plan: ActionPlan, line: str, *, ok: bool) -> None:
        self._write(plan, Mark.ENDED, line=line, ok=ok)
        cancel_file(self.folder, plan.id).unlink(missing_ok=True)

    def _open_others_closed(self, action: str) -> None:
        """An action that was left open is not carried on beside a newer one."""
        for record in self.journal.actions():
            if record.is_open and record.id != action:
                raise UsageError(
                    f"{record.title} was interrupted and is still open",
                    "finish it or give it up first: `milepost actions --finish`, `--give-up`",
                )

    def _record(self, action: str) -> ActionRecord | None:
        return next((each for each in self.journal.actions() if each.id == action), None)

    def _failure(self, action: str) -> str | None:
        """A step failed; then no step is entered any more."""
        for entry in self.journal.entries():
            if entry.action == action and entry.mark is Mark.STEP_FAILED:
                return entry.line
        return None

    def _facts(self, action: str) -> Mapping[str, str]:
        record = self._record(action)
        return record.facts if record is not None else {}

    def _write(self, plan: ActionPlan, mark: Mark, **rest: Any) -> None:
        self.journal.write(
            Entry(at=self.clock(), action=plan.id, kind=plan.kind, mark=mark, **rest)
        )


def read_plan(folder: Path, action: str) -> ActionPlan:
    """The plan of an action. Raises UsageError where there is none."""
    file = plan_file(folder, action)
    try:
        return plan_of(file.read_text(encoding="utf-8"))
    except (OSError, ValueError) as fault:
        raise UsageError(f"{file}: cannot be used as a plan: {fault}") from fault


def _names(plan: ActionPlan) -> tuple[str, ...]:
    return tuple(step.name for step in plan.steps)
