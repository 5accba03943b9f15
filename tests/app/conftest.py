"""A stage for the app: snapshots are posted by hand, and nothing runs but the app."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import fakes
import pytest
from fake_desk import FakeDesk
from textual.pilot import Pilot

from tui.app.app import MilepostApp
from tui.app.options import ScreenOptions
from tui.app.screens.main import MainScreen
from tui.app.themes import all_themes
from tui.model.launch import Attachment
from tui.model.snapshot import Snapshot

DEADLINE_S = 200.0


@pytest.fixture(autouse=True)
def _terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an SSH session has: 256 colours, no word of true colour."""
    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("COLORTERM", raising=False)
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()


class HandSource:
    """Publishes what a test says."""

    def __init__(self, first: Snapshot | None) -> None:
        self.first = first
        self.stopped = False
        self.attached: Attachment | None = None
        self.verifies: list[str | None] = []

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        self.publish = publish
        if self.first is not None:
            publish(self.first)

    def attach(self, attachment: Attachment) -> None:
        self.attached = attachment

    def verify(self, path: str | None) -> None:
        self.verifies.append(path)

    def stop(self) -> None:
        self.stopped = True


class Stage:
    """A running app and what a test asks of it."""

    def __init__(
        self, app: MilepostApp, pilot: Pilot[None], source: HandSource, desk: FakeDesk
    ) -> None:
        self.app, self.pilot, self.source, self.desk = app, pilot, source, desk

    @property
    def main(self) -> MainScreen:
        return next(s for s in self.app.screen_stack if isinstance(s, MainScreen))

    def lines(self) -> list[str]:
        """The screen as a terminal would show it."""
        return [strip.text for strip in self.app.screen._compositor.render_strips()]

    def text(self) -> str:
        return "\n".join(self.lines())

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)

    async def show(self, snapshot: Snapshot) -> None:
        """Publish and wait until it is on the screen."""
        self.source.publish(snapshot)
        await self.until(lambda: self.app._newest is snapshot)
        await self.pilot.pause()

    async def until(self, condition: Callable[[], Any]) -> None:
        limit = time.monotonic() + DEADLINE_S
        while not condition():
            assert time.monotonic() < limit, f"never came true; the screen:\n{self.text()}"
            await self.pilot.pause(0.01)

    async def sees(self, text: str) -> None:
        await self.until(lambda: text in self.text())


@asynccontextmanager
async def staged(
    snapshot: Snapshot | None = None,
    *,
    size: tuple[int, int] = (160, 50),
    can_act: bool = False,
    **options: Any,
) -> AsyncIterator[Stage]:
    source = HandSource(fakes.running() if snapshot is None else snapshot)
    chosen = ScreenOptions(**options)
    desk = FakeDesk()
    app = MilepostApp(
        source, chosen, all_themes(chosen.theme_folder), desk=desk if can_act else None
    )
    async with app.run_test(size=size, notifications=True) as pilot:
        stage = Stage(app, pilot, source, desk)
        await stage.until(lambda: app._newest is source.first)
        await pilot.pause()
        yield stage


@pytest.fixture
def stage() -> Callable[..., Any]:
    """`async with stage(snapshot, size=…, **options) as on:`."""
    return staged
