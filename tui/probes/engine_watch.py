"""One engine or router address, watched over many looks.

A TCP connection costs the run's log no line and is tried at each look. `/metrics` every 10 s proves
that the HTTP process lives, so `/health` is asked only where it did not answer. `/health_generate`
is never asked: it makes an engine whose weights Miles has offloaded run on released memory.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import replace
from typing import ParamSpec, TypeVar

from tui.miles.sglang_metrics import base_url, parse_metrics, parse_weight_version, parse_workers
from tui.model.engine import EngineMetrics, EngineProbe, RouterProbe
from tui.model.reading import NOT_ASKED, Absence, Known, Reading, Unknown, known, value_or
from tui.probes.http_get import Answer, connect, fetch, refused

P = ParamSpec("P")
T = TypeVar("T")

METRICS_EVERY_S = 10.0
NO_METRICS_EVERY_S = 60.0
"""For an engine that answers 404: its metrics are off."""
HEALTH_EVERY_S = 30.0
MODEL_EVERY_S = 300.0
MODEL_AT_MOST_EVERY_S = 10.0
"""After the log tells of a weight update."""
WORKERS_EVERY_S = 15.0


class _Watch:
    """One address. At most one look at it is in flight; what it finds it publishes as one value."""

    def __init__(self) -> None:
        self._thread: threading.Thread | None = None
        self._bug: Exception | None = None

    def set_off(self, look: Callable[P, None], *args: P.args, **kwargs: P.kwargs) -> None:
        """Look on a thread, unless the look before has not come back."""
        if self._thread is not None and self._thread.is_alive():
            return

        def run() -> None:
            try:
                look(*args, **kwargs)
            except Exception as error:  # noqa: BLE001 - raised by wait(), where the monitor sees it
                self._bug = error

        self._thread = threading.Thread(target=run, name="milepost look", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> None:
        """Until the look is back, or the time is over."""
        if self._thread is not None:
            self._thread.join(seconds)
        bug, self._bug = self._bug, None
        if bug is not None:
            raise bug


class EngineWatch(_Watch):
    """An engine; `probe` is what is known of it by now."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.probe = EngineProbe(url=url)
        self._due = _Due()
        self._answered_at: float | None = None
        self._weights_at = 0.0

    def look(self, now: float, weights_at: float) -> None:
        """Ask what is due. Published bit by bit, so that a late answer holds up nothing known."""
        before = self.probe.reachable
        reachable = self._connect(now)
        if value_or(reachable, default=False) is not True:
            fault = refused(reachable)
            self.probe = replace(
                self.probe, reachable=reachable, metrics=fault, health_status=fault
            )
            return
        self.probe = replace(self.probe, reachable=reachable)
        if value_or(before, default=False) is not True:
            self._due.forget()
        self._ask_metrics(now)
        self._ask_health(now)
        self._ask_model(now, weights_at)

    def _connect(self, now: float) -> Reading[bool]:
        if not base_url(self.probe.url):
            return Unknown(why=Absence.ERROR, reason="not an address like http://host:port", at=now)
        return connect(self.probe.url, now)

    def _ask_metrics(self, now: float) -> None:
        before = self.probe.metrics
        off = isinstance(before, Unknown) and before.why is Absence.NOT_SUPPORTED
        if not self._due.now("metrics", now, NO_METRICS_EVERY_S if off else METRICS_EVERY_S):
            return
        metrics = _read_answer(fetch(self.probe.url, "/metrics", now), parse_metrics)
        self.probe = replace(self.probe, metrics=metrics)
        if isinstance(metrics, Known):
            self._answered_at = now
            unasked = Unknown(why=Absence.NOT_ASKED, reason="not asked: /metrics answers", at=now)
            self.probe = replace(self.probe, health_status=unasked)
            if _started_again(before, metrics.value):
                self._due.forget("model")

    def _ask_health(self, now: float) -> None:
        if self._answered_at is not None and 0 <= now - self._answered_at < HEALTH_EVERY_S:
            return
        if self._due.now("health", now, HEALTH_EVERY_S):
            answer = fetch(self.probe.url, "/health", now)
            status = known(answer.value.status, now) if isinstance(answer, Known) else answer
            self.probe = replace(self.probe, health_status=status)

    def _ask_model(self, now: float, weights_at: float) -> None:
        if isinstance(self.probe.metrics, Unknown) and value_or(self.probe.health_status, 0) != 200:
            return
        updated = weights_at != self._weights_at
        if self._due.now("model", now, MODEL_AT_MOST_EVERY_S if updated else MODEL_EVERY_S):
            self._weights_at = weights_at
            answer = fetch(self.probe.url, "/model_info", now)
            self.probe = replace(
                self.probe, weight_version=_read_answer(answer, parse_weight_version)
            )


class RouterWatch(_Watch):
    """A router; `probe` is what is known of it by now."""

    def __init__(self, url: str) -> None:
        super().__init__()
        self.probe = RouterProbe(url=url)
        self._due = _Due()
        self._path = "/workers"

    def look(self, now: float) -> None:
        """Ask for the list; Miles' own router and old SGLang ones have it at `/list_workers`."""
        if not self._due.now("workers", now, WORKERS_EVERY_S):
            return
        answer = fetch(self.probe.url, self._path, now)
        workers = _read_answer(answer, parse_workers)
        if isinstance(answer, Known) and isinstance(workers, Unknown):
            self._path = "/list_workers" if self._path == "/workers" else "/workers"
            other = _read_answer(fetch(self.probe.url, self._path, now), parse_workers)
            workers = other if isinstance(other, Known) else workers
        self.probe = replace(self.probe, workers=workers)


class _Due:
    """What was asked when, by the clock that the reads are given."""

    def __init__(self) -> None:
        self._asked_at: dict[str, float] = {}

    def now(self, question: str, now: float, every_s: float) -> bool:
        """Whether it is time to ask, noted as asked. A clock set back makes everything due."""
        asked_at = self._asked_at.get(question)
        if asked_at is not None and 0 <= now - asked_at < every_s:
            return False
        self._asked_at[question] = now
        return True

    def forget(self, question: str = "") -> None:
        """Ask again at once: this one, or everything."""
        if question:
            self._asked_at.pop(question, None)
        else:
            self._asked_at.clear()


def _read_answer(answer: Reading[Answer], parse: Callable[[str], T | None]) -> Reading[T]:
    if isinstance(answer, Unknown):
        return answer
    status, value = answer.value.status, None
    if status == 200:
        value = parse(answer.value.text)
        if value is not None:
            return known(value, answer.at)
        return Unknown(
            why=Absence.NOT_SUPPORTED, reason="the answer holds nothing known", at=answer.at
        )
    why = Absence.NOT_SUPPORTED if status == 404 else Absence.ERROR
    return Unknown(why=why, reason=f"answered {status}", at=answer.at)


def _started_again(before: Reading[EngineMetrics], now: EngineMetrics) -> bool:
    if isinstance(before, Unknown):
        return before is not NOT_ASKED
    return now.tokens_total < before.value.tokens_total
