"""Plans carried out in tests, and processes that carry them out killed at any system call."""

from __future__ import annotations

import os
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from tui.actions.context import plan_file
from tui.actions.executor import Executor, Perform
from tui.actions.situation import Situation
from tui.model.action import ActionRecord
from tui.model.events import CheckpointsScanned
from tui.model.launch import Attachment, Found
from tui.model.plan import ActionPlan
from tui.model.plan_document import plan_text
from tui.model.snapshot import Snapshot
from tui.model.target import RunTarget
from tui.probes.checkpoints import CheckpointsProbe
from tui.runs.journal import Journal

SOMETHING = RunTarget()
"""Stands for a run that lives."""
_CHANGES = frozenset(
    ("os.rename", "os.mkdir", "os.rmdir", "os.remove", "os.chmod", "os.chown", "os.truncate")
)
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
_KILLED = 9
_NOBODY = 65534


def situation(root: Path, folder: Path, **changes: Any) -> Situation:
    """A run that is not there any more, with what its save folder holds now."""
    checkpoints = Found(value=str(root), source="--checkpoints")
    snapshot = Snapshot(attachment=Attachment(name="run-a", checkpoints=checkpoints))
    (event,) = CheckpointsProbe().read(time.time(), snapshot)
    assert isinstance(event, CheckpointsScanned)
    return replace(
        Situation(
            snapshot=replace(snapshot, checkpoints=event.tree),
            run=None,
            target=None,
            recipe=None,
            run_id="run-a-1f0c93ab",
            folder=folder,
            records=Journal(folder).actions(),
            at=time.time(),
        ),
        **changes,
    )


def keep(plan: ActionPlan, folder: Path) -> None:
    """Put the plan where whoever carries it out looks for it."""
    file = plan_file(folder, plan.id)
    file.parent.mkdir(exist_ok=True)
    file.write_text(plan_text(plan))


def carried_out(plan: ActionPlan, folder: Path, performers: Mapping[type, Perform]) -> ActionRecord:
    """Do it, or what is left of it."""
    return Executor(folder=folder, performers=performers).carry_out(plan.id)


def finished(plan: ActionPlan, folder: Path, performers: Mapping[type, Perform]) -> ActionRecord:
    """Carry on what a process that was killed had begun, unless it had ended already."""
    for record in Journal(folder).actions():
        if record.id == plan.id and not record.is_open:
            return record
    return carried_out(plan, folder, performers)


def killed(at: int, work: Callable[[], object], *, in_a_line: bool = False) -> bool:
    """Do the work in a process that is killed before its change number `at` to any file.

    With `in_a_line` it is killed in the middle of writing line `at` to the journal instead.
    Returns whether it came that far.
    """

    def until_killed() -> None:
        (_tear if in_a_line else _count)(at)
        work()

    code = os.waitstatus_to_exitcode(os.waitpid(_forked(until_killed), 0)[1])
    assert code in (0, _KILLED), code
    return code == _KILLED


def as_nobody(work: Callable[[], str]) -> str:
    """What the work answers where it is done by a user without rights."""
    reader, writer = os.pipe()

    def without_rights() -> None:
        os.setgroups([])
        os.setresgid(_NOBODY, _NOBODY, _NOBODY)
        os.setresuid(_NOBODY, _NOBODY, _NOBODY)
        os.write(writer, work().encode())

    pid = _forked(without_rights)
    os.close(writer)
    with os.fdopen(reader) as told:
        answer = told.read()
    os.waitpid(pid, 0)
    return answer


def _forked(work: Callable[[], object]) -> int:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest has threads, the child none
        pid = os.fork()
    if pid == 0:
        code = 1
        try:
            work()
            code = 0
        except BaseException:
            traceback.print_exc()
        os._exit(code)
    return pid


def _count(at: int) -> None:
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        if event in _CHANGES or (event == "open" and (arguments[2] or 0) & _WRITES):
            seen += 1
            if seen == at:
                os._exit(_KILLED)

    sys.addaudithook(hook)


def _tear(at: int) -> None:
    seen = 0
    write = os.write

    def torn(number: int, content: bytes) -> int:
        nonlocal seen
        seen += 1
        if seen == at:
            write(number, content[: len(content) // 2])
            os._exit(_KILLED)
        return write(number, content)

    os.write = torn  # type: ignore[assignment]
