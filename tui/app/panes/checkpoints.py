"""The checkpoints pane: moving in it moves the selection."""

from __future__ import annotations

from dataclasses import replace

from tui.app.panes.view import ViewPane
from tui.model.reading import Known
from tui.model.snapshot import Snapshot
from tui.view.rows import Look


class CheckpointsPane(ViewPane):
    """A table of which one line can be selected."""

    selected: int | None = None
    """Iteration of the checkpoint under the cursor."""

    def show(self, snapshot: Snapshot, look: Look) -> None:
        super().show(snapshot, replace(look, selected_iteration=self.selected))

    def move(self, lines: int) -> None:
        listed = self._iterations()
        if self.selected in listed:
            self._select(listed.index(self.selected) + lines)
        else:
            self._select(0)

    def first(self) -> None:
        self._select(0)

    def last(self) -> None:
        self._select(len(self._iterations()) - 1)

    def _iterations(self) -> tuple[int, ...]:
        tree = self._snapshot.checkpoints
        return tuple(c.iteration for c in tree.value.checkpoints) if isinstance(tree, Known) else ()

    def _select(self, index: int) -> None:
        listed = self._iterations()
        if listed:
            self.selected = listed[min(max(index, 0), len(listed) - 1)]
            self.show(self._snapshot, self._look)
