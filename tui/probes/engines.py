"""Engines and router, looked at seldom: each HTTP hit on an engine is a line in the run's log.

A look at an engine that says nothing delays no other: each address has a thread of its own, and a
read tells what is known by now.
"""

from __future__ import annotations

import time
from collections.abc import Sequence

from tui.miles.sglang_metrics import base_url
from tui.model.events import EnginesProbed, Event
from tui.model.reading import value_or
from tui.model.snapshot import Snapshot
from tui.probes.engine_watch import EngineWatch, RouterWatch

MOST_ENGINES = 64
_WAIT_S = 1.5
"""How long a read waits for its looks; a slower one is reported by a later read."""


class EnginesProbe:
    """All engines known, each on a thread of its own, so that a silent one delays no other."""

    name = "engines"
    cadence_s = 2.0
    deadline_s = 3.0

    def __init__(self) -> None:
        self._engines: dict[str, EngineWatch] = {}
        self._router: RouterWatch | None = None

    def read(self, now: float, seen: Snapshot) -> Sequence[Event]:
        """Start the looks that are due, wait a little, and tell what is known by now."""
        self._follow_router(base_url(seen.story.router_url))
        urls = self._addresses(seen)
        if not urls and self._router is None and not self._engines:
            return ()
        self._engines = {url: self._engines.get(url) or EngineWatch(url) for url in urls}
        weights_at = seen.story.weights_updated_at
        for engine in self._engines.values():
            engine.set_off(engine.look, now, weights_at)
        if self._router is not None:
            self._router.set_off(self._router.look, now)
        self._wait()
        return (
            EnginesProbed(
                at=now,
                engines=tuple(engine.probe for engine in self._engines.values()),
                router=self._router.probe if self._router is not None else None,
            ),
        )

    def close(self) -> None:
        """Nothing to let go of: looks in flight end by their own timeouts, on daemon threads."""

    def _follow_router(self, url: str) -> None:
        if not url:
            self._router = None
        elif self._router is None or self._router.probe.url != url:
            self._router = RouterWatch(url)

    def _addresses(self, seen: Snapshot) -> tuple[str, ...]:
        """What a person named, and only that; else all that the router or the log names."""
        given = [found.value for found in seen.attachment.engines]
        if given:
            return tuple(dict.fromkeys(base_url(url) or url for url in given))[:MOST_ENGINES]
        listed = value_or(self._router.probe.workers, ()) if self._router is not None else ()
        logged = [base_url(engine.url) for engine in seen.story.engines]
        return tuple(dict.fromkeys(url for url in (*listed, *logged) if url))[:MOST_ENGINES]

    def _wait(self) -> None:
        deadline = time.monotonic() + _WAIT_S
        watches: list[EngineWatch | RouterWatch] = [*self._engines.values()]
        if self._router is not None:
            watches.append(self._router)
        for watch in watches:
            watch.wait(max(0.0, deadline - time.monotonic()))
