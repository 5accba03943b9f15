"""Signals to processes by identity: one whose pid was given to another is never hit.

A pid file descriptor is opened first and the identity read after it. If both are of the wanted
process then the descriptor is too, since a pid stays with its process until that is gone.
"""

from __future__ import annotations

import errno
import os
import signal
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import psutil

from tui.actions.process_table import ProcessRow, kin, read_row, read_table
from tui.model.target import ProcessTarget

_START_SLACK_S = 0.05
_BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


class Delivered(StrEnum):
    """What became of a signal."""

    SENT = "sent"
    GONE = "already gone"
    """A success: what it was to end has ended."""
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class Delivery:
    """One signal to one process."""

    result: Delivered
    reason: str = ""
    """Why it was refused."""


_GONE = Delivery(result=Delivered.GONE)


def target_of(pid: int, title: str = "") -> ProcessTarget | None:
    """The process of this pid as a target, None where there is none that lives."""
    row = read_row(pid)
    if row is None or row.is_gone:
        return None
    return _target(row, boot_id(), title)


def target_started_at(pid: int, started_at: float, title: str = "") -> ProcessTarget | None:
    """The same, for a process that psutil's start time was kept of, in epoch seconds.

    Only for a start time read a moment ago: it moves when the clock of the box is set.
    """
    found = target_of(pid, title)
    try:
        start = psutil.Process(pid).create_time()
    except psutil.Error:
        return None
    same = abs(start - started_at) <= _START_SLACK_S
    return found if same and found is not None and is_alive(found) else None


def is_alive(target: ProcessTarget) -> bool:
    """Whether that very process has not ended."""
    return _row(target, boot_id()) is not None


def send(target: ProcessTarget, number: signal.Signals) -> Delivery:
    """Send it a signal, if it is still there."""
    try:
        descriptor = os.pidfd_open(target.pid)
    except ProcessLookupError:
        return _GONE
    except OSError as error:
        return _refused(target, error)
    try:
        if _row(target, boot_id()) is None:
            return _GONE
        signal.pidfd_send_signal(descriptor, number)
    except ProcessLookupError:
        return _GONE
    except OSError as error:
        return _refused(target, error)
    finally:
        os.close(descriptor)
    return Delivery(result=Delivered.SENT)


def tree_of(roots: Iterable[ProcessTarget]) -> tuple[ProcessTarget, ...]:
    """What lives of them and of all that belongs to them, the roots first.

    That is what is below them, and what is in a session or process group that one of them leads.
    A root that is gone has nothing any more; one that only waits to be reaped still leads.
    """
    table = read_table()
    boot = boot_id()
    titles = {
        root.pid: root.title
        for root in roots
        if (row := table.get(root.pid)) is not None and _is_of(row, root, boot)
    }
    members = kin(table, titles) - {os.getpid()}
    order = (*titles, *sorted(members - titles.keys()))
    return tuple(
        _target(table[pid], boot, titles.get(pid, "")) for pid in order if not table[pid].is_gone
    )


def boot_id() -> str:
    """Of this boot."""
    return _BOOT_ID.read_text(encoding="ascii").strip()


def _target(row: ProcessRow, boot: str, title: str) -> ProcessTarget:
    return ProcessTarget(
        pid=row.pid, start_ticks=row.start_ticks, boot_id=boot, title=title or row.name
    )


def _row(target: ProcessTarget, boot: str) -> ProcessRow | None:
    row = read_row(target.pid)
    return None if row is None or row.is_gone or not _is_of(row, target, boot) else row


def _is_of(row: ProcessRow, target: ProcessTarget, boot: str) -> bool:
    return row.start_ticks == target.start_ticks and boot == target.boot_id


def _refused(target: ProcessTarget, error: OSError) -> Delivery:
    match error.errno:
        case errno.EPERM | errno.EACCES:
            reason = f"process {target.pid} is another user's: act as that user or with sudo"
        case errno.ENOSYS:
            reason = "this kernel cannot signal a process by identity: Linux 5.3 or newer can"
        case _:
            reason = f"process {target.pid}: {error.strerror}"
    return Delivery(result=Delivered.REFUSED, reason=reason)
