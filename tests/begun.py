"""Starts of commands that leave a trace each time they begin, by processes that are killed."""

from __future__ import annotations

import os
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import action_plans
import psutil

from tui.actions import starting
from tui.actions.context import plan_file
from tui.actions.executor import Executor, Perform
from tui.model.action import ActionRecord
from tui.model.plan import ActionPlan, StartRun
from tui.model.plan_document import plan_text
from tui.model.recipe import Recipe, RecipeKind

_POINTS = ("os.", "subprocess.", "fcntl.", "http.client.send", "socket.connect", "shutil.")
_WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT
DEADLINE_S = 200.0


@dataclass(frozen=True, slots=True)
class Stage:
    """A folder to run in, and a state folder."""

    folder: Path
    state: Path

    @property
    def log(self) -> Path:
        return self.folder / "plain-resume.log"

    def recipe(self, script: str = "exec sleep 600", **changes: Any) -> Recipe:
        """A shell that says `hello`, counts itself, and goes on with the script."""
        values: dict[str, Any] = {
            "kind": RecipeKind.PROCESS,
            "source": "test",
            "captured_at": 1.0,
            "argv": ("sh", "-c", f"echo $$ >> begun; echo hello; {script}"),
            "environment": (("PATH", os.environ["PATH"]), ("GREETING", "hello")),
            "cwd": str(self.folder),
        }
        return Recipe(**{**values, **changes})

    def plan(self, recipe: Recipe | None = None, **changes: Any) -> ActionPlan:
        """Of this one step."""
        recipe = recipe or self.recipe()
        log = str(self.log) if recipe.kind is RecipeKind.PROCESS else ""
        step = StartRun(**{"recipe": recipe, "log": log, **changes})
        plan = action_plans.plan((step,), made_at=time.time())
        self.keep(plan)
        return plan

    def keep(self, plan: ActionPlan) -> None:
        """Put it where whoever carries it out looks for it."""
        file = plan_file(self.state, plan.id)
        file.parent.mkdir(exist_ok=True)
        file.write_text(plan_text(plan))

    def carried_out(self, plan: ActionPlan) -> ActionRecord:
        performers: dict[type, Perform] = {StartRun: starting.perform}
        return Executor(folder=self.state, performers=performers).carry_out(plan.id)

    def begun(self) -> list[int]:
        """The pid of each time it began."""
        with suppress(FileNotFoundError):
            return [int(line) for line in (self.folder / "begun").read_text().split()]
        return []

    def alive(self) -> list[int]:
        """Those of them that live."""
        return [pid for pid in self.begun() if is_alive(pid)]

    def has_begun(self) -> int:
        """The pid of what began, and did so once."""
        wait_until(lambda: bool(self.begun()), "it never began")
        (pid,) = self.begun()
        return pid


@contextmanager
def staged(folder: Path) -> Iterator[Stage]:
    """A stage whose processes end with it."""
    stage = Stage(folder / "work", folder / "state")
    stage.folder.mkdir(parents=True)
    stage.state.mkdir()
    try:
        yield stage
    finally:
        for pid in stage.begun():
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)


def is_alive(pid: int) -> bool:
    """Whether it has not ended; one that waits to be reaped has."""
    with suppress(psutil.NoSuchProcess):
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    return False


def wait_until(condition: Callable[[], bool], otherwise: str) -> None:
    end = time.monotonic() + DEADLINE_S
    while not condition():
        assert time.monotonic() < end, otherwise
        time.sleep(0.01)


def killed_at(number: int, work: Callable[[], object]) -> bool:
    """Do the work in a process that kills itself before its step `number` into the world.

    Returns whether it came that far.
    """
    return _killed(work, lambda: sys.addaudithook(_counting(number)))


def killed_after(seconds: float, work: Callable[[], object]) -> bool:
    """Do the work in a process that is killed after that time; whether it was in time."""

    def arm() -> None:
        signal.signal(signal.SIGALRM, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
        signal.setitimer(signal.ITIMER_REAL, seconds)

    return _killed(work, arm)


def _killed(work: Callable[[], object], arm: Callable[[], object]) -> bool:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)  # pytest has threads; the child none
        pid = os.fork()
    if pid == 0:
        try:
            arm()
            work()
        except BaseException:
            traceback.print_exc()
            os._exit(1)
        os._exit(0)
    code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    assert code in (0, -signal.SIGKILL), code
    return code == -signal.SIGKILL


def _counting(number: int) -> Callable[[str, tuple[Any, ...]], None]:
    seen = 0

    def hook(event: str, arguments: tuple[Any, ...]) -> None:
        nonlocal seen
        is_write = event == "open" and bool((arguments[2] or 0) & _WRITES)
        if is_write or event.startswith(_POINTS):
            seen += 1
            if seen == number:
                os.kill(os.getpid(), signal.SIGKILL)

    return hook
