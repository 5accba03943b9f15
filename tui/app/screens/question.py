"""A question over the screen that it was asked on, which goes on being true behind it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.geometry import Region
from textual.notifications import SeverityLevel
from textual.widgets import Input

from tui.app.aside import aside
from tui.app.command import Where
from tui.app.keys import shown
from tui.app.paint import Paint
from tui.app.panes.bars import Keys
from tui.app.panes.canvas import Canvas
from tui.app.panes.name import NameLine
from tui.app.panes.pane import Pane, Shape
from tui.app.panes.question import QuestionPane
from tui.app.screens.painted import PaintedScreen
from tui.model.plan import Refusal
from tui.model.snapshot import Snapshot
from tui.view import question as questions
from tui.view.confirm import At
from tui.view.question import Question
from tui.view.rows import Look

_CHOICES = ("choice-1", "choice-2", "choice-3")


class QuestionScreen(PaintedScreen):
    """Stays or goes, by the buttons; what goes is done once, beside the loop."""

    WHERE: ClassVar[tuple[Where, ...]] = (Where.QUESTION,)

    def __init__(
        self, keys: Keys, paint: Paint, question: Question, go: Callable[[], str] = str
    ) -> None:
        """`go` answers with nothing when it has begun, else why not; it may block."""
        super().__init__(keys, paint, read_only=False)
        choice_keys = [shown(next(iter(keys[name]), "")) for name in _CHOICES]
        self.pane = QuestionPane(question, choice_keys)
        self.name_line = NameLine()
        self._go = go
        self._has_gone = False

    @property
    def open_pane(self) -> Pane:
        return self.pane

    @property
    def question(self) -> Question:
        return self.pane.question

    def canvases(self) -> Iterable[Canvas]:
        return (self.pane, self.footer)

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.name_line

    def on_mount(self) -> None:
        self.ask(self.question)

    def show(self, snapshot: Snapshot, look: Look) -> None:
        super().show(snapshot, look)
        self.pane.show(snapshot, look)
        self.place_all()

    def place_all(self) -> None:
        width, height = self.app.size
        box = self.pane.box(width, max(0, height - 1))
        self.pane.place(box)
        self.pane.reshape(Shape.FRAMED, active=True, key="")
        self.name_line.place(self.pane.name_line(box))
        self.footer.place(Region(0, height - 1, width, 1))

    def ask(self, question: Question) -> None:
        """Ask this instead. The keys go where nothing is lost: to the name, or to staying."""
        self.pane.question = question
        self._go_to(At.NAME if question.typed_name else At.STAY)
        self.place_all()

    # Moving between name and buttons

    def _stops(self) -> tuple[At, ...]:
        is_ready = self.question.is_ready(self.name_line.value)
        return (
            *((At.NAME,) if self.question.typed_name else ()),
            *((At.STAY,) if self.question.stay else ()),
            *((At.GO,) if is_ready else ()),
        )

    def _go_to(self, at: At) -> None:
        self.pane.ask(self.question, at=at, is_ready=At.GO in self._stops())
        self.set_focus(self.name_line if at is At.NAME else None)

    def action_next_button(self, step: int) -> None:
        if stops := self._stops():
            self._go_to(stops[(stops.index(self.pane.at) + step) % len(stops)])

    def on_descendant_focus(self) -> None:
        """The name was clicked."""
        self._go_to(At.NAME)

    def on_descendant_blur(self) -> None:
        if self.pane.at is At.NAME:
            self._go_to(At.STAY)

    @on(Input.Changed, "#name")
    def _name_changed(self) -> None:
        self._go_to(self.pane.at)

    @on(Input.Submitted, "#name")
    def _name_submitted(self) -> None:
        """The name alone confirms nothing: it leads to the button."""
        if At.GO in self._stops():
            self._go_to(At.GO)

    # Answers

    def action_answer(self) -> None:
        self._press(self.pane.at)

    @on(QuestionPane.Pressed)
    def _pressed(self, message: QuestionPane.Pressed) -> None:
        self._press(message.at)

    def action_back(self) -> None:
        self.dismiss()

    def _press(self, at: At) -> None:
        if at not in self._stops():
            return
        if at is At.STAY:
            self.dismiss()
        elif at is At.GO and not self._has_gone:
            self._has_gone = True
            self.ask(questions.beginning(self.question))
            aside(self.app, self.go, self._gone, str)

    def go(self) -> str:
        """Do it; nothing, or why not. On a thread of its own."""
        return self._go()

    def _gone(self, why_not: str) -> None:
        """It has begun, or not; the person may have closed this meanwhile."""
        title = self.question.title
        if self not in self.app.screen_stack:
            told = f"{title}: {why_not}" if why_not else f"Begun: {title}"
            severity: SeverityLevel = "error" if why_not else "information"
            self.app.notify(told, severity=severity, timeout=15 if why_not else 4)
        elif why_not:
            self.ask(questions.refused(title, Refusal(reason=why_not)))
        elif self.app.screen is not self:
            self.ask(questions.begun(title))
        else:
            self.dismiss()
            self.app.notify(f"Begun: {title}", timeout=4)
