"""The command line of Docker's client, read: which container it is the client of.

A value cannot be told from an option's name alone, so the switches of each command are listed; all
other options take a value.
"""

from __future__ import annotations

import posixpath
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain

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
_YES = ("", "true", "1", "t", "T", "TRUE", "True")
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
    removes: bool = False
    """`--rm`: Docker removes the container when it ends."""

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
    at = _verb_at(argv)
    if at is None:
        return None
    verb, words = argv[at], tuple(argv[at + 1 : _MOST_WORDS])
    given, end = _options(words, _SWITCHES[verb])
    rest = words[end:]
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
        removes=_last(given, "rm", "false") in _YES,
    )


def is_detached(argv: Sequence[str]) -> bool:
    """Whether it is a client that starts something and leaves it: `docker run -d`."""
    at = _verb_at(argv)
    if at is None or argv[at] not in ("run", "exec"):
        return False
    return not _stays(argv[at], _options(tuple(argv[at + 1 :]), _SWITCHES[argv[at]])[0])


def without_terminal(argv: Sequence[str]) -> tuple[str, ...]:
    """The same client, able to start where there is no terminal to type at.

    With `-i` and `-t` Docker refuses to start there. Only `-i` is taken out: the container keeps
    the terminal of its own that it had, so that what it prints looks the same.
    """
    at = _verb_at(argv)
    if at is None or argv[at] not in ("run", "exec"):
        return tuple(argv)
    words = tuple(argv[at + 1 :])
    switches = _SWITCHES[argv[at]]
    given, end = _options(words, switches)
    if given.keys().isdisjoint(("t", "tty")):
        return tuple(argv)
    options = {index for index, _, _ in _each_option(words, switches)}
    kept = (
        _without_interactive(word, switches) if index in options else (word,)
        for index, word in enumerate(words[:end])
    )
    return (*argv[: at + 1], *chain.from_iterable(kept), *words[end:])


def _verb_at(argv: Sequence[str]) -> int | None:
    """Where the word is that says what the client does, None for one that is not known."""
    if not argv or posixpath.basename(argv[0]) != "docker":
        return None
    at = 1 + _options(tuple(argv[1:_MOST_WORDS]), _GLOBAL_SWITCHES)[1]
    if tuple(argv[at : at + 1]) == ("container",):
        at += 1
    return at if at < len(argv) and argv[at] in _SWITCHES else None


def _without_interactive(word: str, switches: frozenset[str]) -> tuple[str, ...]:
    """The option without `-i`; nothing when nothing is left of it."""
    if word.startswith("--"):
        return () if word.partition("=")[0] == "--interactive" else (word,)
    letters = word[1:]
    if letters.partition("=")[0] == "i":
        return ()
    end = next((at for at, letter in enumerate(letters) if letter not in switches), len(letters))
    return (f"-{letters[:end].replace('i', '')}{letters[end:]}",)


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
    end = 0
    for index, options, takes_next in _each_option(words, switches):
        for name, value in options:
            given.setdefault(name, []).append(value)
        end = index + 1 + takes_next
    if words[end : end + 1] == ("--",):
        end += 1
    return given, min(end, len(words))


def _each_option(
    words: Sequence[str], switches: frozenset[str]
) -> Iterator[tuple[int, tuple[tuple[str, str], ...], bool]]:
    """Each word of options: where it is, what it gives, and whether the next word is its value."""
    index = 0
    while index < len(words) and words[index].startswith("-") and words[index] not in ("-", "--"):
        word = words[index]
        following = words[index + 1] if index + 1 < len(words) else ""
        if word.startswith("--"):
            name, equals, value = word[2:].partition("=")
            takes_next = not equals and name not in switches
            before: tuple[tuple[str, str], ...] = ()
        else:
            before, name, value, takes_next = _short(word[1:], switches)
        yield index, (*before, (name, following if takes_next else value)), takes_next
        index += 1 + takes_next


def _short(
    letters: str, switches: frozenset[str]
) -> tuple[tuple[tuple[str, str], ...], str, str, bool]:
    """`-itv/a:/b`: switches up to a letter that takes the rest, or the next word, as its value."""
    for place, letter in enumerate(letters):
        if letter not in switches:
            before = tuple((each, "") for each in letters[:place])
            value = letters[place + 1 :].removeprefix("=")
            return before, letter, value, not value
    return tuple((each, "") for each in letters[:-1]), letters[-1], "", False


def _last(given: Mapping[str, list[str]], name: str, default: str = "") -> str:
    return given.get(name, [default])[-1]


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
