"""A container's name made free for the next container. A running one keeps it.

An ended one is renamed aside, with its log and exit code. It is also told not to be started again
by Docker itself: one with a restart policy would come back with the engine, beside the new one.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tui.actions.context import Context
from tui.actions.errors import StepFailed
from tui.model.launch import Container
from tui.model.reading import Absence, Unknown
from tui.runs.docker import DockerEngine
from tui.runs.docker_answers import found_container
from tui.runs.names import NameUse, name_use

if TYPE_CHECKING:
    from docker import APIClient

T = TypeVar("T")

ANSWER_S = 30
PATIENCE_S = 90.0
"""For an engine that restarts, and for a container whose removal takes its time."""
_LOOK_S = 0.2


def claim(name: str, context: Context) -> None:
    """Make the name free. Raises StepFailed."""
    if not context.wait_for(lambda: _is_free(name, context), PATIENCE_S, every_s=_LOOK_S):
        raise StepFailed(f"container {name} is being removed, and that does not end")


def asked(context: Context, question: Callable[[APIClient], T]) -> T:
    """The engine's answer; one that does not answer is given time to come back.

    What the engine refuses the question has to see to itself; it may be asked more than once.
    Raises StepFailed.
    """
    end = time.monotonic() + PATIENCE_S
    while True:
        engine = DockerEngine(answer_s=ANSWER_S)
        try:
            answer = engine.asked(context.clock(), question)
        finally:
            engine.close()
        if not isinstance(answer, Unknown):
            return answer
        if answer.why is Absence.NO_PERMISSION or time.monotonic() >= end:
            raise StepFailed(answer.reason)
        context.pause(_LOOK_S)


def owner_of(client: APIClient, name: str) -> Container | None:
    """The container of this name or id, ended or not."""
    from docker.errors import NotFound

    try:
        return found_container(client.inspect_container(name)).container
    except NotFound:
        return None


def _is_free(name: str, context: Context) -> bool:
    owner = asked(context, lambda client: owner_of(client, name))
    match name_use(owner):
        case NameUse.FREE:
            return True
        case NameUse.WAIT:
            return False
        case NameUse.REFUSE:
            raise StepFailed(
                f"container {name} is {owner.status if owner else 'there'}: it keeps its name",
                "stop it first, or give the run another name",
            )
        case NameUse.RENAME_ASIDE:
            assert owner is not None
            aside = asked(context, lambda client: _renamed(client, owner))
            context.note(f"the ended container {name} is called {aside} from now on")
            return False


def _renamed(client: APIClient, owner: Container) -> str:
    from docker.errors import APIError, NotFound

    try:
        never: Any = {"Name": "no"}
        client.update_container(owner.id, restart_policy=never)
        aside = _free_name(client, owner)
        client.rename(owner.id, aside)
    except NotFound:
        return "nothing: it is gone"
    except APIError as fault:
        raise StepFailed(
            f"container {owner.name} cannot be renamed: {fault.explanation}",
            f"rename it: docker rename {owner.name} NEW-NAME",
        ) from fault
    return aside


def _free_name(client: APIClient, owner: Container) -> str:
    moment = time.strftime("%Y%m%d-%H%M%S", time.localtime(owner.finished_at or time.time()))
    base = found = f"{owner.name}-until-{moment}"
    number = 1
    while owner_of(client, found) is not None:
        number += 1
        found = f"{base}-{number}"
    return found
