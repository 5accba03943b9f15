"""The list of runs: moving in it moves the selection."""

from __future__ import annotations

from dataclasses import replace

from tui.app.panes.view import ViewPane
from tui.model.launch import ListedRun
from tui.model.snapshot import Snapshot
from tui.view import choose
from tui.view.rows import Look


class ChoicesPane(ViewPane):
    """Several runs of which one is selected. The selection stays with its run when others go."""

    def __init__(self, name: str) -> None:
        super().__init__(name, choose)
        self._handle = ""

    @property
    def selected(self) -> ListedRun | None:
        """The run under the cursor; the first one until somebody moves."""
        listed = self._snapshot.choices
        chosen = next((run for run in listed if run.handle == self._handle), None)
        return chosen or next(iter(listed), None)

    def show(self, snapshot: Snapshot, look: Look) -> None:
        self._snapshot = snapshot
        selected = self.selected
        handle = selected.handle if selected is not None else None
        super().show(snapshot, replace(look, selected_run=handle))

    def move(self, lines: int) -> None:
        handles = [run.handle for run in self._snapshot.choices]
        if self.selected is not None:
            at = handles.index(self.selected.handle) + lines
            self._handle = handles[min(max(at, 0), len(handles) - 1)]
            self.show(self._snapshot, self._look)
