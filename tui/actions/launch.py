"""Hand a plan to a process of its own, which goes on whatever becomes of us."""

from __future__ import annotations

import os
import secrets
import select
import subprocess
import sys
import time
from pathlib import Path

from tui.actions.context import cancel_file, plan_file
from tui.actions.executor import read_plan
from tui.errors import ExitCode, MilepostError, UsageError
from tui.model.action import ActionKind
from tui.model.journal import Entry, Mark
from tui.model.plan import ActionPlan
from tui.model.plan_document import plan_text
from tui.runs.journal import Journal
from tui.runs.lock import locked
from tui.runs.state_dir import made

STARTED = "started"
REFUSED = "refused: "
_BEGIN_S = 20.0


class RefusedError(MilepostError):
    """The action did not begin, and nothing was changed."""

    exit_code = ExitCode.REFUSED


def new_id(kind: ActionKind, at: float) -> str:
    """Of a plan made now. Sorts by time; two made in one second differ."""
    moment = time.strftime("%Y%m%d-%H%M%S", time.localtime(at))
    return f"{moment}-{kind.value.replace(' ', '-')}-{secrets.token_hex(2)}"


def launch(plan: ActionPlan, folder: Path, *, read_only: bool) -> None:
    """Begin the action. Returns when its own process has begun.

    Args:
        plan: what to do.
        folder: the run's state folder.
        read_only: nothing may be changed; the plan is refused.

    Raises:
        RefusedError: it did not begin: another is under way, the plan is too old, read-only.
        OSError: the plan cannot be kept.
    """
    if read_only:
        raise RefusedError(f"{plan.title}: milepost is read-only", "start it without --read-only")
    made(made(folder) / "plans")
    _keep(plan_file(folder, plan.id), plan_text(plan))
    carry_on(folder, plan.id, read_only=read_only)


def carry_on(folder: Path, action: str, *, read_only: bool) -> None:
    """Begin, or finish what was interrupted. Raises as `launch`."""
    if read_only:
        raise RefusedError("milepost is read-only", "start it without --read-only")
    process = subprocess.Popen(  # noqa: S603 - our own program
        [sys.executable, "-m", "tui.actions", str(folder), action],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        cwd="/",
        start_new_session=True,
    )
    assert process.stdout is not None
    with process.stdout as told:
        line = _first_line(told.fileno(), _BEGIN_S)
    process.wait()
    if line != STARTED:
        raise RefusedError(
            line.removeprefix(REFUSED) or "the action's process ended, or hangs, without a word",
            "" if line else "`milepost actions` tells whether it began",
        )


def cancel(folder: Path, action: str) -> None:
    """Ask it to leave off, where its step can. Raises OSError."""
    cancel_file(folder, action).touch(mode=0o600)


def give_up(folder: Path, action: str, at: float) -> None:
    """Close an action that was interrupted, as it stands.

    Raises:
        UsageError: there is no such action, or it is not open.
        LockHeldError: it is under way.
    """
    with locked(folder, f"giving up {action}"):
        journal = Journal(folder)
        record = next((each for each in journal.actions() if each.id == action), None)
        if record is None or not record.is_open:
            raise UsageError(f"{action} is no open action")
        plan = read_plan(folder, action)
        journal.write(Entry(at=at, action=action, kind=plan.kind, mark=Mark.GIVEN_UP))


def _keep(file: Path, text: str) -> None:
    number = os.open(file, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    with os.fdopen(number, "w", encoding="utf-8") as out:
        out.write(text)
        out.flush()
        os.fsync(out.fileno())


def _first_line(number: int, deadline_s: float) -> str:
    """What it says first, or all it says before it is silent."""
    end = time.monotonic() + deadline_s
    told = b""
    while b"\n" not in told:
        left = end - time.monotonic()
        if left <= 0 or not select.select([number], [], [], left)[0]:
            break
        chunk = os.read(number, 4096)
        if not chunk:
            break
        told += chunk
    return told.decode("utf-8", "replace").strip()
