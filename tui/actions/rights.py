"""Whether another process may remove a file from a folder, by what the kernel tells of both."""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

from tui.probes.memory import Mount, mount_of, mounts

_OVERRIDES = 1 << 1 | 1 << 3
"""CAP_DAC_OVERRIDE and CAP_FOWNER."""
_WRITE_AND_ENTER = 0o3


def removal_fault(pid: int, folder: str, status: os.stat_result) -> str:
    """Why a process could not remove a file that we put into a folder; empty where it could.

    Args:
        pid: the process.
        folder: the path of the folder as the process sees it.
        status: of the same folder, as we see it.

    Raises:
        OSError: the process may not be looked at, or is gone.
    """
    if mount_seen_by(pid, folder, status.st_dev).read_only:
        return f"{folder} is mounted read-only where the run is"
    told = _told_of(pid)
    user = int(told["Uid"].split()[3])
    if int(told["CapEff"], 16) & _OVERRIDES == _OVERRIDES and _is_mapped(pid, status.st_uid):
        return ""
    groups = {int(group) for group in (told["Gid"].split()[3], *told["Groups"].split())}
    if _bits(status, user, groups) & _WRITE_AND_ENTER != _WRITE_AND_ENTER:
        return f"the run's user ({user}) may not remove a file from {folder}"
    # As root we give the file to that user.
    is_ours_to_remove = user in (status.st_uid, os.geteuid()) or os.geteuid() == 0
    if status.st_mode & stat.S_ISVTX and not is_ours_to_remove:
        return f"the run's user ({user}) may not remove a file of yours from {folder}"
    return ""


def mount_seen_by(pid: int, folder: str, device: int) -> Mount:
    """The mount that a process sees a folder on. Raises OSError."""
    table = Path(f"/proc/{pid}/mountinfo").read_bytes().decode(errors="surrogateescape")
    return mount_of(Path(folder), device, mounts(table))


def user_of(pid: int) -> tuple[int, int]:
    """The user and group that files of a process belong to. Raises OSError."""
    told = _told_of(pid)
    return int(told["Uid"].split()[3]), int(told["Gid"].split()[3])


def _told_of(pid: int) -> Mapping[str, str]:
    text = Path(f"/proc/{pid}/status").read_text(encoding="utf-8", errors="replace")
    return dict(line.split(":", 1) for line in text.splitlines() if ":" in line)


def _is_mapped(pid: int, user: int) -> bool:
    """Whether a user exists in the process' user namespace: its powers end there."""
    lines = Path(f"/proc/{pid}/uid_map").read_text(encoding="ascii").splitlines()
    ranges = (tuple(map(int, line.split())) for line in lines)
    return any(first <= user < first + count for _, first, count in ranges)


def _bits(status: os.stat_result, user: int, groups: set[int]) -> int:
    if status.st_uid == user:
        return status.st_mode >> 6
    return status.st_mode >> 3 if status.st_gid in groups else status.st_mode
