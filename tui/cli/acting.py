"""`milepost save`, `stop`, `resume`, `rollback`, `convert`, `autopsy`, `actions`, `run`."""

from __future__ import annotations

import json
import sys
import time
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.actions.desk import Desk
from tui.actions.launch import RefusedError
from tui.cli.chosen import chosen_run
from tui.cli.following import followed
from tui.config import load_config
from tui.errors import ExitCode, NothingFoundError, UsageError
from tui.model.action import ActionRecord, ActionState
from tui.model.codec import encoded
from tui.model.plan import ActionPlan, Ask, Refusal
from tui.model.plan_document import shown_plan
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.runs.journal import Journal
from tui.runs.lock import holder_of
from tui.runs.state_dir import run_folder
from tui.watch import monitor_of

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments

_LOOK_S = 8.0


def act(arguments: Arguments, ask: Ask) -> int:
    """Plan it, show it, have it confirmed, begin it, and tell how it goes."""
    config = load_config(arguments.config)
    snapshot = _looked_at(arguments)
    desk = Desk(lambda: snapshot, read_only=config.read_only)
    plan = desk.plan(ask)
    if isinstance(plan, Refusal):
        raise RefusedError(plan.reason, plan.remedy)
    if arguments.dry_run:
        _show(plan, ask, as_json=arguments.json)
        return int(ExitCode.WELL)
    if not arguments.yes:
        _show(plan, ask, as_json=False, to_stderr=arguments.json)
        _confirm(plan)
    told = desk.launch(plan)
    if told:
        raise RefusedError(told)
    folder = run_folder(snapshot.attachment)
    return _ended(followed(folder, plan.id, quiet=arguments.json), as_json=arguments.json)


def actions(arguments: Arguments) -> int:
    """What was done to the run; finish or give up what was interrupted."""
    config = load_config(arguments.config)
    attachment = chosen_run(arguments)
    folder = run_folder(attachment)
    snapshot = Snapshot(attachment=attachment)
    desk = Desk(lambda: snapshot, read_only=config.read_only)
    records = Journal(folder).actions()
    if not (arguments.finish or arguments.give_up or arguments.cancel):
        now = replace(snapshot, actions=records, action_holder=holder_of(folder) or "")
        return _list(replace(now, now=time.time()), as_json=arguments.json)
    record = next((each for each in reversed(records) if each.is_open), None)
    if record is None:
        raise NothingFoundError("no action on this run is open")
    if arguments.cancel:
        told = desk.cancel(record.id)
    else:
        told = desk.finish(record.id) if arguments.finish else desk.give_up(record.id)
    if told:
        raise RefusedError(told)
    if arguments.give_up:
        return int(ExitCode.WELL)
    return _ended(followed(folder, record.id, quiet=arguments.json), as_json=arguments.json)


def _looked_at(arguments: Arguments) -> Snapshot:
    """One settled reading of the run, whether it lives or is gone."""
    attachment = chosen_run(arguments)
    config = load_config(arguments.config)
    return monitor_of(attachment, config, at=time.time()).once(deadline_s=_LOOK_S)


def _show(plan: ActionPlan, ask: Ask, *, as_json: bool, to_stderr: bool = False) -> None:
    if as_json:
        json.dump(shown_plan(plan), sys.stdout)
        sys.stdout.write("\n")
        return
    from tui.cli.printing import print_plan

    print_plan(plan, ask, to_stderr=to_stderr)


def _confirm(plan: ActionPlan) -> None:
    """Ask; anything but a clear yes is a no."""
    if not sys.stdin.isatty():
        raise UsageError("nobody is there to confirm it", "give --yes, or --dry-run to only see it")
    wanted = plan.typed_name or "yes"
    word = f"the run's name, {harmless(wanted)}," if plan.typed_name else "yes"
    print(f"\nType {word} to {plan.go}: ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip() != wanted:
        raise RefusedError("not confirmed: nothing was changed")


def _ended(record: ActionRecord | None, *, as_json: bool) -> int:
    if record is None:
        return int(ExitCode.UNKNOWN)
    if as_json:
        json.dump({"milepost": 1, "action": encoded(record)}, sys.stdout)
        sys.stdout.write("\n")
    return int(ExitCode.WELL if record.state is ActionState.DONE else ExitCode.ENDED_BADLY)


def _list(snapshot: Snapshot, *, as_json: bool) -> int:
    if as_json:
        told = [encoded(each) for each in snapshot.actions]
        json.dump({"milepost": 1, "holder": snapshot.action_holder, "actions": told}, sys.stdout)
        sys.stdout.write("\n")
    else:
        from tui.cli.printing import print_actions

        print_actions(snapshot)
    return int(ExitCode.WELL if snapshot.actions else ExitCode.NOTHING_FOUND)
