"""How much of a file the kernel holds in its page cache."""

from __future__ import annotations

import ctypes
import mmap
from pathlib import Path


def resident_bytes(path: Path) -> int:
    """Asked of a mapping of it, which reads nothing."""
    size = path.stat().st_size
    if not size:
        return 0
    flags = (ctypes.c_ubyte * -(-size // mmap.PAGESIZE))()
    with path.open("rb") as file, mmap.mmap(file.fileno(), size, mmap.MAP_PRIVATE) as mapped:
        address = ctypes.addressof(ctypes.c_char.from_buffer(mapped))
        failed = ctypes.CDLL(None).mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), flags)
    assert not failed
    return bytes(flags).count(1) * mmap.PAGESIZE
