"""The app: snapshots in, screens out. It reads nothing of the run itself.

A snapshot crosses the thread line as one message of which only the newest counts. When the terminal
is slower than the snapshots, pictures are left out, not queued.
"""

from __future__ import annotations

import os
import time
from contextlib import nullcontext, suppress
from functools import partial
from typing import ClassVar, TypeVar

from rich.console import RenderableType
from textual import on
from textual._compositor import ChopsUpdate, LayoutUpdate
from textual.actions import SkipAction
from textual.app import App
from textual.binding import BindingType
from textual.command import Provider
from textual.driver import Driver
from textual.message import Message
from textual.notifications import SeverityLevel
from textual.screen import Screen
from textual.timer import Timer

from tui.app import commands
from tui.app.aside import aside
from tui.app.asking import ask_of, speaks_against_resume
from tui.app.command import Command
from tui.app.keys import chosen_keys, fixed_bindings
from tui.app.leaving import Leaving
from tui.app.options import ScreenOptions
from tui.app.paint import Paint
from tui.app.palette import CommandSearch
from tui.app.screens.actions import ActionsScreen, Wish
from tui.app.screens.choose import ChooseScreen
from tui.app.screens.confirm import ConfirmScreen
from tui.app.screens.detail import DetailScreen
from tui.app.screens.help import HelpScreen
from tui.app.screens.main import MainScreen
from tui.app.screens.painted import PaintedScreen
from tui.app.screens.question import QuestionScreen
from tui.app.screens.start import StartScreen
from tui.app.source import ActionDesk, SnapshotSource
from tui.app.terminal import Terminal
from tui.app.themes import Theme, Themes
from tui.app.trim import trimmed
from tui.model.action import ActionKind
from tui.model.checkpoint import CheckpointState
from tui.model.guard import GuardState
from tui.model.launch import Attachment
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import action, detail
from tui.view import question as questions
from tui.view.rows import Look

_BEHIND_BYTES = 4096
"""A terminal with that much unsent gets no new picture yet."""
_RETRY_S = 0.2
_Painted = TypeVar("_Painted", bound=PaintedScreen)
_LOOK_AT_TERMINAL_S = 0.5
_PAUSED = "The guard is paused: it watches and tells, and does nothing to the run."


class SnapshotReady(Message):
    """A newer snapshot. It takes the place of one that still waits."""

    def __init__(self, snapshot: Snapshot) -> None:
        super().__init__()
        self.snapshot = snapshot

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, SnapshotReady)


class MilepostApp(App[None], inherit_bindings=False):
    """The screen of one run."""

    TITLE = "milepost"
    CSS_PATH = "tui.tcss"
    COMMANDS: ClassVar[set[type[Provider]]] = {CommandSearch}  # type: ignore[assignment]
    BINDINGS: ClassVar[list[BindingType]] = [*fixed_bindings(commands.COMMANDS)]

    def __init__(
        self,
        source: SnapshotSource,
        options: ScreenOptions,
        themes: Themes,
        *,
        desk: ActionDesk | None = None,
        driver_class: type[Driver] | None = None,
    ) -> None:
        """Without a desk nothing can be done to the run.

        Raises ConfigError for a theme that is none, or keys that cannot be.
        """
        super().__init__(
            driver_class=driver_class, ansi_color=True if "NO_COLOR" in os.environ else None
        )
        self.options = options
        self.set_class(options.ascii, "-ascii")
        self._source = source
        self._desk = desk
        self._read_only = options.read_only or desk is None
        self._themes = themes
        self.keys = chosen_keys(commands.COMMANDS, options.keys)
        self._bind(commands.available(read_only=self._read_only))
        for known in themes.by_name.values():
            self.register_theme(known.for_textual())
        self._newest = Snapshot()
        self._late: Timer | None = None
        self.use_theme(themes.named(options.theme or self._suited_theme()))

    def _bind(self, available: tuple[Command, ...]) -> None:
        """Bind the keys of what can be had; what cannot has none."""
        for command in available:
            own = [key for key in self.keys[command.name] if key not in command.fixed_keys]
            if own:
                self.bind(",".join(own), command.action, show=False)

    # Snapshots

    def publish(self, snapshot: Snapshot) -> None:
        """Show this snapshot. Any thread; returns at once."""
        # At the end the loop may close between our look at it and the post.
        with suppress(RuntimeError):
            self.post_message(SnapshotReady(snapshot))

    async def on_snapshot_ready(self, message: SnapshotReady) -> None:
        self._newest = message.snapshot
        if self._late is None:
            await self._show_newest()

    async def _show_newest(self) -> None:
        """Paint, or wait until the terminal has taken what it was sent."""
        self._late = None
        if isinstance(self._driver, Terminal) and self._driver.unsent_bytes > _BEHIND_BYTES:
            self._late = self.set_timer(_RETRY_S, self._show_newest)
            return
        await self._choose_screen()
        self._show_everywhere()

    def _show_everywhere(self) -> None:
        ahead_s = time.localtime(self._newest.now).tm_gmtoff
        look = Look(ascii=self.options.ascii, utc_offset_s=ahead_s)
        for screen in self.screen_stack:
            if isinstance(screen, PaintedScreen):
                screen.show(self._newest, look)

    async def _choose_screen(self) -> None:
        """The panes when there is something to watch; else the list, or the start page."""
        wanted = _suited_screen(self._newest)
        if isinstance(self.screen, wanted):
            return
        if isinstance(self.screen, StartScreen | ChooseScreen):
            await self.pop_screen()
        if wanted is not MainScreen and isinstance(self.screen, MainScreen):
            await self.push_screen(self._made(wanted))

    # Textual's side

    def get_default_screen(self) -> Screen[None]:
        return self._made(MainScreen)

    def _display(self, screen: Screen[object], renderable: RenderableType | None) -> None:
        update = trimmed(renderable) if isinstance(renderable, ChopsUpdate) else renderable
        whole = isinstance(renderable, LayoutUpdate)
        driver = self._driver
        painting = (
            driver.painting(whole_screen=whole) if isinstance(driver, Terminal) else nullcontext()
        )
        with painting:
            super()._display(screen, update)

    def notify(
        self,
        message: str,
        *,
        title: str = "",
        severity: SeverityLevel = "information",
        timeout: float | None = None,
        markup: bool = False,
    ) -> None:
        """A toast. It may quote a file's name or what a file says: text, never markup or more."""
        text = "\n".join(map(harmless, message.split("\n")))
        super().notify(
            text, title=harmless(title), severity=severity, timeout=timeout, markup=markup
        )

    def on_mount(self) -> None:
        self.set_interval(_LOOK_AT_TERMINAL_S, self._leave_if_hung_up)
        if self._themes.faults:
            self.notify(
                "\n".join(self._themes.faults),
                title="Themes not loaded",
                severity="warning",
                markup=False,
            )
        self._source.start(self.publish)

    @on(Driver.SignalResume)
    def _paint_all(self) -> None:
        """Back from the shell, on a terminal that has kept nothing of the picture."""
        self.screen.refresh()

    def _leave_if_hung_up(self) -> None:
        if isinstance(self._driver, Terminal) and self._driver.gone:
            self.leave(Leaving.HUNG_UP)

    def on_choose_screen_chosen(self, message: ChooseScreen.Chosen) -> None:
        """Its panes come with the next snapshot."""
        self._source.attach(message.run.attachment)
        self.notify(f"Watching {message.run.attachment.name}", markup=False, timeout=2)

    # Commands

    def leave(self, code: int) -> None:
        """End now, whatever else is under way."""
        self.exit(return_code=code)

    def action_leave(self) -> None:
        self.leave(Leaving.QUIT)

    async def action_help(self) -> None:
        if isinstance(self.screen, HelpScreen):
            await self.pop_screen()
        else:
            await self.push_screen(self._made(HelpScreen))
            self._show_everywhere()

    async def action_inspect(self) -> None:
        """The page of the checkpoint under the cursor."""
        if not isinstance(self.screen, MainScreen):
            return
        page = self._made(DetailScreen)
        page.selected_iteration = self.screen.selected_iteration
        await self.push_screen(page)
        self._show_everywhere()

    def action_verify(self) -> None:
        """Verify the checkpoint under the cursor or on the page, or stop that."""
        screen = self.screen
        if not isinstance(screen, MainScreen | DetailScreen):
            return
        chosen = detail.selected(self._newest, screen.selected_iteration)
        if chosen is None:
            self.notify("There is no checkpoint to verify.", timeout=3)
            return
        if isinstance(screen, MainScreen):
            screen.show_checkpoint(chosen.iteration)
        current = self._newest.verifying
        if current is not None and not current.fault:
            if current.path == chosen.path:
                self._stop_verify()
            else:
                self.notify("Another is being verified: esc stops that.", timeout=3)
        elif chosen.state is CheckpointState.SAVING:
            self.notify(f"{chosen.iteration} is being written: wait for the end.", timeout=3)
        else:
            self._source.verify(chosen.path)

    def on_main_screen_nothing_open(self) -> None:
        self._stop_verify()

    def _stop_verify(self) -> None:
        """Also forgets one that ended without a result."""
        if self._newest.verifying is not None:
            self._source.verify(None)

    # What is done to the run

    async def action_ask(self, kind: str) -> None:
        """Show what an action would do; it is done when that is confirmed."""
        screen, desk = self.screen, self._desk
        if desk is None or not isinstance(screen, MainScreen | DetailScreen):
            raise SkipAction
        iteration = screen.selected_iteration
        if isinstance(screen, DetailScreen):
            shown = detail.selected(self._newest, iteration)
            iteration = shown.iteration if shown else None
        ask = ask_of(ActionKind(kind), iteration)
        if isinstance(ask, str):
            self.notify(ask, timeout=4)
            return
        title = f"{kind.capitalize()} {self._newest.attachment.name}"
        await self._put_question(ConfirmScreen(self.keys, self.paint, desk, ask, title))

    async def action_resume(self) -> None:
        if why_not := speaks_against_resume(self._newest):
            self.notify(why_not, timeout=4)
        else:
            await self.action_ask(ActionKind.RESUME)

    async def action_actions(self) -> None:
        """The page of the action under way, and of all before it."""
        if not isinstance(self.screen, MainScreen | DetailScreen):
            raise SkipAction
        await self.push_screen(self._made(ActionsScreen))
        self._show_everywhere()

    async def on_actions_screen_wished(self, message: ActionsScreen.Wished) -> None:
        record, desk = action.open_action(self._newest), self._desk
        if desk is None or record is None:
            self.notify("No action is open.", timeout=3)
            return
        is_held = action.standing(self._newest, record) is action.Standing.UNDER_WAY
        if is_held is not (message.wish is Wish.LEAVE_OFF):
            told = "It is under way." if is_held else "It is interrupted: finish it or give it up."
            self.notify(told, timeout=3)
            return
        title = action.short_title(self._newest, record)
        match message.wish:
            case Wish.FINISH:
                aside(self, partial(desk.finish, record.id), self._finishing, str)
            case Wish.GIVE_UP:
                give_up = partial(desk.give_up, record.id)
                asked = questions.giving_up(title, record)
                await self._put_question(QuestionScreen(self.keys, self.paint, asked, give_up))
            case Wish.LEAVE_OFF:
                cancel = partial(desk.cancel, record.id)
                asked = questions.leaving_off(title, record)
                await self._put_question(QuestionScreen(self.keys, self.paint, asked, cancel))

    def _finishing(self, why_not: str) -> None:
        self.notify(why_not or "It goes on.", timeout=6 if why_not else 3)

    def action_pause_guard(self) -> None:
        """A person outranks the guard: it does nothing while it is paused."""
        desk, guard = self._desk, self._newest.guard
        if desk is None or guard is None or guard.state is GuardState.OFF:
            self.notify("No guard watches this run: `milepost guard` starts one.", timeout=4)
            return
        paused = not guard.paused
        told = _PAUSED if paused else "The guard may act again."
        aside(self, partial(desk.pause_guard, paused=paused), partial(self._pausing, told), str)

    def _pausing(self, told: str, why_not: str) -> None:
        self.notify(why_not or told, timeout=6 if why_not else 4)

    async def _put_question(self, screen: QuestionScreen) -> None:
        await self.push_screen(screen)
        self._show_everywhere()

    def action_next_theme(self) -> None:
        theme = self._themes.after(self.theme)
        self.use_theme(theme)
        self.clear_notifications()
        self.notify(f"Theme: {theme.name}", markup=False, timeout=2)

    def use_theme(self, theme: Theme) -> None:
        """Paint everything in this theme."""
        self.theme = theme.name
        self.paint = Paint(theme, in_ascii=self.options.ascii)
        for screen in self.screen_stack if self.is_running else ():
            if isinstance(screen, PaintedScreen):
                screen.use(self.paint)

    def _suited_theme(self) -> str:
        if self.no_color:
            return "mono"
        return "sixteen" if self.console.color_system == "standard" else "night"

    def _made(self, screen: type[_Painted]) -> _Painted:
        return screen(self.keys, self.paint, read_only=self._read_only)


def _suited_screen(snapshot: Snapshot) -> type[PaintedScreen]:
    if something_found(snapshot.attachment):
        return MainScreen
    return ChooseScreen if snapshot.choices else StartScreen


def something_found(attachment: Attachment) -> bool:
    """Whether there is anything to watch."""
    found = (
        attachment.log,
        attachment.checkpoints,
        attachment.container,
        attachment.driver_pid,
        attachment.job,
        *attachment.engines,
    )
    return any(thing is not None for thing in found)
