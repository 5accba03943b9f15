"""An action's stages: each written down before and after, each enterable twice."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import action_plans as plans
import pytest

from tui.actions.context import plan_file
from tui.actions.executor import Executor
from tui.errors import UsageError
from tui.model.action import ActionState
from tui.model.journal import Entry, Mark
from tui.model.plan import ActionPlan, MoveAside
from tui.model.plan_document import plan_text
from tui.runs.journal import FILE, Journal
from tui.runs.lock import LockHeldError, holder_of, locked


def kept(folder: Path, plan: ActionPlan) -> ActionPlan:
    plan_file(folder, plan.id).parent.mkdir(exist_ok=True)
    plan_file(folder, plan.id).write_text(plan_text(plan))
    return plan


def executor(folder: Path, perform: object = plans.perform, at: float = 1_001.0) -> Executor:
    return Executor(folder=folder, performers={MoveAside: perform}, clock=lambda: at)  # type: ignore[dict-item]


def test_every_step_is_written_before_and_after(tmp_path: Path) -> None:
    plan = kept(tmp_path, plans.plan())
    record = executor(tmp_path).carry_out(plan.id)
    assert record.state is ActionState.DONE
    assert record.line == "iter_2 made"
    assert record.facts == {f"iter_{number}": "there" for number in range(plans.STEPS)}
    marks = [entry.mark for entry in Journal(tmp_path).entries()]
    step = [Mark.STEP_BEGUN, Mark.NOTED, Mark.STEP_DONE]
    assert marks == [Mark.STARTED, *step * plans.STEPS, Mark.ENDED]


def test_a_failed_step_ends_the_action_and_its_words_hold_no_secret(tmp_path: Path) -> None:
    plan = kept(tmp_path, plans.plan())
    record = executor(tmp_path, plans.fail).carry_out(plan.id)
    assert record.state is ActionState.FAILED
    assert record.line == "disk full: --wandb-key •••\nmake room"
    assert "abcdef123456" not in (tmp_path / FILE).read_text()


def test_a_defect_of_ours_is_a_failed_step(tmp_path: Path) -> None:
    def defect(step: MoveAside, context: object) -> None:
        raise ZeroDivisionError("oops")

    plan = kept(tmp_path, plans.plan())
    record = executor(tmp_path, defect).carry_out(plan.id)
    assert record.state is ActionState.FAILED
    assert "ZeroDivisionError: oops" in record.line


def test_a_plan_is_carried_out_once(tmp_path: Path) -> None:
    plan = kept(tmp_path, plans.plan())
    executor(tmp_path).carry_out(plan.id)
    with pytest.raises(UsageError, match="has ended already"):
        executor(tmp_path).carry_out(plan.id)


def test_an_old_plan_is_refused_but_an_interrupted_one_is_finished(tmp_path: Path) -> None:
    plan = kept(tmp_path, plans.plan())
    late = plan.made_at + plan.valid_s + 1
    with pytest.raises(UsageError, match="too old"):
        executor(tmp_path, at=late).carry_out(plan.id)
    journal = Journal(tmp_path)
    journal.write(Entry(at=1_002.0, action=plan.id, kind=plan.kind, mark=Mark.STARTED))
    assert executor(tmp_path, at=late).carry_out(plan.id).state is ActionState.DONE


def test_nothing_begins_beside_an_open_action(tmp_path: Path) -> None:
    plan = kept(tmp_path, plans.plan())
    other = Entry(at=1.0, action="other", kind=plan.kind, mark=Mark.STARTED, title="Stop run-a")
    Journal(tmp_path).write(other)
    with pytest.raises(UsageError, match="Stop run-a was interrupted"):
        executor(tmp_path).carry_out(plan.id)
    assert not (tmp_path / "iter_0").exists()


def test_one_at_a_time_and_the_holder_is_told(tmp_path: Path) -> None:
    plan = kept(tmp_path, plans.plan())
    assert holder_of(tmp_path) is None
    with locked(tmp_path, "kill and resume"):
        assert holder_of(tmp_path) == "kill and resume"
        with pytest.raises(LockHeldError, match="kill and resume is under way"):
            executor(tmp_path).carry_out(plan.id)
    assert holder_of(tmp_path) is None
    assert not (tmp_path / FILE).exists()


_DIES_AT_WRITE = """
import os, signal, sys
from pathlib import Path
import action_plans as plans
from tui.actions.executor import Executor
from tui.model.plan import MoveAside
from tui.runs.journal import Journal

write, left = Journal.write, int(sys.argv[3])

def counted(journal, entry):
    global left
    if left == 0 and sys.argv[4] == "before":
        os.kill(os.getpid(), signal.SIGKILL)
    write(journal, entry)
    if left == 0:
        os.kill(os.getpid(), signal.SIGKILL)
    left -= 1

Journal.write = counted
executor = Executor(
    folder=Path(sys.argv[1]), performers={MoveAside: plans.perform}, clock=lambda: 1_001.0
)
executor.carry_out(sys.argv[2])
"""
_WRITES = 2 + 3 * plans.STEPS


@pytest.mark.parametrize("when", ["before", "after"])
@pytest.mark.parametrize("write", range(_WRITES))
def test_killed_at_any_write_it_is_finished_by_the_next(
    tmp_path: Path, write: int, when: str
) -> None:
    plan = kept(tmp_path, plans.plan())
    died = subprocess.run(
        [sys.executable, "-c", _DIES_AT_WRITE, tmp_path, plan.id, str(write), when],
        env={**os.environ, "PYTHONPATH": str(Path(plans.__file__).parent)},
        check=False,
    )
    assert died.returncode == -signal.SIGKILL
    assert holder_of(tmp_path) is None
    if (write, when) != (_WRITES - 1, "after"):
        executor(tmp_path).carry_out(plan.id)
    (record,) = Journal(tmp_path).actions()
    assert record.state is ActionState.DONE
    assert record.done == tuple(f"iter_{number} made" for number in range(plans.STEPS))
    assert all((tmp_path / f"iter_{number}").exists() for number in range(plans.STEPS))


def test_a_step_that_failed_is_not_entered_again(tmp_path: Path) -> None:
    plan = kept(tmp_path, plans.plan())
    failed = executor(tmp_path, plans.fail).carry_out(plan.id)
    journal = (tmp_path / FILE).read_text().splitlines(keepends=True)
    (tmp_path / FILE).write_text("".join(journal[:-1]))  # killed before it wrote the end
    (record,) = Journal(tmp_path).actions()
    assert record.is_open
    finished = executor(tmp_path).carry_out(plan.id)
    assert (finished.state, finished.line) == (failed.state, failed.line)
    assert not (tmp_path / "iter_0").exists()


def test_a_torn_last_line_costs_nothing_but_itself(tmp_path: Path) -> None:
    journal = Journal(tmp_path)
    plan = plans.plan()
    journal.write(Entry(at=1.0, action=plan.id, kind=plan.kind, mark=Mark.STARTED, title="one"))
    whole = (tmp_path / FILE).read_bytes()
    for cut in range(len(whole)):
        (tmp_path / FILE).write_bytes(whole + whole[:cut])
        journal.write(Entry(at=2.0, action=plan.id, kind=plan.kind, mark=Mark.ENDED, line="two"))
        (record,) = journal.actions()
        assert (record.title, record.line) == ("one", "two")


def test_the_journal_and_the_lock_are_for_their_owner_alone(tmp_path: Path) -> None:
    plan = kept(tmp_path, plans.plan())
    executor(tmp_path).carry_out(plan.id)
    for name in (FILE, "lock"):
        assert re.fullmatch(r"0o100600", oct((tmp_path / name).stat().st_mode))
