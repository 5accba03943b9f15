"""The command line of Docker's client, read: which container it is the client of.

A value cannot be told from an option's name alone, so the switches of each command are listed; all
other options take a value.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

_GLOBAL_SWITCHES = frozenset(("D", "debug", "tls", "tlsverify", "v", "version", "help"))
_SWITCHES: Mapping[str, frozenset[str]] = {
    "run": frozenset(
        (
            "d", "detach", "i", "interactive", "t", "tty", "P", "publish-all", "q", "quiet", "rm",
            "init", "privileged", "read-only", "no-healthcheck", "oom-kill-disable", "sig-proxy",
            "disable-content-trust", "use-api-socket", "help",
        )
    ),
    "exec": frozenset(("d", "detach", "i", "interactive", "t", "tty", "privileged", "help")),
    "start": frozenset(("a", "attach", "i", "interactive", "help")),
    "attach": frozenset(("no-stdin", "sig-proxy", "help")),
    "logs": frozenset(("f", "follow", "t", "timestamps", "details", "help")),
}  # fmt: skip
_ORDER = tuple(_SWITCHES)
_MOST_WORDS = 4096


@dataclass(frozen=True, slots=True, kw_only=True)
class DockerCommand:
    """A client that stays as long as its container prints."""

    verb: str
    """`run`, `exec`, `start`, `attach` or `logs`."""
    container: str = ""
    """Name or id, as typed; empty: Docker made a name up."""
    cidfile: str = ""
    """The file that the container's id was written to."""
    image: str = ""
    """As typed; of `run` only."""
    command: tuple[str, ...] = field(default=(), repr=False)
    """What runs inside, where it was typed; it may hold secrets."""
    mounts: tuple[tuple[str, str], ...] = ()
    """(host path, container path) pairs of `run`."""

    @property
    def rank(self) -> int:
        """Which of several clients of one container tells its run's output best; 0 does."""
        return _ORDER.index(self.verb)


def docker_command(argv: Sequence[str], cwd: str = "") -> DockerCommand | None:
    """What a client does, None for other programs and for clients that end at once.

    Args:
        argv: its words.
        cwd: the folder that relative paths in them begin at.
    """
    if not argv or posixpath.basename(argv[0]) != "docker":
        return None
    words = tuple(argv[1:_MOST_WORDS])
    words = words[_options(words, _GLOBAL_SWITCHES)[1] :]
    if words[:1] == ("container",):
        words = words[1:]
    if not words or words[0] not in _SWITCHES:
        return None
    verb = words[0]
    given, end = _options(words[1:], _SWITCHES[verb])
    rest = words[1 + end :]
    if not rest or not _stays(verb, given):
        return None
    if verb != "run":
        return DockerCommand(verb=verb, container=rest[0], command=rest[1:])
    return DockerCommand(
        verb=verb,
        container=_last(given, "name"),
        cidfile=_absolute(_last(given, "cidfile"), cwd),
        image=rest[0],
        command=rest[1:],
        mounts=_mounts(given, cwd),
    )


def _stays(verb: str, given: Mapping[str, list[str]]) -> bool:
    match verb:
        case "start":
            return not given.keys().isdisjoint(("a", "attach", "i", "interactive"))
        case "logs":
            return not given.keys().isdisjoint(("f", "follow"))
        case _:
            return given.keys().isdisjoint(("d", "detach"))


def _options(words: Sequence[str], switches: frozenset[str]) -> tuple[dict[str, list[str]], int]:
    """The options before the first word that is none, and where that word is."""
    given: dict[str, list[str]] = {}
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] != "-":
        word = words[index]
        index += 1
        if word == "--":
            break
        following = words[index] if index < len(words) else ""
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            takes_next = not equals and name not in switches
        else:
            name, value, takes_next = _short(word[1:], switches, given)
        given.setdefault(name, []).append(following if takes_next else value)
        index += takes_next
    return given, min(index, len(words))


def _short(
    letters: str, switches: frozenset[str], given: dict[str, list[str]]
) -> tuple[str, str, bool]:
    """`-itv/a:/b`: switches up to a letter that takes the rest, or the next word, as its value."""
    for place, letter in enumerate(letters):
        if letter not in switches:
            value = letters[place + 1 :].removeprefix("=")
            return letter, value, not value
        given.setdefault(letter, []).append("")
    return letters[-1], "", False


def _last(given: Mapping[str, list[str]], name: str) -> str:
    return given.get(name, [""])[-1]


def _mounts(given: Mapping[str, list[str]], cwd: str) -> tuple[tuple[str, str], ...]:
    pairs = [volume.split(":")[:2] for name in ("v", "volume") for volume in given.get(name, ())]
    for mount in given.get("mount", ()):
        parts = dict(part.partition("=")[::2] for part in mount.split(","))
        source = parts.get("source") or parts.get("src", "")
        target = parts.get("target") or parts.get("destination") or parts.get("dst", "")
        pairs.append([source, target])
    return tuple(
        (_absolute(pair[0], cwd), pair[1])
        for pair in pairs
        if len(pair) == 2 and pair[1] and pair[0].startswith(("/", "."))
    )


def _absolute(path: str, cwd: str) -> str:
    return posixpath.normpath(posixpath.join(cwd, path)) if path else ""
