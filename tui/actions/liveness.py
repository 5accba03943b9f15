"""Whether a run goes on."""

from __future__ import annotations

from tui.actions import containers, ray_jobs
from tui.actions.signals import is_alive
from tui.model.reading import Unknown
from tui.model.target import RunTarget


def lives(target: RunTarget, at: float) -> bool:
    """As what is known nearest to its driver tells; so too while nobody can tell."""
    if target.driver is not None:
        return is_alive(target.driver)
    if target.container is not None:
        return containers.is_running(target.container)
    if target.job is not None:
        found = ray_jobs.find(target.job, at)
        return isinstance(found, Unknown) or found.value.is_active
    return any(map(is_alive, target.processes))
