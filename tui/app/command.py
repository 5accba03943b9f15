"""What a command is, and where it works."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class Where(StrEnum):
    """What a command acts on."""

    ANYWHERE = "anywhere"
    PANES = "panes"
    """The main screen and its panes."""
    CHECKPOINT = "checkpoint"
    """The checkpoint under the cursor, or the one on its page."""
    HELP = "help"
    START = "start"
    """The screen of a person who has no run."""
    CHOICE = "choice"
    """The list of runs, where there are several."""
    QUESTION = "question"
    """What has to be confirmed before it is done."""
    ACTIONS = "actions"
    """What was done to the run, and what is being done."""

    def meets(self, other: Where) -> bool:
        """Whether some screen takes the commands of both."""
        both = {self, other}
        return len(both) == 1 or Where.ANYWHERE in both or both == {Where.PANES, Where.CHECKPOINT}


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
    short_label: str = ""
    """In a footer without room."""
