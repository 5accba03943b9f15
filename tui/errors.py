"""Everything milepost refuses, as one exception tree; each error knows its exit code.

MilepostError
├── UsageError        the command line or a file the user wrote is wrong
├── ConfigError       the configuration or a theme cannot be read
└── NothingFoundError      there is no run, log or folder where one was looked for
"""

from __future__ import annotations

from enum import IntEnum


class ExitCode(IntEnum):
    """What a milepost command tells the shell. Stable: scripts depend on it."""

    WELL = 0
    """Running, starting or finished well; nothing to do."""
    ERROR = 1
    """milepost itself failed."""
    USAGE = 2
    """The command line, the configuration or a file named in them is wrong."""
    DEGRADED = 3
    """Running, with at least one reason for concern."""
    STALLED = 4
    """Alive, but without progress past the limit."""
    ENDED_BADLY = 5
    """Failed, crashed, or ended without having done anything."""
    NOTHING_FOUND = 6
    """No run, log or checkpoint folder was found."""
    UNKNOWN = 7
    """There is a run, but its state cannot be told from what is readable."""
    REFUSED = 8
    """An action was refused, and nothing was changed."""


class MilepostError(Exception):
    """Base of what milepost refuses: a message for a person, and a remedy where one is known."""

    exit_code = ExitCode.ERROR

    def __init__(self, message: str, remedy: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.remedy = remedy

    def __str__(self) -> str:
        return f"{self.message}\n{self.remedy}" if self.remedy else self.message


class UsageError(MilepostError):
    """The command line, or a value in it, is wrong."""

    exit_code = ExitCode.USAGE


class ConfigError(MilepostError):
    """A configuration or theme file cannot be used."""

    exit_code = ExitCode.USAGE


class NothingFoundError(MilepostError):
    """No run, log or folder where one was looked for."""

    exit_code = ExitCode.NOTHING_FOUND
