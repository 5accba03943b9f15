"""The log pane: follows the newest line, or stays at the one the person scrolled to; filters."""

from __future__ import annotations

from collections.abc import Sequence

from tui.app.panes.pane import Pane
from tui.model.progress import LogLine
from tui.view import log
from tui.view.rows import Row


class LogPane(Pane):
    """Lines of the log, the newest at the foot."""

    filter_text = ""
    """The filter as typed."""
    _anchor: LogLine | None = None
    """The line at the foot; None: the newest, whichever that is."""

    @property
    def following(self) -> bool:
        """Whether new lines push the others up."""
        return self._anchor is None

    def filter(self, query: str) -> None:
        """Show only the lines that match; all of them when empty."""
        self.filter_text = query
        self.redraw()

    def follow(self) -> None:
        """Go to the newest line, and stay with it."""
        self._anchor = None
        self.redraw()

    def last_error(self) -> bool:
        """Bring the last error, or else warning, into view with what came after; False: none."""
        below = log.scroll_to_error(self._snapshot.lines, self.filter_text)
        if below is None:
            return False
        self._leave_below(below - self.room()[1] // 3)
        return True

    def move(self, lines: int) -> None:
        self._leave_below(self._below() - lines)

    def last(self) -> None:
        self.follow()

    def title(self) -> str:
        return log.title(self._snapshot, self._look, scroll=self._below(), query=self.filter_text)

    def content(self, width: int, height: int) -> tuple[Row, ...]:
        scroll = self._below()
        lines = self._snapshot.lines
        return log.rows(lines, width, height, self._look, scroll=scroll, query=self.filter_text)

    def summary(self, width: int) -> Row:
        return log.summary(self._snapshot, width, self._look)

    def _matching(self) -> Sequence[LogLine]:
        return log.matching(self._snapshot.lines, self.filter_text)

    def _below(self) -> int:
        """Lines below the anchor. One that was replaced or has gone is found by its time."""
        anchor = self._anchor
        if anchor is None:
            return 0
        newest_first = tuple(reversed(self._matching()))
        itself = (below for below, line in enumerate(newest_first) if line is anchor)
        by_time = (below for below, line in enumerate(newest_first) if line.at <= anchor.at)
        return next(itself, next(by_time, self._furthest(len(newest_first))))

    def _furthest(self, count: int) -> int:
        """How far up one can go: until the oldest line is the first row."""
        return max(0, count - self.room()[1])

    def _leave_below(self, below: int) -> None:
        """Leave that many lines below the foot; none: follow."""
        lines = self._matching()
        below = min(below, self._furthest(len(lines)))
        self._anchor = lines[len(lines) - 1 - below] if below > 0 else None
        self.redraw()
