"""Miles' RolloutHealthMonitor (health_monitor.py): paused but for generation, kills what fails."""

from __future__ import annotations

from tui.demo.console import Console
from tui.demo.fleet import EngineChild, Fleet
from tui.demo.lines import Actor

INTERVAL_S = 20.0
"""Simulated seconds between checks; also how long a lost engine goes unnoticed."""


class HealthMonitor:
    """Says what Miles' monitor says; without fault tolerance there is none, and it is silent."""

    def __init__(self, console: Console, actor: Actor, fleet: Fleet, *, enabled: bool) -> None:
        self._console, self._actor, self._fleet = console, actor, fleet
        self.enabled = enabled

    def start(self) -> None:
        self._say(49, "Starting RolloutHealthMonitor...")
        self._say(59, "RolloutHealthMonitor started (in paused state).")

    def resume(self) -> None:
        self._say(97, "Resuming health monitor...")

    def pause(self) -> None:
        self._say(89, "Pausing health monitor...")

    def skip(self, slot: int) -> None:
        self._say(148, f"Skipping health check for engine {slot} (None)")

    def kill(self, engine: EngineChild) -> None:
        """The check failed: take the engine off the router and kill its processes."""
        slot = self._fleet.engines.index(engine)
        url = self._fleet.url(engine)
        self._say(
            155,
            f"Health check failed for rollout engine {slot} (ray timeout or error). Killing "
            f"actor. Exception: HTTPConnectionPool(host={url.split('/')[2]!r}): Read timed out.",
        )
        self._group(184, f"Killing server engine_indices=[{slot}]...")
        self._group(188, f"Shutting down and killing engine at index {slot}")
        self._fleet.unlist(engine)
        engine.process.kill()
        engine.process.wait()
        self._group(192, f"Successfully killed engine at index {slot}")

    def report_recovered(self, count: int) -> None:
        self._group(209, f"Recovered {count} dead rollout engines (worker_type=regular)")

    def _say(self, line: int, message: str) -> None:
        if self.enabled:
            self._console.log(self._actor, f"health_monitor.py:{line}", message)

    def _group(self, line: int, message: str) -> None:
        if self.enabled:
            self._console.log(self._actor, f"server_group.py:{line}", message)
