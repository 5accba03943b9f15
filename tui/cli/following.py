"""Follow an action to its end, telling each line of its journal once. Leaving does not end it."""

from __future__ import annotations

import sys
import time
from pathlib import Path

from tui.model.action import ActionRecord
from tui.model.journal import Entry, Mark
from tui.model.text import harmless
from tui.runs.journal import Journal
from tui.runs.lock import holder_of

_LOOK_S = 0.2


def followed(folder: Path, action: str, *, quiet: bool) -> ActionRecord | None:
    """The action once it has ended; None when it was interrupted, or we left it to itself."""
    journal = Journal(folder)
    told, last = 0, ""
    try:
        while True:
            lives = holder_of(folder) == action
            record = next((each for each in journal.actions() if each.id == action), None)
            # Read after the record: what ended it is among them.
            entries = [entry for entry in journal.entries() if entry.action == action]
            for entry in entries[told:] if not quiet else ():
                line = _line(entry, entries)
                if line and not (entry.mark is Mark.STEP_DONE and entry.line == last):
                    _tell(entry.at, line)
                last = entry.line
            told = len(entries)
            if record is not None and not record.is_open:
                return record
            if not lives:
                print("it was interrupted: `milepost actions --finish` carries on", file=sys.stderr)
                return None
            time.sleep(_LOOK_S)
    except KeyboardInterrupt:
        print("\nit goes on without you: `milepost actions` tells how far", file=sys.stderr)
        return None


def _line(entry: Entry, entries: list[Entry]) -> str:
    steps = next((each.steps for each in entries if each.steps), ())
    name = steps[entry.step] if entry.step is not None and entry.step < len(steps) else ""
    match entry.mark:
        case Mark.STARTED:
            return entry.title
        case Mark.STEP_BEGUN:
            return ""
        case Mark.ENDED:
            return "done" if entry.ok else f"FAILED: {entry.line}"
        case _:
            return f"{name}: {entry.line}" if name else entry.line


def _tell(at: float, text: str) -> None:
    moment = time.strftime("%H:%M:%S", time.localtime(at))
    for part in text.split("\n"):
        print(f"{moment}  {harmless(part)}", flush=True)
