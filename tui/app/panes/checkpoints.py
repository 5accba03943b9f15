"""The checkpoints pane: moving in it moves the selection, which stays with its checkpoint."""

from __future__ import annotations

from dataclasses import replace

from tui.app.panes.view import ViewPane
from tui.model.reading import Known
from tui.model.snapshot import Snapshot
from tui.view.order import next_order, ordered
from tui.view.rows import Look, Order


class CheckpointsPane(ViewPane):
    """A table of which one line can be selected."""

    selected: int | None = None
    """Iteration of the checkpoint under the cursor."""
    order = Order.ITERATION

    def show(self, snapshot: Snapshot, look: Look) -> None:
        own = replace(look, selected_iteration=self.selected, order=self.order)
        super().show(snapshot, own)

    def select(self, iteration: int) -> None:
        """Put the cursor on it."""
        self.selected = iteration
        self.show(self._snapshot, self._look)

    def reorder(self) -> None:
        """Sort by the next column."""
        self.order = next_order(self.order)
        self.show(self._snapshot, self._look)

    def move(self, lines: int) -> None:
        listed = self._iterations()
        if self.selected in listed:
            self._select_at(listed.index(self.selected) + lines)
        else:
            self._select_at(0)

    def first(self) -> None:
        self._select_at(0)

    def last(self) -> None:
        self._select_at(len(self._iterations()) - 1)

    def _iterations(self) -> tuple[int, ...]:
        tree = self._snapshot.checkpoints
        if not isinstance(tree, Known):
            return ()
        return tuple(each.iteration for each in ordered(tree.value.checkpoints, self.order))

    def _select_at(self, index: int) -> None:
        listed = self._iterations()
        if listed:
            self.select(listed[min(max(index, 0), len(listed) - 1)])
