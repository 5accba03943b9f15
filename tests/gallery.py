"""Make the pictures in `screenshots/` from the demo: every state worth knowing, as it really looks.

Usage: python tests/gallery.py [NAME …]   (all of them takes some minutes)
"""

from __future__ import annotations

import asyncio
import re
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from pathlib import Path

import fake_plans
import fakes
from fake_desk import FakeDesk

from tui.app.app import MilepostApp
from tui.app.options import ScreenOptions
from tui.app.screens.question import QuestionScreen
from tui.app.themes import all_themes
from tui.cli.commands import demo_attachment, demo_config
from tui.config import Config
from tui.demo.launch import start
from tui.model.launch import Attachment
from tui.model.reading import Known
from tui.model.snapshot import RunState, Snapshot
from tui.watch import monitor_of

FOLDER = Path(__file__).parents[1] / "screenshots"
SPEED = 30.0
DEADLINE_S = 240.0
_FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)

Seen = Callable[[Snapshot], bool]


@dataclass(frozen=True)
class Picture:
    """One picture: the run it shows, the moment, and how it is drawn."""

    name: str
    moment: Seen = bool
    faults: Sequence[str] = ()
    size: tuple[int, int] = (160, 50)
    theme: str = "night"
    keys: Sequence[str] = ()
    ascii: bool = False
    still: Snapshot | None = None
    """Shown instead of a demo."""
    desk: FakeDesk = field(default_factory=FakeDesk)
    """Plans what is asked for."""


def refusing() -> FakeDesk:
    desk = FakeDesk()
    desk.answer = lambda _: fake_plans.REFUSED
    return desk


def whole(count: int) -> Seen:
    def seen(snapshot: Snapshot) -> bool:
        tree = snapshot.checkpoints
        in_phase = snapshot.story.phase is not None and snapshot.story.phase.name == "actor_train"
        return isinstance(tree, Known) and len(tree.value.checkpoints) >= count and in_phase

    return seen


def alerted(*codes: str) -> Seen:
    return lambda snapshot: set(codes) <= {alert.code for alert in snapshot.verdict.alerts}


def state(wanted: RunState) -> Seen:
    return lambda snapshot: snapshot.verdict.state is wanted


def acted(snapshot: Snapshot) -> Snapshot:
    """With a kill and resume under way, and one before it."""
    now = fake_plans.record()
    before = fake_plans.failed(id="before", changed_at=snapshot.now - 7200)
    return replace(snapshot, actions=(before, now), action_holder=now.id)


PICTURES = (
    Picture("running", whole(3)),
    Picture("running-80x24", whole(3), size=(80, 24)),
    Picture("running-40x10", whole(3), size=(40, 10)),
    Picture("running-day", whole(3), size=(120, 36), theme="day"),
    Picture("running-safe", whole(3), size=(120, 36), theme="safe"),
    Picture("running-contrast", whole(3), size=(120, 36), theme="contrast"),
    Picture("running-ascii", whole(3), size=(100, 30), ascii=True),
    Picture("help", whole(2), size=(120, 58), keys=("question_mark",)),
    Picture("stalled", state(RunState.STALLED), faults=("stall@12",)),
    Picture("engine-suspect", alerted("engine-suspect"), faults=("engine-hangs@12",)),
    Picture("requests-failing", alerted("requests-failing"), faults=("engine-dies@12",)),
    Picture("diverged", alerted("non-finite"), faults=("nan@12",)),
    Picture("memory-floor", alerted("memory-floor"), faults=("memory-floor@12",)),
    Picture("trainer-died", state(RunState.FAILED), faults=("trainer-dies@12",)),
    Picture("save-killed", alerted("checkpoint-partial"), faults=("save-killed-3@11",)),
    Picture("silent-fresh-start", alerted("silent-fresh-start"), faults=("fresh-start",)),
    Picture("confirm", still=fakes.stalled(), keys=("k",)),
    Picture("confirm-80x24", still=fakes.stalled(), keys=("k",), size=(80, 24)),
    Picture("confirm-name", still=fakes.running(), keys=("K",), size=(120, 36)),
    Picture("refusal", still=fakes.stalled(), keys=("s",), desk=refusing(), size=(120, 36)),
    Picture("acting", still=acted(fakes.stalled())),
    Picture("acting-80x24", still=acted(fakes.stalled()), size=(80, 24)),
    Picture("actions", still=acted(fakes.stalled()), keys=("x",), size=(100, 30)),
)


class Still:
    """A source of one snapshot."""

    def __init__(self, snapshot: Snapshot) -> None:
        self._snapshot = snapshot

    def start(self, publish: Callable[[Snapshot], None]) -> None:
        publish(self._snapshot)

    def attach(self, attachment: Attachment) -> None:
        """Nothing to choose."""

    def verify(self, path: str | None) -> None:
        """Nobody asks."""

    def stop(self) -> None:
        """Nothing goes on."""


def at_the_moment(picture: Picture, folder: Path) -> Snapshot:
    """The snapshot of a real demo when the picture's moment has come."""
    run = start(folder, speed=SPEED, faults=tuple(picture.faults))
    config = demo_config(Config(interval_s=0.25), SPEED)
    monitor = monitor_of(demo_attachment(run), config, at=time.time(), demo_folder=run.directory)
    found: list[Snapshot] = []
    over = threading.Event()

    def publish(snapshot: Snapshot) -> None:
        if not found and picture.moment(snapshot):
            found.append(snapshot)
            over.set()

    try:
        monitor.start(publish)
        if not over.wait(DEADLINE_S):
            raise TimeoutError(f"{picture.name}: the moment never came")
    finally:
        monitor.stop()
        run.stop()
    return found[0]


async def drawn(picture: Picture, snapshot: Snapshot) -> str:
    """The screen as SVG. Fonts are the reader's own: nothing is fetched."""
    options = ScreenOptions(theme=picture.theme, ascii=picture.ascii)
    app = MilepostApp(Still(snapshot), options, all_themes(None), desk=picture.desk)
    async with app.run_test(size=picture.size) as pilot:
        await pilot.pause()
        for key in picture.keys:
            await pilot.press(key)
        while isinstance(app.screen, QuestionScreen) and app.screen.question.is_waiting:
            await pilot.pause()
        await pilot.pause()
        svg = app.export_screenshot(title="milepost")
    return _FONT_FACE.sub("", svg).replace("Fira Code", "monospace")


def made(picture: Picture) -> str:
    with tempfile.TemporaryDirectory() as folder:
        snapshot = picture.still or at_the_moment(picture, Path(folder) / "demo")
    svg = asyncio.run(drawn(picture, snapshot))
    (FOLDER / f"{picture.name}.svg").write_text(svg, encoding="utf-8")
    return picture.name


def main(names: Sequence[str]) -> None:
    """Make the pictures named, or all of them."""
    chosen = [picture for picture in PICTURES if not names or picture.name in names]
    if not names:
        shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(exist_ok=True)
    with ThreadPoolExecutor(3) as pool:
        for name in pool.map(made, chosen):
            print(name, flush=True)
    if not names or "start" in names:
        notes = (
            "containers of Miles: none is running",
            "train.py processes: none that can be seen",
        )
        empty = Snapshot(now=time.time(), attachment=Attachment(notes=notes))
        picture = Picture("start", lambda _: True, size=(100, 30))
        (FOLDER / "start.svg").write_text(asyncio.run(drawn(picture, empty)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1:])
