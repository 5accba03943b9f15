"""What deep verifies found, put beside the checkpoints of a scan at a bounded cost.

A result is good as long as none of its files has changed, which takes a look at each. The newest
checkpoints and the one a resume would load are held against their files at every scan, the others
in turn, and all of them once a verify has written to the ledger.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from tui.checkpoints.ledger import Recall, ledger_folder
from tui.model.checkpoint import Checkpoint, CheckpointTree, Verification
from tui.probes.save_folder import SETTLED_S

_NEWEST, _IN_TURN = 6, 6


class Results:
    """Remembers them from scan to scan."""

    def __init__(self) -> None:
        self._recall = Recall()
        self._found: dict[str, Verification | None] = {}
        self._ledger_mark = -1
        self._turn = 0

    def beside(self, tree: CheckpointTree, now: float) -> CheckpointTree:
        """The tree with them."""
        due = self._due(tree.checkpoints, now)
        self._found = {
            each.path: self._recall.of(Path(each.path))
            if each.path in due or each.path not in self._found
            else self._found[each.path]
            for each in tree.checkpoints
        }
        return replace(tree, checkpoints=tuple(map(self._with_result, tree.checkpoints)))

    def _with_result(self, each: Checkpoint) -> Checkpoint:
        found = self._found[each.path]
        return each if found is None else replace(each, verification=found)

    def _due(self, listed: tuple[Checkpoint, ...], now: float) -> set[str]:
        if self._is_written_anew(now):
            return {each.path for each in listed}
        due = {each.path for each in listed[:_NEWEST]}
        due.update(each.path for each in listed if each.tracked)
        resting = listed[_NEWEST:]
        if resting:
            turn = range(self._turn, self._turn + min(_IN_TURN, len(resting)))
            due.update(resting[place % len(resting)].path for place in turn)
            self._turn = (self._turn + _IN_TURN) % len(resting)
        return due

    def _is_written_anew(self, now: float) -> bool:
        """A page of the ledger replaces the one before, which gives the folder a new time."""
        try:
            status = os.stat(ledger_folder())  # noqa: PTH116 - as all of a scan
        except OSError:
            return False
        is_new = status.st_mtime_ns != self._ledger_mark
        self._ledger_mark = status.st_mtime_ns if now - status.st_mtime > SETTLED_S else -1
        return is_new
