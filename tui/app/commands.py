"""Every command there is, written once: keys, footer, help, palette and overrides read this table.

Keys are plain letters, digits, arrows and the like. What also has a control key has it as a second
way, since multiplexers, flow control and job control take some of those away.
"""

from __future__ import annotations

from tui.app.acts import ACTS, ANSWERS
from tui.app.command import Command, Where
from tui.view.layout import Pane

_PANE_TITLES = ("the GPU", "the steps", "the engines", "the checkpoints", "the alerts", "the log")

COMMANDS = (
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
    *ACTS,
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
        sentence="Leave what is open: the filter, the zoom, this page, the verify.",
        action="screen.back",
        where=Where.ANYWHERE,
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
        where=Where.ANYWHERE,
    ),
    Command(
        name="down",
        keys=("down",),
        label="down",
        sentence="Move down in this pane: a line, or a checkpoint.",
        action="screen.move(1)",
        where=Where.ANYWHERE,
    ),
    Command(
        name="page-up",
        keys=("pageup",),
        label="page up",
        sentence="Move up by a page.",
        action="screen.move_pages(-1)",
        where=Where.ANYWHERE,
    ),
    Command(
        name="page-down",
        keys=("pagedown",),
        label="page down",
        sentence="Move down by a page.",
        action="screen.move_pages(1)",
        where=Where.ANYWHERE,
    ),
    Command(
        name="first",
        keys=("home",),
        label="first",
        sentence="Go to the beginning of this pane.",
        action="screen.first",
        where=Where.ANYWHERE,
    ),
    Command(
        name="last",
        keys=("end",),
        label="last",
        sentence="Go to the end of this pane.",
        action="screen.last",
        where=Where.ANYWHERE,
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
        name="verify",
        keys=("v",),
        label="verify",
        sentence="Read every byte of the selected checkpoint; again to stop that.",
        action="app.verify",
        where=Where.CHECKPOINT,
        footer_rank=10,
    ),
    Command(
        name="order",
        keys=("o",),
        label="order",
        sentence="Sort the checkpoints by their next column.",
        action="screen.order",
        footer_rank=11,
    ),
    *ANSWERS,
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
        name="pause-guard",
        keys=("p",),
        label="pause guard",
        sentence="Keep the guard from acting, whatever it sees; again: let it.",
        action="app.pause_guard",
    ),
    Command(
        name="palette",
        keys=(":",),
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
)


def available(*, read_only: bool) -> tuple[Command, ...]:
    """The commands a person can have."""
    return tuple(command for command in COMMANDS if not (read_only and command.dangerous))
