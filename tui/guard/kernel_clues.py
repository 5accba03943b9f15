"""What lines of the kernel, and of those who act on memory and power, tell of an end. Pure."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum


class KernelClue(StrEnum):
    """What a line witnesses. An NVRM memory line also comes in runs that go well."""

    ORDERLY = "shut down in order"
    PANIC = "kernel panic"
    HEAT = "critical temperature"
    HOST_OOM = "host out of memory"
    CONTAINER_OOM = "container over its memory limit"
    USER_OOM = "ended for memory by a watchdog"
    LOCKUP = "lockup"
    HARDWARE = "hardware error"
    GPU_FAULT = "GPU fault"
    GPU_MEMORY = "GPU driver could not have memory"
    DISK = "disk error"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelLine:
    """A line that tells something."""

    at: float
    text: str
    clue: KernelClue
    pid: int | None = None
    """Of the process that was killed."""
    name: str = ""
    """Its name, cut to 15 characters by the kernel."""


_CLUES: tuple[tuple[KernelClue, re.Pattern[str]], ...] = tuple(
    (clue, re.compile(pattern))
    for clue, pattern in (
        (KernelClue.PANIC, r"Kernel panic"),
        (KernelClue.HEAT, r"critical temperature reached|HARDWARE PROTECTION shutdown"),
        (
            KernelClue.ORDERLY,
            r"^reboot: |System is (?:rebooting|powering down|halting)"
            r"|The system will (?:reboot|power off|halt) now|Received SIGTERM from PID 1 "
            r"|Reached target (?:\S+ - )?System (?:Reboot|Power Off|Shutdown|Halt)",
        ),
        (
            KernelClue.CONTAINER_OOM,
            r"Memory cgroup out of memory: Killed process (?P<pid>\d+) \((?P<name>[^)]*)\)",
        ),
        (
            KernelClue.HOST_OOM,
            r"Out of memory(?: \(\w+\))?: Killed process (?P<pid>\d+) \((?P<name>[^)]*)\)",
        ),
        (
            KernelClue.USER_OOM,
            r'sending SIG(?:TERM|KILL) to process (?P<pid>\d+)[^"]{0,40}"(?P<name>[^"]*)"'
            r"|Killed \S+ due to memory (?:pressure|used)",
        ),
        (
            KernelClue.LOCKUP,
            r"soft lockup|hard LOCKUP|blocked for more than \d+ seconds|detected stalls? on CPU",
        ),
        (KernelClue.HARDWARE, r"\[Hardware Error\]|Machine check|AER: .*[Ff]atal"),
        (KernelClue.GPU_MEMORY, r"NV_ERR_NO_MEMORY"),
        (KernelClue.GPU_FAULT, r"NVRM: Xid|fallen off the bus|NVRM: .*GPU .*(?:lost|reset)"),
        (
            KernelClue.DISK,
            r"I/O error, dev|Remounting filesystem read-only|EXT4-fs error|nvme\S* .*timeout",
        ),
    )
)


def kernel_line(at: float, text: str) -> KernelLine | None:
    """What the line witnesses, None when nothing."""
    for clue, pattern in _CLUES:
        found = pattern.search(text)
        if found is not None:
            named = found.groupdict()
            pid = named.get("pid")
            return KernelLine(
                at=at,
                text=text,
                clue=clue,
                pid=int(pid) if pid else None,
                name=named.get("name") or "",
            )
    return None
