"""What an action would do, shown before it is done."""

from __future__ import annotations

from functools import partial

from textual import on

from tui.app.aside import aside
from tui.app.paint import Paint
from tui.app.panes.bars import Keys
from tui.app.panes.question import QuestionPane
from tui.app.screens.question import QuestionScreen
from tui.app.source import ActionDesk
from tui.model.plan import ActionPlan, Ask, Refusal
from tui.view import question as questions


class ConfirmScreen(QuestionScreen):
    """Asks the desk for a plan, and for another with each choice that is turned over."""

    def __init__(self, keys: Keys, paint: Paint, desk: ActionDesk, ask: Ask, title: str) -> None:
        super().__init__(keys, paint, questions.looking(title))
        self._desk = desk
        self._ask = ask
        self._plan: ActionPlan | None = None

    def on_mount(self) -> None:
        self._look(self._ask)

    def go(self) -> str:
        return self._desk.launch(self._plan) if self._plan is not None else ""

    def action_turn_over(self, index: int) -> None:
        choices = self.question.choices
        if index < len(choices) and not self.question.is_waiting:
            self.ask(questions.waiting(self.question, "looking again…"))
            self._look(choices[index].ask)

    @on(QuestionPane.TurnedOver)
    def _turned_over(self, message: QuestionPane.TurnedOver) -> None:
        self.action_turn_over(message.index)

    def _look(self, ask: Ask) -> None:
        aside(
            self.app,
            partial(self._desk.plan, ask),
            partial(self._looked, ask),
            lambda fault: Refusal(reason=fault),
        )

    def _looked(self, ask: Ask, answer: ActionPlan | Refusal) -> None:
        if self not in self.app.screen_stack:
            return
        if isinstance(answer, ActionPlan):
            self._ask, self._plan = ask, answer
            self.ask(questions.of_plan(answer, ask))
        elif self._plan is None:
            self.ask(questions.refused(self.question.title, answer))
        else:
            self.ask(questions.kept(questions.of_plan(self._plan, self._ask), answer))
