"""Whether two sightings are of one run. Pure; see `tui.runs.merge` for the rule."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Sequence

from tui.miles.titles import DEMO_MODULE, DRIVER_SCRIPT
from tui.model.reading import Unknown
from tui.runs.docker_answers import FoundContainer, is_called, speaks_of_miles
from tui.runs.process import RunProcess
from tui.runs.ray_jobs import RayJob

_CLOCK_SLACK_S = 1.0
"""Process starts are told in ticks since a boot whose own time is rounded."""
_SUBMISSION_OPTION = re.compile(r"(?:^| )--(?:submission|job)-id[= ](\S+)")


def launcher_groups(launchers: Sequence[RunProcess]) -> list[tuple[RunProcess, ...]]:
    """Launchers with those they started: `scripts/run_*.py` and its `ray job submit` are one."""
    pids = {launcher.pid for launcher in launchers}
    roots = [each for each in launchers if not pids & set(each.ancestors)]
    return [
        (root, *(each for each in reversed(launchers) if root.pid in each.ancestors))
        for root in roots
    ]


def clients_of(
    containers: Sequence[FoundContainer], clients: Sequence[RunProcess]
) -> dict[str, RunProcess]:
    """The client of each container by its id: by what was typed, else by image, command and time.

    Of several clients of one container the one counts whose output is a file.
    """
    found: dict[str, RunProcess] = {}
    for each in containers:
        named = [client for client in clients if names(client, each)]
        if named:
            found[each.container.id] = min(named, key=_preference)
    left = [client for client in clients if client not in found.values()]
    for each in sorted(containers, key=lambda one: one.container.started_at):
        fitting = [client for client in left if _fits(client, each)]
        if fitting and each.container.id not in found:
            newest = max(fitting, key=lambda client: client.started_at)
            found[each.container.id] = newest
            left.remove(newest)
    return found


def names(client: RunProcess, found: FoundContainer) -> bool:
    """Whether the client's words name that container, by name or id."""
    docker = client.docker
    if docker is None or (docker.verb == "exec" and not speaks_of_miles(docker.command)):
        return False
    container, typed = found.container, docker.container
    return is_called(container, typed) or (len(typed) >= 4 and container.id.startswith(typed))


def _preference(client: RunProcess) -> tuple[bool, int]:
    assert client.docker is not None  # only clients are asked
    return isinstance(client.output, Unknown), client.docker.rank


def _fits(client: RunProcess, found: FoundContainer) -> bool:
    docker = client.docker
    return (
        docker is not None
        and docker.verb == "run"
        and not docker.container
        and docker.image == found.container.image
        and (not docker.command or found.argv[-len(docker.command) :] == docker.command)
        and client.started_at <= found.container.started_at + _CLOCK_SLACK_S
    )


def drives(driver: RunProcess, job: RayJob) -> bool:
    """Whether that is the job's driver."""
    if driver.submission_id:
        return driver.submission_id == job.submission_id
    if job.driver_pid and job.driver_pid == driver.inner_pid:
        return True
    return not job.driver_pid and same(_words(job.entrypoint), driver.argv)


def submitted(group: Sequence[RunProcess], job: RayJob) -> bool:
    """Whether they made the job: by the id that was typed, else by the same command before it."""
    if typed := _typed_by(group):
        return job.submission_id in typed
    words = _words(job.entrypoint)
    return _began_before(group, job.started_at) and any(
        same(each.argv, words) or (words and _entrypoint(each.argv) == words) for each in group
    )


def launched(group: Sequence[RunProcess], driver: RunProcess, job: RayJob | None) -> bool:
    """Whether they started that driver, themselves or through its job."""
    if any(launcher.pid in driver.ancestors for launcher in group):
        return True
    if job is not None:
        return submitted(group, job)
    if driver.submission_id and (typed := _typed_by(group)):
        return driver.submission_id in typed
    before = _began_before(group, driver.started_at)
    return before and any(same(launcher.argv, driver.argv) for launcher in group)


def _entrypoint(argv: Sequence[str]) -> tuple[str, ...]:
    """The words that `ray job submit` passes on."""
    return tuple(argv[argv.index("--") + 1 :]) if "--" in argv else ()


def typed_submissions(argv: Iterable[str]) -> list[str]:
    """The ids of jobs that a command names."""
    return _SUBMISSION_OPTION.findall(" ".join(argv))


def _typed_by(group: Iterable[RunProcess]) -> list[str]:
    return typed_submissions(word for launcher in group for word in launcher.argv)


def _began_before(group: Sequence[RunProcess], at: float) -> bool:
    return not at or group[0].started_at <= at + _CLOCK_SLACK_S


def same(some: Sequence[str], others: Sequence[str]) -> bool:
    """Whether both run the same driver with the same arguments, whatever stands before it."""
    driver = _from_driver(some)
    return bool(driver) and driver == _from_driver(others)


def _from_driver(words: Sequence[str]) -> tuple[str, ...]:
    for place, word in enumerate(words):
        if DRIVER_SCRIPT.fullmatch(word) or word == DEMO_MODULE:
            return tuple(words[place:])
    return ()


def _words(command: str) -> tuple[str, ...]:
    try:
        return tuple(shlex.split(command))
    except ValueError:
        return ()
