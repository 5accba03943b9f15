"""The plan of a save: whether the run can be asked for one now, and how.

A save that fails ends the run, and so does a trigger that the run cannot remove. Whatever would
come to that is refused.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tui.actions.errors import Refused
from tui.actions.launch import new_id
from tui.actions.rights import removal_fault
from tui.actions.situation import Situation
from tui.actions.trigger import Look, Trigger, trigger_of
from tui.model.action import ActionKind
from tui.model.checkpoint import CheckpointState
from tui.model.judge.words import gib, span
from tui.model.launch import LaunchArgs
from tui.model.plan import ActionPlan, AskToSave, Refusal, Row
from tui.model.reading import Known, Unknown
from tui.model.snapshot import Level, RunState, Snapshot
from tui.model.story.phases import SAVE
from tui.probes.save_path import save_path
from tui.runs.attachment import absolute, output_copy

_ENDED = frozenset({RunState.FINISHED, RunState.FAILED, RunState.CRASHED, RunState.STOPPED})
_FAILS = ("disk-full-at-next-save", "disk-read-only")
"""Alerts on the disk that a save would not survive."""
_NO_TRIGGER = "train_multi_lora_async.py"
"""A driver of Miles that does not look for it."""
_LEAST_DEADLINE_S = 3600.0
_PATIENCE = 4.0
"""Times the usual rollout."""


def plan_save(situation: Situation) -> ActionPlan | Refusal:
    """Ask Miles to save at the end of this rollout, and see it land on disk."""
    try:
        return _planned(situation)
    except Refused as refused:
        return refused.refusal
    except OSError as error:
        where = f"{error.filename}: " if error.filename else ""
        return Refusal(reason=f"the save trigger cannot be seen: {where}{error.strerror or error}")


def _planned(situation: Situation) -> ActionPlan:
    launch = launch_of(situation.snapshot)
    _check_state(situation)
    path = _check_command(situation.snapshot, launch)
    _check_disk(situation.snapshot)
    trigger, look = _trigger(situation, path)
    return ActionPlan(
        id=new_id(ActionKind.SAVE, situation.at),
        kind=ActionKind.SAVE,
        title=f"Save {situation.name} now",
        run_id=situation.run_id,
        run_name=situation.name,
        made_at=situation.at,
        rows=tuple(_rows(situation, trigger, look)),
        steps=(_step(situation, trigger),),
        go="save now",
    )


def launch_of(snapshot: Snapshot) -> LaunchArgs:
    """How the run was started: what its log says, else what was seen of its processes."""
    told = snapshot.story.launch
    return told if told.argv else snapshot.attachment.launch


def _check_state(situation: Situation) -> None:
    verdict, name = situation.snapshot.verdict, situation.name
    if situation.target is None or situation.run is None:
        raise Refused(f"nothing of {name} runs here: nobody would save", "resume it first")
    if verdict.state in _ENDED:
        raise Refused(f"{name} has ended: {verdict.reason or verdict.state.value}", "resume it")
    if verdict.state is RunState.STOPPING:
        raise Refused(f"{name} is stopping")
    if verdict.state is RunState.STALLED:
        raise Refused(
            f"{name} does not come to its save point: {verdict.reason or 'it is stalled'}",
            "kill and resume it",
        )
    container = situation.snapshot.container
    if isinstance(container, Known) and container.value.status == "paused":
        raise Refused(
            f"container {container.value.name} is paused",
            f"docker unpause {container.value.name}",
        )


def _check_command(snapshot: Snapshot, launch: LaunchArgs) -> str:
    """The trigger's path as the run was told it."""
    words = {posixpath.basename(word) for word in launch.argv}
    if _NO_TRIGGER in words:
        raise Refused(
            f"{_NO_TRIGGER} does not look for a save trigger",
            "it saves its adapters by itself, by --save-interval",
        )
    if snapshot.story.is_slime:
        raise Refused("slime has no save trigger", "it saves by --save-interval alone")
    if not launch.argv:
        raise Refused("how the run was started is not known, so its save trigger is not")
    if launch.save is None:
        raise Refused(
            "the run was started without --save: it has nowhere to save to",
            "give it --save and --save-trigger-sentinel at its next start",
        )
    if launch.save_trigger is None:
        raise Refused(
            "the run was started without --save-trigger-sentinel, so it cannot be asked to save",
            "the next resume can switch it on: milepost adds the option beside the save folder",
        )
    if launch.async_save and "fsdp" in (launch.backend, snapshot.story.backend):
        raise Refused(
            "--async-save with FSDP: Miles ends the run at its first save",
            "start it without --async-save",
        )
    return launch.save_trigger


def _check_disk(snapshot: Snapshot) -> None:
    for alert in snapshot.verdict.alerts:
        if alert.code in _FAILS:
            raise Refused(f"a save would fail and end the run: {alert.line}", alert.advice)


def _trigger(situation: Situation, told: str) -> tuple[Trigger, Look]:
    """The trigger and what is at its path, where it can be created and removed again."""
    assert situation.run is not None
    assert situation.target is not None
    is_told = told.startswith("/") or situation.run.driver is not None
    path = absolute(told, situation.run) if is_told else None
    if path is None:
        raise Refused(
            f"--save-trigger-sentinel {told} is relative to a folder that cannot be read",
            "run milepost as the run's user or as root",
        )
    trigger = trigger_of(path, situation.run, situation.target)
    look = trigger.look()
    _check_look(path, look)
    _check_removal(trigger)
    return trigger, look


def _check_look(path: str, look: Look) -> None:
    folder = posixpath.dirname(path)
    match look:
        case Look.FOLDER:
            raise Refused(
                f"{path} is a folder: Miles takes it for a request, saves, and ends the run "
                "because it cannot remove it",
                f"before this rollout's training ends: rmdir {path}",
            )
        case Look.DANGLING:
            raise Refused(f"{path} is a link that leads nowhere", "remove the link, then ask again")
        case Look.NO_FOLDER:
            raise Refused(f"{folder}, where the save trigger belongs, is not there", "create it")
        case Look.READ_ONLY:
            raise Refused(
                f"{folder} may not be written: no save trigger can be created there",
                "as another user or as root, unless it is mounted read-only",
            )
        case Look.ABSENT | Look.PENDING:
            return


def _check_removal(trigger: Trigger) -> None:
    if trigger.driver is None or not trigger.here:
        return
    status = Path(trigger.here).parent.stat()
    fault = ""
    with suppress(OSError):  # then nothing tells
        fault = removal_fault(trigger.driver.pid, posixpath.dirname(trigger.path), status)
    if fault:
        raise Refused(
            f"{fault}: Miles would save, and end the run because it cannot remove its trigger",
            "give --save-trigger-sentinel a folder that the run may write, at its next start",
        )


# What is shown and done


def _step(situation: Situation, trigger: Trigger) -> AskToSave:
    snapshot = situation.snapshot
    folder = save_path(snapshot, situation.at)
    forecast = snapshot.verdict.forecast
    usual_s = forecast.usual_rollout_s if forecast is not None else 0.0
    return AskToSave(
        trigger=trigger.path,
        host_trigger=trigger.here,
        container_id=trigger.container_id,
        log=_log(snapshot),
        save_folder="" if isinstance(folder, Unknown) else folder,
        target=situation.target,
        deadline_s=max(_LEAST_DEADLINE_S, _PATIENCE * usual_s),
    )


def _log(snapshot: Snapshot) -> str:
    """The file the run prints into; a copy of a container's output grows only while we watch."""
    log, container = snapshot.attachment.log, snapshot.attachment.container
    if log is None or (container is not None and log.value == str(output_copy(container.value))):
        return ""
    return log.value


def _rows(situation: Situation, trigger: Trigger, look: Look) -> Iterator[Row]:
    snapshot = situation.snapshot
    yield Row(label="When", text=_when(snapshot))
    if look is Look.PENDING:
        yield Row(
            label="How", text=f"it was asked already: {trigger.path} is there, and waited for"
        )
    else:
        way = f", in container {trigger.container_id[:12]}" if not trigger.here else ""
        as_seen = f", here {trigger.here}" if trigger.here not in ("", trigger.path) else ""
        yield Row(label="How", text=f"create {trigger.path}{as_seen}{way}; Miles removes it")
    if costs := _costs(snapshot):
        yield Row(label="Costs", text=costs)
    yield Row(label="Then", text="wait until the checkpoint is whole on disk; the run goes on")
    folder = save_path(snapshot, situation.at)
    if isinstance(folder, Unknown):
        text = f"the checkpoint cannot be looked at: {folder.reason}"
        yield Row(label="But", text=text, level=Level.WARNING)


def _when(snapshot: Snapshot) -> str:
    """Miles looks for its trigger once a rollout, when that is trained."""
    story, forecast = snapshot.story, snapshot.verdict.forecast
    if story.phase is not None and story.phase.name == SAVE:
        return "a save is under way: it is waited for"
    if snapshot.verdict.state is RunState.STARTING:
        return "at the end of the first rollout"
    if forecast is None or story.trained_at is None:
        return "at the end of this rollout"
    left_s = forecast.usual_rollout_s - (snapshot.now - story.trained_at)
    return f"at the end of this rollout, {f'about {span(left_s)}' if left_s > 0 else 'soon'}"


def _costs(snapshot: Snapshot) -> str:
    durations = snapshot.story.durations.get(SAVE)
    usual_s = durations.median_s() if durations is not None else None
    told = [f"a save takes {span(usual_s)}"] if usual_s is not None else []
    tree = snapshot.checkpoints.value.checkpoints if isinstance(snapshot.checkpoints, Known) else ()
    whole = next((each for each in tree if each.state is CheckpointState.WHOLE), None)
    if whole is not None:
        told.append(f"about {gib(whole.size_bytes)}")
    if isinstance(snapshot.disk, Known):
        told.append(f"{gib(snapshot.disk.value.free_bytes)} are free")
    return ", ".join(told)
