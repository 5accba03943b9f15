"""Whether the start that a recipe describes has ended: by the identity of what was started."""

from __future__ import annotations

import psutil

from tui.model.reading import Unknown
from tui.model.recipe import Recipe
from tui.runs.docker import DockerEngine

_SLACK_S = 2.0
_ENDED = frozenset({"exited", "dead", "gone"})


def has_ended(recipe: Recipe, at: float) -> bool:
    """That is sure: what cannot be asked about may live."""
    if recipe.submission_id:
        return False
    if recipe.container_id and not _container_ended(recipe.container_id, at):
        return False
    if recipe.pid and _lives(recipe.pid, recipe.run_started_at):
        return False
    return bool(recipe.container_id or recipe.pid)


def _container_ended(container_id: str, at: float) -> bool:
    engine = DockerEngine()
    reading = engine.inspect(container_id, at)
    engine.close()
    return not isinstance(reading, Unknown) and reading.value.status in _ENDED


def _lives(pid: int, started_at: float) -> bool:
    try:
        process = psutil.Process(pid)
        is_it = abs(process.create_time() - started_at) <= _SLACK_S
        return is_it and process.status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
    except psutil.Error:
        return True
