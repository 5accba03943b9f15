"""What a person chose for the screen, from the command line and the configuration."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True, kw_only=True)
class ScreenOptions:
    """Every choice has a default that suits an SSH session."""

    theme: str | None = None
    """None: the one that suits the terminal."""
    theme_folder: Path | None = None
    """Where the user's own themes lie; it need not exist."""
    ascii: bool = False
    """Draw with ASCII only. A terminal that is not UTF-8 is drawn to like this anyway."""
    mouse: bool = True
    read_only: bool = False
    """Dangerous commands are neither bound nor shown."""
    keys: Mapping[str, str] = field(default_factory=dict)
    """The user's own keys: command name to a key, or several with commas between."""
