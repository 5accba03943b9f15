"""The process of one action: `python -m tui.actions FOLDER PLAN`, detached from who asked for it.

It says `started`, or why not, in one line on its standard output, and is on its own from then on.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from pathlib import Path

from tui.actions.executor import Executor
from tui.actions.launch import REFUSED, STARTED
from tui.actions.perform import PERFORMERS
from tui.errors import MilepostError
from tui.model.action import ActionState
from tui.runs.lock import LockHeldError


def main(folder: Path, action: str) -> int:
    """Carry the plan out; the exit code says whether it came to what was wanted."""
    with suppress(OSError):  # launch scripts end processes by name, `python` first among them
        Path("/proc/self/comm").write_text("milepost", encoding="utf-8")
    executor = Executor(
        folder=folder, performers=PERFORMERS, begun=lambda: _let_go(folder / "plans", action)
    )
    try:
        record = executor.carry_out(action)
    except (MilepostError, LockHeldError, OSError) as fault:
        _say(f"{REFUSED}{fault}")
        return 1
    return 0 if record.state is ActionState.DONE else 1


def _let_go(plans: Path, action: str) -> None:
    """Tell that it has begun, and speak into a file of its own from now on."""
    _say(STARTED)
    number = os.open(plans / f"{action}.log", os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
    os.dup2(number, 1)
    os.dup2(number, 2)
    os.close(number)


def _say(line: str) -> None:
    with suppress(OSError):  # nobody may be listening any more
        os.write(1, f"{line}\n".encode("utf-8", "replace"))


if __name__ == "__main__":
    if os.fork():  # who asked waits for this one, and is not to be the parent of the other
        os._exit(0)
    sys.exit(main(Path(sys.argv[1]), sys.argv[2]))
