"""How a screen can end: exit codes as a shell would say them, and one that is a wish."""

from __future__ import annotations

from enum import IntEnum


class Leaving(IntEnum):
    """What `run_app` returns."""

    QUIT = 0
    BROKEN = 1
    """A fault of ours; its traceback was printed."""
    HUNG_UP = 129
    """SIGHUP, or the terminal went away."""
    INTERRUPTED = 130
    TERMINATED = 143
    DEMO_REQUESTED = -1
    """No exit code: the person asked for the demo on the start screen."""
