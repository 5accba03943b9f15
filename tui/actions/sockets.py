"""Who listens on a port: the kernel's table of sockets, and the process that holds each."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
_LISTENS = "0A"
_SOCKET = re.compile(r"socket:\[(\d+)\]")


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One socket that takes connections, in our network namespace."""

    port: int
    pid: int
    """0: whose it is may not be seen."""


def listeners(ports: Collection[int]) -> tuple[Listener, ...]:
    """Who listens on these ports, on whatever address; one entry a port and process."""
    inodes = {
        inode: port
        for name in ("tcp", "tcp6")
        for port, inode in _listening(_text(_PROC / "net" / name))
        if port in ports
    }
    if not inodes:
        return ()
    held = tuple(_holders(inodes))
    unseen = set(inodes.values()) - {each.port for each in held}
    found = {*held, *(Listener(port=port, pid=0) for port in unseen)}
    return tuple(sorted(found, key=lambda each: (each.port, each.pid)))


def _listening(table: str) -> Iterator[tuple[int, int]]:
    """(port, inode) of every listening socket in a table like `/proc/net/tcp`."""
    for line in table.splitlines()[1:]:
        fields = line.split()
        if len(fields) > 9 and fields[3] == _LISTENS:
            yield int(fields[1].rpartition(":")[2], 16), int(fields[9])


def _holders(inodes: Mapping[int, int]) -> Iterator[Listener]:
    for folder in _PROC.iterdir():
        if not folder.name.isdecimal():
            continue
        with suppress(OSError):  # gone, or another user's
            for link in (folder / "fd").iterdir():
                with suppress(OSError):
                    socket = _SOCKET.fullmatch(str(link.readlink()))
                    if socket and (port := inodes.get(int(socket[1]))) is not None:
                        yield Listener(port=port, pid=int(folder.name))


def _text(file: Path) -> str:
    try:
        return file.read_text(encoding="ascii", errors="replace")
    except OSError:
        return ""
