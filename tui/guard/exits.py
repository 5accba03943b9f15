"""How a run was ended: exit codes told apart by the OOM flag and the kernel's own lines. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from enum import StrEnum

from tui.guard.incidents import Incident
from tui.guard.kernel_clues import KernelClue, KernelLine

_SIGKILL, _SIGSEGV, _SIGTERM = 137, 139, 143
_SIGNALS: Mapping[int, str] = {
    _SIGKILL: "killed by SIGKILL",
    _SIGSEGV: "segmentation fault, SIGSEGV",
    _SIGTERM: "asked to end by SIGTERM",
}
_FLAG_IS_OLD_S = 10.0
"""A flag that was set so long before the end is of something killed earlier."""
_KILLERS: Mapping[KernelClue, str] = {
    KernelClue.CONTAINER_OOM: "its memory limit",
    KernelClue.HOST_OOM: "host OOM",
    KernelClue.USER_OOM: "a watchdog for memory",
}


class Confidence(StrEnum):
    """How far what is said is known."""

    PROVEN = "proven"
    """Somebody who must know says so: the kernel, Docker, the run itself, a clock."""
    LIKELY = "likely"
    """What was seen fits, and nothing else was seen; nobody says that it was the cause."""
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Told:
    """What happened, in words, and how far that is known."""

    words: str
    confidence: Confidence


def end_of_run(incident: Incident, lines: tuple[KernelLine, ...]) -> Told:
    """How the run ended, by the kernel, else by Docker, else by the log, else by the exit code."""
    assert incident.after is not None
    doing = incident.after.doing
    code, ended = _code(doing.exit_code), _ended(_code(doing.exit_code))
    killed = killed_for_memory(incident.roster, lines)
    if killed is not None:
        told = f"{ended}, {killed.words}"
        is_whole = code in (None, _SIGKILL)
        return Told(words=told, confidence=Confidence.PROVEN if is_whole else Confidence.LIKELY)
    if doing.oom_killed and not _is_old(incident):
        if code == _SIGKILL:
            words = f"{ended}, for memory by the container's OOM flag"
            return Told(words=words, confidence=Confidence.PROVEN)
        words = f"{ended}, after a process in it was killed for memory (OOM flag)"
        return Told(words=words, confidence=Confidence.LIKELY)
    if doing.cause and not doing.oom_killed:
        return Told(words=f"{ended}: {doing.cause}", confidence=Confidence.PROVEN)
    if code == _SIGSEGV:
        return Told(words=ended, confidence=Confidence.PROVEN)
    if code == _SIGKILL and doing.container:
        ended += ", with an OOM flag from earlier" if doing.oom_killed else ", without the OOM flag"
    return Told(words=f"{ended}, cause unknown", confidence=Confidence.UNKNOWN)


def killed_for_memory(
    roster: Iterable[tuple[int, str]], lines: Iterable[KernelLine]
) -> Told | None:
    """That one of these processes was, by the newest line that says so."""
    roles = dict(roster)
    for line in reversed(tuple(lines)):
        if line.clue in _KILLERS and line.pid in roles:
            who = f"{roles[line.pid]} {line.pid}"
            words = f"{_KILLERS[line.clue]} by kernel line ({who})"
            return Told(words=words, confidence=Confidence.PROVEN)
    return None


def _code(code: int | None) -> int | None:
    """As a shell says it: a parent is told of signals in negative numbers."""
    return 128 - code if code is not None and code < 0 else code


def _ended(code: int | None) -> str:
    if code is None:
        return "gone, exit code unknown"
    if code in _SIGNALS:
        return f"{_SIGNALS[code]} ({code})"
    return f"ended with exit code {code}"


def _is_old(incident: Incident) -> bool:
    """The flag was up well before the end, so it is of something else."""
    assert incident.after is not None
    return any(
        sample.doing.oom_killed and incident.after.uptime_s - sample.uptime_s > _FLAG_IS_OLD_S
        for sample in incident.before
    )
