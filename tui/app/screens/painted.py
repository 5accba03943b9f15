"""What all screens have in common: canvases, a footer, the newest snapshot, the paint."""

from __future__ import annotations

from collections.abc import Iterable
from typing import ClassVar

from textual.app import ComposeResult
from textual.geometry import Region
from textual.screen import Screen

from tui.app.command import Where
from tui.app.commands import available
from tui.app.paint import Paint
from tui.app.panes.bars import FooterBar, Keys
from tui.app.panes.canvas import Canvas
from tui.app.panes.pane import Pane, Shape
from tui.model.snapshot import Snapshot
from tui.view.rows import Look


class PaintedScreen(Screen[None], inherit_bindings=False):
    """A screen of canvases. Keys come from the app's registry; a screen has only the actions."""

    AUTO_FOCUS = ""
    ALLOW_SELECT = False
    WHERE: ClassVar[tuple[Where, ...]]
    """Which commands it takes besides those that work anywhere."""

    def __init__(self, keys: Keys, paint: Paint, *, read_only: bool) -> None:
        super().__init__()
        self.keys = keys
        self.commands = tuple(
            command
            for command in available(read_only=read_only)
            if command.where in (Where.ANYWHERE, *self.WHERE)
        )
        self.footer = FooterBar(self.commands, keys)
        self._paint = paint

    @property
    def open_pane(self) -> Pane:
        """The pane that keys move about in."""
        raise NotImplementedError

    def canvases(self) -> Iterable[Canvas]:
        """All that is painted, the footer last."""
        raise NotImplementedError

    def place_all(self) -> None:
        """Place every canvas for the present size."""
        raise NotImplementedError

    def show(self, snapshot: Snapshot, look: Look) -> None:  # noqa: ARG002  subclasses use it
        """Bring the picture up to this snapshot."""
        self.footer.show(look)

    def _compositor_refresh(self) -> None:
        """Behind another screen: have that one send what changed here, and only that.

        Textual 8.2 has a screen that was behind another once repaint the whole of both from then
        on, and lose what changed on the upper one meanwhile.
        """
        upper = self.app.screen
        if upper is self:
            super()._compositor_refresh()
        elif (regions := self._compositor._dirty_regions) and self.is_current:
            upper._set_dirty(*regions)
            upper._dirty_widgets.add(upper)
            upper.check_idle()
            regions.clear()
            self._dirty_widgets.clear()

    def use(self, paint: Paint) -> None:
        """Paint in other colours."""
        self._paint = paint
        for canvas in self.canvases():
            canvas.use(paint)

    def compose(self) -> ComposeResult:
        self.use(self._paint)
        yield from self.canvases()

    def on_mount(self) -> None:
        self.place_all()

    def on_resize(self) -> None:
        self.place_all()

    def action_move(self, lines: int) -> None:
        self.open_pane.move(lines)

    def action_move_pages(self, pages: int) -> None:
        self.open_pane.move_pages(pages)

    def action_first(self) -> None:
        self.open_pane.first()

    def action_last(self) -> None:
        self.open_pane.last()


class PageScreen(PaintedScreen):
    """A screen of one page above the footer."""

    page: Pane

    @property
    def open_pane(self) -> Pane:
        return self.page

    def canvases(self) -> Iterable[Canvas]:
        return (self.page, self.footer)

    def show(self, snapshot: Snapshot, look: Look) -> None:
        super().show(snapshot, look)
        self.page.show(snapshot, look)

    def place_all(self) -> None:
        width, height = self.app.size
        self.page.place(Region(0, 0, width, max(0, height - 1)))
        self.page.reshape(Shape.FRAMED, active=True, key="")
        self.footer.place(Region(0, height - 1, width, 1))
