"""What the confirm is about: a plan, a refusal, or the wait for either.

Without a button that acts there is nothing to do with a question but to close it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from tui.model.action import ActionRecord
from tui.model.plan import (
    ActionPlan,
    Ask,
    AskToSave,
    ProveStart,
    Refusal,
    Row,
    StopRun,
    TakeAutopsy,
)
from tui.model.snapshot import Level
from tui.view.action import step_words


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """One thing about a plan that a person can turn over."""

    label: str
    is_on: bool
    ask: Ask
    """What to ask for to have it the other way."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """What is shown."""

    title: str
    rows: tuple[Row, ...] = ()
    go: str = ""
    """What the button that acts says; empty: there is none."""
    stay: str = "Cancel"
    """What the button that does nothing says; empty: there is none either."""
    typed_name: str = ""
    """Has to be typed before that."""
    choices: tuple[Choice, ...] = ()
    note: str = ""
    """A word above the buttons: what is waited for, or why a choice cannot be had."""
    is_waiting: bool = False
    """Something is being looked at or begun: nothing can be confirmed meanwhile."""
    made_at: float = 0.0
    """When what it says was looked at; 0: it does not age."""

    def is_ready(self, typed: str) -> bool:
        """Whether it can be confirmed, with this typed as the name."""
        return bool(self.go) and not self.is_waiting and typed.strip() == self.typed_name


def looking(title: str) -> Question:
    """Before there is a plan."""
    return Question(title=title, note="looking…", is_waiting=True)


def of_plan(plan: ActionPlan, ask: Ask) -> Question:
    """The plan that answered what was asked for."""
    return Question(
        title=plan.title,
        rows=plan.rows,
        go=plan.go,
        typed_name=plan.typed_name,
        choices=tuple(_choices(plan, ask)),
        made_at=plan.made_at,
    )


def refused(title: str, refusal: Refusal) -> Question:
    """There is nothing to do but to read why."""
    why = Row(label="Not done", text=refusal.reason, level=Level.WARNING)
    remedy = (Row(label="Instead", text=refusal.remedy),) if refusal.remedy else ()
    return Question(title=title, rows=(why, *remedy), stay="Close")


def waiting(question: Question, note: str) -> Question:
    """The same while it is looked at again."""
    return replace(question, note=note, is_waiting=True)


def beginning(question: Question) -> Question:
    """Confirmed. There is nothing to press any more, however often it is pressed."""
    unpressed = replace(question, typed_name="", choices=(), go="", stay="")
    return waiting(unpressed, "beginning…")


def kept(question: Question, refusal: Refusal) -> Question:
    """The same after another choice was refused."""
    return replace(question, note=" → ".join(filter(None, (refusal.reason, refusal.remedy))))


def begun(title: str) -> Question:
    """It goes on by itself from here."""
    return Question(title=title, rows=(Row(label="", text="It has begun."),), stay="Close")


def giving_up(title: str, record: ActionRecord) -> Question:
    """An interrupted action is to be closed."""
    left = record.steps[len(record.done) :]
    return Question(
        title=f"Give up: {title}",
        rows=(
            *(Row(label="Done", text=line) for line in record.done),
            *(Row(label="Not done", text=step_words(name)) for name in left),
            Row(label="Then", text="all stays as it is now, and another action can begin"),
        ),
        go="give it up",
    )


def leaving_off(title: str, record: ActionRecord) -> Question:
    """An action under way is to end early."""
    return Question(
        title=f"Leave off: {title}",
        rows=(
            *(Row(label="Done", text=line) for line in record.done),
            Row(
                label="Then", text="it ends at the next place where it can; what is done stays done"
            ),
        ),
        go="leave off",
        stay="Let it go on",
    )


def _choices(plan: ActionPlan, ask: Ask) -> Iterator[Choice]:
    kinds = {type(step) for step in plan.steps}
    if StopRun in kinds:
        saves, dumps = AskToSave in kinds, TakeAutopsy in kinds
        other = replace(ask, save_first=not saves)
        yield Choice(label="save first, then stop", is_on=saves, ask=other)
        other = replace(ask, take_autopsy=not dumps)
        yield Choice(label="take an autopsy before the stop", is_on=dumps, ask=other)
    for step in plan.steps:
        if isinstance(step, ProveStart):
            other = replace(ask, stop_if_wrong=not step.stop_if_wrong)
            label = "stop it if it starts wrong"
            yield Choice(label=label, is_on=step.stop_if_wrong, ask=other)
