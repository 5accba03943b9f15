"""Lines that tell why a run ends. What Ray guesses after a death is no clue."""

from __future__ import annotations

import re

from tui.model.events import ClueKind

_GUESSES = re.compile(r"Some common causes(?: include)?:|There are some potential root causes")
"""From here on Ray lists what kills workers in general; the words in it mean nothing."""

_IDS = re.compile(
    r"(?:Lease|Worker|Node) ID: [0-9a-f]{8,64} |Worker (?:IP address|port): \S{1,64} "
    r"|To troubleshoot the problem, check the logs for the dead worker\. "
)

_CLUES: tuple[tuple[ClueKind, re.Pattern[str]], ...] = tuple(
    (kind, re.compile("|".join(patterns)))
    for kind, patterns in {
        ClueKind.QUOTA: (r"\[Errno 122\]", r"Disk quota exceeded", r"\bEDQUOT\b"),
        ClueKind.DISK_FULL: (
            r"\[Errno 28\]",
            r"No space left on device",
            r"unexpected pos \d+ vs \d+",
            r"PytorchStreamWriter failed",
            r"file write failed",
        ),
        ClueKind.SEGFAULT: (
            r"Segfault encountered",
            r"Segmentation fault",
            r"Fatal Python error: (?:Segmentation|Bus)",
            r"\*\*\* SIG(?:SEGV|BUS|ABRT)",
        ),
        ClueKind.GPU_LOST: (
            r"GPU (?:is lost|has fallen off the bus)",
            r"CUDA error: (?:device-side|unspecified launch failure|an illegal memory access)",
            r"Driver/library version mismatch",
        ),
        ClueKind.GPU_MEMORY: (
            r"CUDA out of memory",
            r"torch\.OutOfMemoryError",
            r"cudaErrorMemoryAllocation",
            r"CUDA error: out of memory",
        ),
        ClueKind.HOST_MEMORY: (
            r"killed due to memory pressure",
            r"ray\.exceptions\.OutOfMemoryError",
            r"[Oo]ut of memory: Killed process",
            r"Cannot allocate memory",
        ),
        ClueKind.THREAD_LIMIT: (
            r"thread: Resource temporarily unavailable",
            r"can't start new thread",
            r"pthread_create failed",
        ),
        ClueKind.BAD_ARGUMENTS: (
            r"error: (?:unrecognized arguments|the following arguments are required|argument )",
        ),
        ClueKind.STALE_RAY: (
            r"Failed to connect to the default Ray cluster address",
            r"Could not find any running Ray instance",
            r"Failed to connect to GCS",
        ),
        ClueKind.PORT_TAKEN: (
            r"is already in use — a stale router",
            r"[Aa]ddress already in use",
            r"is used by a process already",
        ),
        ClueKind.CHECKPOINT: (
            r"CheckpointException",
            r"RuntimeError: PytorchStreamReader failed",
        ),
        ClueKind.CONVERTER: (r"No such file or directory: '[^']{1,1000}/common\.pt'",),
        ClueKind.RETRIES: (r"Max retries \(\d+\) reached",),
        ClueKind.WORKER_DIED: (
            r"A worker died or was killed",
            r"ActorDiedError",
            r"The actor is dead because",
            r"Fatal async misuse",
        ),
    }.items()
)
_NEEDLES = (
    *("rr", "pace", "uota", "QUOT", "ailed", "ault", "SIG", "GPU", "CUDA", "mismatch", "emory"),
    *(
        "thread",
        "instance",
        "No such",
        "unexpected",
        "already",
        "xception",
        "etries",
        "worker",
        "actor",
    ),
    *("async", "in use"),
)
"""Every pattern holds one of these: most lines are done with after a few searches."""
EXCEPTION = re.compile(
    r"(?:[A-Za-z_][\w.]{0,120}\.)?[A-Z]\w{0,80}"
    r"(?:Error|Exception|Exit|Interrupt|Died|Timeout|Expired|Warning)\b"
)
TRACEBACK = "Traceback (most recent call last):"


def without_guesses(text: str) -> str:
    """The text up to Ray's list of usual suspects."""
    guess = _GUESSES.search(text)
    return text if guess is None else text[: guess.start()]


def without_ids(text: str) -> str:
    """The text without the long ids Ray puts into it: nobody can use them here."""
    return _IDS.sub("", text)


def clue_in(text: str) -> ClueKind | None:
    """What the line suggests about a cause, None when nothing."""
    if not any(needle in text for needle in _NEEDLES):
        return None
    told = without_guesses(text)
    for kind, pattern in _CLUES:
        if pattern.search(told):
            return kind
    return None


def is_exception(text: str) -> bool:
    """The last line of a traceback: an exception's name at the start of the line."""
    return EXCEPTION.match(text) is not None
