"""The main screen: header, six panes, footer, and what the keys do to them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import ClassVar

from textual import on
from textual.app import ComposeResult
from textual.geometry import Region
from textual.message import Message
from textual.widgets import Input

from tui.app.command import Where
from tui.app.keys import shown
from tui.app.paint import Paint
from tui.app.panes.bars import HeaderBar, Keys
from tui.app.panes.canvas import Canvas
from tui.app.panes.checkpoints import CheckpointsPane
from tui.app.panes.filter import FilterLine
from tui.app.panes.log import LogPane
from tui.app.panes.pane import Pane, Shape
from tui.app.panes.view import ViewPane
from tui.app.screens.painted import PaintedScreen
from tui.model.snapshot import Snapshot
from tui.view import alerts, checkpoints, engines, gpu, layout, steps
from tui.view.rows import Look

_NAMES = tuple(layout.Pane)


class MainScreen(PaintedScreen):
    """Everything at once where there is room, one open pane where there is not."""

    class NothingOpen(Message):
        """The person wants back, and there is nothing to leave here."""

    WHERE: ClassVar[tuple[Where, ...]] = (Where.PANES, Where.CHECKPOINT)

    def __init__(self, keys: Keys, paint: Paint, *, read_only: bool) -> None:
        super().__init__(keys, paint, read_only=read_only)
        self.header = HeaderBar()
        self.log_pane = LogPane("log")
        self.checkpoints = CheckpointsPane("checkpoints", checkpoints)
        self.panes: Mapping[layout.Pane, Pane] = {
            layout.Pane.GPU: ViewPane("gpu", gpu),
            layout.Pane.STEPS: ViewPane("steps", steps),
            layout.Pane.ENGINES: ViewPane("engines", engines),
            layout.Pane.CHECKPOINTS: self.checkpoints,
            layout.Pane.ALERTS: ViewPane("alerts", alerts),
            layout.Pane.LOG: self.log_pane,
        }
        self.filter_line = FilterLine()
        self.active = layout.Pane.STEPS
        self.zoomed = False

    @property
    def open_pane(self) -> Pane:
        return self.panes[self.active]

    def canvases(self) -> Iterable[Canvas]:
        return (self.header, *self.panes.values(), self.footer)

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self.filter_line

    def show(self, snapshot: Snapshot, look: Look) -> None:
        super().show(snapshot, look)
        self.header.show(snapshot, look)
        for pane in self.panes.values():
            pane.show(snapshot, look)

    def place_all(self) -> None:
        plan = self._plan(zoomed=self.zoomed)
        self.header.place(_cells(plan.header))
        self.footer.place(_cells(plan.footer))
        boxes, lines = dict(plan.panes), dict(plan.summaries)
        for name, pane in self.panes.items():
            if name in boxes:
                region, shape = _cells(boxes[name]), Shape.FRAMED
            elif name in lines:
                region, shape = Region(1, lines[name], self.app.size.width - 1, 1), Shape.FOLDED
            else:
                region, shape = None, Shape.HIDDEN
            pane.place(region)
            pane.reshape(shape, active=name is self.active, key=self._key(name))
        self.filter_line.place(_cells(boxes.get(layout.Pane.LOG)))

    def _plan(self, *, zoomed: bool) -> layout.Layout:
        return layout.arranged(
            *self.app.size, open_pane=self.active, zoomed=self.active if zoomed else None
        )

    def _key(self, name: layout.Pane) -> str:
        return shown(self.keys[f"pane-{_NAMES.index(name) + 1}"][0])

    def action_open_pane(self, name: str) -> None:
        """Make it the active one; where it would stay a line, give it the screen."""
        self.active = layout.Pane(name)
        if self.active not in dict(self._plan(zoomed=False).panes):
            self.zoomed = True
        self.place_all()

    def action_next_pane(self, step: int) -> None:
        at = _NAMES.index(self.active)
        self.action_open_pane(_NAMES[(at + step) % len(_NAMES)])

    @property
    def selected_iteration(self) -> int | None:
        """The checkpoint under the cursor, None before one was chosen."""
        return self.checkpoints.selected

    def show_checkpoint(self, iteration: int) -> None:
        """Bring it into view, under the cursor."""
        self.action_open_pane(layout.Pane.CHECKPOINTS)
        self.checkpoints.select(iteration)

    def action_order(self) -> None:
        self.action_open_pane(layout.Pane.CHECKPOINTS)
        self.checkpoints.reorder()

    def action_zoom(self) -> None:
        self.zoomed = not self.zoomed
        self.place_all()

    def action_back(self) -> None:
        """Leave the innermost of what is open."""
        if self.filter_line.display or self.log_pane.filter_text:
            self.filter_line.value = ""
            self.filter_line.close()
        elif self.zoomed:
            self.action_zoom()
        else:
            self.post_message(self.NothingOpen())

    def action_filter(self) -> None:
        self.action_open_pane(layout.Pane.LOG)
        self.filter_line.open()

    def action_follow(self) -> None:
        self.log_pane.follow()

    def action_last_error(self) -> None:
        self.action_open_pane(layout.Pane.LOG)
        if not self.log_pane.last_error():
            self.notify("No error or warning in the lines kept.", markup=False, timeout=3)

    @on(Pane.Touched)
    def _open_touched(self, message: Pane.Touched) -> None:
        self.action_open_pane(message.pane_name)

    @on(Input.Changed, "#filter")
    def _filter_log(self, message: Input.Changed) -> None:
        self.log_pane.filter(message.value)


def _cells(region: layout.Region | None) -> Region | None:
    """A region of the layout as Textual's."""
    return None if region is None else Region(region.x, region.y, region.width, region.height)
