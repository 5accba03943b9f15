"""Reading the start of a file that may be anything."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path


def read_start(path: Path, limit_bytes: int) -> tuple[bytes, os.stat_result]:
    """Status and first bytes of a regular file, one more than the limit where there are more."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "not a regular file", str(path))
        return os.pread(descriptor, min(limit_bytes, status.st_size) + 1, 0), status
    finally:
        os.close(descriptor)
