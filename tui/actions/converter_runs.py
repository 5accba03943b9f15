"""A converter under way: on this host, in the run's container, or in one of its own.

Its output goes to a file, and its exit code to another beside that, so that whoever looks later
can tell how it ended; what lives of it is known by an identity that is written down before it runs.
Begun again, the one that was begun before goes on, and there is no second.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from tui.actions import containers
from tui.actions.context import Context
from tui.actions.errors import StepFailed
from tui.actions.signals import is_alive, target_of
from tui.actions.spawning import Command, NotBegunError, gate
from tui.actions.stopping import Patience, stop_tree
from tui.model.plan import ConvertCheckpoint, Fresh
from tui.model.reading import Unknown
from tui.model.target import ProcessTarget

_WRAPPED = 'set -C; echo $$ > "$0.pid" && set +C && { "$@" > "$0" 2>&1; echo $? > "$0.exit"; }'
"""Run by `sh -c`, with the log's name and the command behind it. The first has the file."""
_GRACE_S = 5.0
_BEGIN_S = 20.0


def was_begun(step: ConvertCheckpoint) -> bool:
    """Whether it was started for this step, by us or by an attempt before."""
    return bool(_text(_pid_file(step)).strip()) or exit_code(step) is not None


def begin(step: ConvertCheckpoint, context: Context) -> None:
    """Start it. Raises StepFailed."""
    argv = ("sh", "-c", _WRAPPED, step.inside_log, *step.argv)
    if step.container_id:
        _begin_exec(step.container_id, argv, context)
    elif step.fresh is not None:
        _begin_container(step.fresh, argv, context)
    else:
        _begin_here(step, argv, context)
    if not context.wait_for(lambda: was_begun(step), _BEGIN_S):
        raise StepFailed(f"the converter did not begin within {_BEGIN_S:.0f} s")


def is_running(step: ConvertCheckpoint, context: Context) -> bool:
    """Whether it goes on."""
    if exit_code(step) is not None:
        return False
    if exec_id := context.facts.get("exec_id"):
        return containers.exec_is_running(exec_id)
    if container_id := context.facts.get("converter_container"):
        return containers.is_running_now(container_id)
    return _here(step) is not None


def exit_code(step: ConvertCheckpoint) -> int | None:
    """Of its end; None where it was killed before it could say it."""
    told = _text(_exit_file(step)).strip()
    return int(told) if told.isdecimal() else None


def end(step: ConvertCheckpoint, context: Context) -> None:
    """Have it end: a person asked to leave off."""
    if context.facts.get("exec_id"):
        inner = _text(_pid_file(step)).strip()
        children = f"kill -TERM $(cat /proc/{inner}/task/{inner}/children) {inner}"
        containers.exec_in(step.container_id, ("sh", "-c", children))
    elif container_id := context.facts.get("converter_container"):
        containers.stop_now(container_id, _GRACE_S)
    elif (process := _here(step)) is not None:
        stop_tree(process, patience=Patience(grace_s=_GRACE_S), note=context.note)
    context.wait_for(lambda: not is_running(step, context), _GRACE_S)


def tidy(step: ConvertCheckpoint) -> None:
    """Take away the two small files that only told of it."""
    for file in (_pid_file(step), _exit_file(step)):
        with suppress(OSError):
            file.unlink()


def _begin_here(step: ConvertCheckpoint, argv: Sequence[str], context: Context) -> None:
    context.note("converting on this host")
    command = Command(
        argv=tuple(argv),
        environment=tuple(os.environ.items()),
        cwd=step.cwd,
        log=step.log,
    )
    try:
        with gate(context.folder, f"{context.plan.id}/{context.step}") as opened:
            if opened.begun is None:
                opened.start(command, again=context.again)
    except NotBegunError as fault:
        raise StepFailed(f"the converter does not start: {fault}") from fault


def _begin_exec(container_id: str, argv: Sequence[str], context: Context) -> None:
    if "exec_id" not in context.facts:
        made = containers.exec_made(container_id, argv)
        if isinstance(made, Unknown):
            raise StepFailed(f"the converter cannot be run in the container: {made.reason}")
        context.note("converting in the run's container", exec_id=made.value)
    started = containers.exec_started(context.facts["exec_id"])
    if isinstance(started, Unknown):
        raise StepFailed(f"the converter cannot be run in the container: {started.reason}")


def _begin_container(fresh: Fresh, argv: Sequence[str], context: Context) -> None:
    made = containers.made_of(fresh, argv, f"milepost-{context.plan.id}")
    if isinstance(made, Unknown):
        raise StepFailed(f"no container of {fresh.image_name} can be made: {made.reason}")
    context.note("converting in a container of its own", converter_container=made.value)
    started = containers.started(made.value)
    if isinstance(started, Unknown):
        raise StepFailed(f"the container does not start: {started.reason}")


def _here(step: ConvertCheckpoint) -> ProcessTarget | None:
    """The process of this host whose command holds the log's name, as no other does."""
    told = _text(_pid_file(step)).strip()
    target = target_of(int(told)) if told.isdecimal() else None
    if target is None or step.log not in _text(Path(f"/proc/{told}/cmdline")):
        return None
    return target if is_alive(target) else None


def _pid_file(step: ConvertCheckpoint) -> Path:
    return Path(f"{step.log}.pid")


def _exit_file(step: ConvertCheckpoint) -> Path:
    return Path(f"{step.log}.exit")


def _text(file: Path) -> str:
    with suppress(OSError):
        return file.read_text(encoding="utf-8", errors="replace")
    return ""
