"""What a launch script kills by name, and whom that would hit beside its own run.

Miles' launchers and examples run `pkill -9 sglang`, `ray stop --force`, `pkill -9 python` and the
like before a start. `pkill` matches a process's name, cut to 15 characters, or with `-f` its whole
command line, its own shell's included.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from tui.model.launch import Process

_KILL = re.compile(
    r"\b(?P<program>pkill|killall)\s+(?P<flags>(?:-{1,2}[\w=-]+\s+)*)(?P<pattern>'[^']+'|\"[^\"]+\"|[^\s;&|#)]+)"
)
_RAY_STOP = re.compile(r"\bray\s+stop\b")
_RAY_NAMES = ("raylet", "ray::", "gcs_server", "dashboard", "log_monitor", "monitor.py")
"""`ray stop` ends whatever has one of these names in this pid namespace, whoever started it."""
_NAME_CHARS = 15


@dataclass(frozen=True, slots=True, kw_only=True)
class Kill:
    """One `pkill` or `killall`."""

    pattern: str
    full: bool = False
    """`-f`: the whole command line is searched."""
    exact: bool = False
    """`-x`, or `killall`: the whole name has to match."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cleanup:
    """All that a script kills by name."""

    kills: tuple[Kill, ...] = ()
    stops_ray: bool = False

    def hits(self, process: Process) -> bool:
        """Whether this process would be ended."""
        if self.stops_ray and any(name in process.title for name in _RAY_NAMES):
            return True
        return any(_matches(kill, process.title) for kill in self.kills)


def cleanup_of(script: str) -> Cleanup:
    """What the text of a script, or of one command, kills by name."""
    kills = []
    for match in _KILL.finditer(script):
        flags = match["flags"].split()
        kills.append(
            Kill(
                pattern=match["pattern"].strip("'\""),
                full=any(flag in ("-f", "--full") for flag in flags),
                exact=match["program"] == "killall" or any(f in ("-x", "--exact") for f in flags),
            )
        )
    return Cleanup(kills=tuple(kills), stops_ray=_RAY_STOP.search(script) is not None)


def strangers_hit(
    cleanup: Cleanup, processes: Iterable[Process], own: Iterable[int]
) -> tuple[Process, ...]:
    """The processes that would be ended and are not of the run itself."""
    mine = frozenset(own)
    return tuple(each for each in processes if each.pid not in mine and cleanup.hits(each))


def ends_its_own_shell(command: str) -> bool:
    """`bash -c "pkill -f X; …"` holds X in its own command line: what follows never runs."""
    return any(_matches(kill, command) for kill in cleanup_of(command).kills if kill.full)


def _matches(kill: Kill, title: str) -> bool:
    words = title.split()
    name = words[0].rsplit("/", 1)[-1][:_NAME_CHARS] if words else ""
    searched = title if kill.full else name
    try:
        pattern = re.compile(kill.pattern)
    except re.error:
        return kill.pattern in searched
    if kill.exact:
        return pattern.fullmatch(searched) is not None
    return pattern.search(searched) is not None
