"""What Miles does about an engine that is lost in the middle of a rollout (http_utils.py)."""

from __future__ import annotations

from tui.demo.console import Console
from tui.demo.failure import JobFailedError, task_error
from tui.demo.fleet import EngineChild, Fleet
from tui.demo.health import INTERVAL_S, HealthMonitor
from tui.demo.lines import Actor
from tui.demo.pace import Pace

_RETRIES = 60
_REQUESTS_LOGGED = 4
_CONNECT_ERROR = "httpx.ConnectError: All connection attempts failed"


class Losses:
    """Requests to a dead engine retry, and others take them over or they give up."""

    def __init__(self, console: Console, actor: Actor, fleet: Fleet, pace: Pace) -> None:
        self._console, self._actor, self._fleet, self._pace = console, actor, fleet, pace

    def notice(self, health: HealthMonitor, host: str) -> None:
        """Look for engines that died with requests open, and see what comes of it."""
        for engine in self._fleet.engines:
            if engine.alive or not engine.open_requests:
                continue
            if health.enabled:
                self._retry(self._generate_url, upto=int(INTERVAL_S))
                self.replace(engine, health)
            else:
                self._without_fault_tolerance(engine)
                raise self.failure("generate", "await rollout_manager.generate(rollout_id)", host)

    def replace(self, engine: EngineChild, health: HealthMonitor) -> None:
        """The health check fails: the others take over, and the update brings a new engine."""
        health.kill(engine)
        if self._fleet.living():
            self._fleet.take_over(engine, self._pace)
            return
        slot = self._fleet.engines.index(engine)
        # Miles restarts an engine at the next weight update only, and this rollout never ends.
        while True:
            self._retry(self._generate_url)
            self._give_up()
            health.skip(slot)

    def failure(self, method: str, call: str, host: str) -> JobFailedError:
        """A call of the driver ran into the dead engine."""
        remote = ('  File "/root/miles/miles/utils/http_utils.py", line 221, in _post',)
        return task_error(self._actor, method, host, _CONNECT_ERROR, call=call, remote=remote)

    def _without_fault_tolerance(self, engine: EngineChild) -> None:
        """The dead URL stays listed, so at the latest the rollout's closing abort fails."""
        if not self._fleet.living():
            self._retry(self._generate_url)
            self._give_up()
            return
        self._retry(self._generate_url, upto=3)
        self._fleet.take_over(engine, self._pace)
        while self._fleet.open_requests:
            self._pace.wait_real(0.02)
        self._retry(f"{self._fleet.url(engine)}/abort_request")

    @property
    def _generate_url(self) -> str:
        return f"{self._fleet.url(self._fleet.router)}/generate"

    def _retry(self, url: str, *, upto: int = _RETRIES) -> None:
        """One line a request and simulated second."""
        for attempt in range(1, upto + 1):
            for _ in range(_REQUESTS_LOGGED):
                self._log(
                    226,
                    "Error: All connection attempts failed, retrying... "
                    f"(attempt {attempt}/{_RETRIES}, url={url}, response=None)",
                )
            self._pace.wait(1.0)
        if upto == _RETRIES:
            self._log(230, f"Max retries ({_RETRIES}) reached, failing... (url={url})")

    def _give_up(self) -> None:
        self._console.log(
            self._actor,
            "inference_rollout_train.py:125",
            "[rollout] Task raised exception: All connection attempts failed\n"
            "Traceback (most recent call last):\n"
            '  File "/root/miles/miles/utils/http_utils.py", line 221, in _post\n'
            f"{_CONNECT_ERROR}",
        )

    def _log(self, line: int, message: str) -> None:
        self._console.log(self._actor, f"http_utils.py:{line}", message)
