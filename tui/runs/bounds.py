"""Limits, umask and priorities of a process, as `/proc` and the kernel tell them."""

from __future__ import annotations

import os
import resource
from contextlib import suppress
from pathlib import Path

from tui.model.recipe import Bounds

_NAMES = tuple(
    name.removeprefix("RLIMIT_")
    for name in sorted(dir(resource))
    if name.startswith("RLIMIT_") and name != "RLIMIT_OFILE"  # another name of NOFILE
)


def bounds_of(pid: int) -> Bounds | None:
    """What that process has; None where it is gone or another user's."""
    with suppress(OSError, ValueError):
        status = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
        return Bounds(
            limits=tuple((name, *limits_of(pid, name)) for name in _NAMES),
            umask=int(status.partition("\nUmask:")[2].split()[0], 8),
            nice=os.getpriority(os.PRIO_PROCESS, pid),
            oom_score_adj=int(Path(f"/proc/{pid}/oom_score_adj").read_text(encoding="ascii")),
        )
    return None


def limits_of(pid: int, name: str) -> tuple[int, int]:
    """Soft and hard; -1: none. Raises OSError; pid 0: we ourselves."""
    return resource.prlimit(pid, getattr(resource, f"RLIMIT_{name}"))
