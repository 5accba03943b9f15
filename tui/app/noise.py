"""What libraries would print while the screen is open: kept, not shown, told at the end."""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

_KEPT = 200


class Held(logging.Handler):
    """Log records and Python warnings, the newest ones."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.lines: deque[str] = deque(maxlen=_KEPT)

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.name}: {record.getMessage()}")


@contextmanager
def held_back() -> Iterator[Held]:
    """Hold back warnings and log records of the whole process for as long as the block runs."""
    root = logging.getLogger()
    before, held = root.handlers[:], Held()
    root.handlers[:] = [held]
    logging.captureWarnings(capture=True)
    try:
        yield held
    finally:
        logging.captureWarnings(capture=False)
        root.handlers[:] = before
