"""Every command there is, written once: keys, footer, help, palette and overrides read this table.

Keys are plain letters, digits, arrows and the like. What also has a control key has it as a second
way, since multiplexers, flow control and job control take some of those away.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tui.view.layout import Pane


class Where(StrEnum):
    """What a command acts on."""

    ANYWHERE = "anywhere"
    PANES = "panes"
    """The main screen and its panes."""
    HELP = "help"
    START = "start"
    """The screen of a person who has no run."""
    CHOICE = "choice"
    """The list of runs, where there are several."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Command:
    """One thing a person can ask for."""

    name: str
    """As in the configuration's `[keys]`."""
    keys: tuple[str, ...]
    """Its keys unless the person chose others, by Textual's names."""
    label: str
    """In the footer."""
    sentence: str
    """In the help and the palette."""
    action: str
    """Textual's action."""
    where: Where = Where.PANES
    fixed_keys: tuple[str, ...] = ()
    """Keys it always has."""
    dangerous: bool = False
    """Changes the world. Not to be had in read-only mode."""
    footer_rank: int | None = None
    """Place in the footer by importance, the lowest stays longest; None: not shown there."""


_PANE_TITLES = ("the GPU", "the steps", "the engines", "the checkpoints", "the alerts", "the log")

COMMANDS = (
    *(
        Command(
            name=f"pane-{number}",
            keys=(str(number),),
            label="pane",
            sentence=f"Go to {title}.",
            action=f"screen.open_pane({pane.value!r})",
            footer_rank=3,
        )
        for number, (pane, title) in enumerate(zip(Pane, _PANE_TITLES, strict=True), 1)
    ),
    Command(
        name="next-pane",
        keys=("tab",),
        label="next pane",
        sentence="Go to the next pane.",
        action="screen.next_pane(1)",
    ),
    Command(
        name="previous-pane",
        keys=("shift+tab",),
        label="previous pane",
        sentence="Go to the previous pane.",
        action="screen.next_pane(-1)",
    ),
    Command(
        name="zoom",
        keys=("z",),
        label="zoom",
        sentence="Give the whole screen to this pane, or take it back.",
        action="screen.zoom",
        footer_rank=5,
    ),
    Command(
        name="back",
        keys=("escape",),
        label="back",
        sentence="Leave what is open: the filter, the zoom, this page.",
        action="screen.back",
    ),
    Command(
        name="filter",
        keys=("/",),
        label="filter",
        sentence="Show only the log lines that hold a text.",
        action="screen.filter",
        footer_rank=4,
    ),
    Command(
        name="follow",
        keys=("f",),
        label="follow",
        sentence="Go to the log's newest line, and stay with it.",
        action="screen.follow",
        footer_rank=7,
    ),
    Command(
        name="last-error",
        keys=("e",),
        label="last error",
        sentence="Go to the log's last error or warning.",
        action="screen.last_error",
        footer_rank=6,
    ),
    Command(
        name="up",
        keys=("up",),
        label="up",
        sentence="Move up in this pane: a line, or a checkpoint.",
        action="screen.move(-1)",
    ),
    Command(
        name="down",
        keys=("down",),
        label="down",
        sentence="Move down in this pane: a line, or a checkpoint.",
        action="screen.move(1)",
    ),
    Command(
        name="page-up",
        keys=("pageup",),
        label="page up",
        sentence="Move up by a page.",
        action="screen.move_pages(-1)",
    ),
    Command(
        name="page-down",
        keys=("pagedown",),
        label="page down",
        sentence="Move down by a page.",
        action="screen.move_pages(1)",
    ),
    Command(
        name="first",
        keys=("home",),
        label="first",
        sentence="Go to the beginning of this pane.",
        action="screen.first",
    ),
    Command(
        name="last",
        keys=("end",),
        label="last",
        sentence="Go to the end of this pane.",
        action="screen.last",
    ),
    Command(
        name="demo",
        keys=("d",),
        label="demo",
        sentence="Start a simulated run and watch it.",
        action="screen.demo",
        where=Where.START,
        footer_rank=0,
    ),
    Command(
        name="choose",
        keys=("enter",),
        label="watch it",
        sentence="Watch the run under the cursor.",
        action="screen.choose",
        where=Where.CHOICE,
        footer_rank=0,
    ),
    Command(
        name="inspect",
        keys=("i",),
        label="inspect",
        sentence="Show all that is known of the selected checkpoint.",
        action="app.inspect",
        footer_rank=9,
    ),
    Command(
        name="theme",
        keys=("t",),
        label="theme",
        sentence="Change to the next theme.",
        action="app.next_theme",
        where=Where.ANYWHERE,
        footer_rank=8,
    ),
    Command(
        name="palette",
        keys=("p",),
        fixed_keys=("ctrl+p",),
        label="palette",
        sentence="Find a command by its name.",
        action="app.command_palette",
        where=Where.ANYWHERE,
    ),
    Command(
        name="suspend",
        keys=(),
        fixed_keys=("ctrl+z",),
        label="suspend",
        sentence="Return to the shell; `fg` comes back.",
        action="app.suspend_process",
        where=Where.ANYWHERE,
    ),
    Command(
        name="help",
        keys=("?",),
        label="help",
        sentence="Show what every key does.",
        action="app.help",
        where=Where.ANYWHERE,
        footer_rank=1,
    ),
    Command(
        name="quit",
        keys=("q",),
        fixed_keys=("ctrl+c",),
        label="quit",
        sentence="Leave at once. The run goes on.",
        action="app.leave",
        where=Where.ANYWHERE,
        footer_rank=2,
    ),
)


def available(*, read_only: bool) -> tuple[Command, ...]:
    """The commands a person can have."""
    return tuple(command for command in COMMANDS if not (read_only and command.dangerous))
