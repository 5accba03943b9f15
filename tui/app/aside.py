"""Work that may block, beside the loop: done on a thread of its own, its answer told to the loop.

The thread is a daemon: nobody waits for it at the end.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

from textual.app import App

_LOG = logging.getLogger("milepost")
_Answer = TypeVar("_Answer")


def aside(
    app: App[Any],
    work: Callable[[], _Answer],
    then: Callable[[_Answer], object],
    failed: Callable[[str], _Answer],
) -> None:
    """Do the work, and call `then` with its answer in the loop. Returns at once.

    Args:
        app: whose loop it is.
        work: may block for as long as it likes.
        then: takes the answer.
        failed: what the answer is when the work has a fault of ours.
    """

    def run() -> None:
        try:
            answer = work()
        except Exception as fault:  # noqa: BLE001 - a person waits for an answer, whatever broke
            _LOG.exception("work beside the loop failed")
            answer = failed(f"{type(fault).__name__}: {fault}")
        # The loop may have ended meanwhile.
        with suppress(RuntimeError):
            app.call_later(then, answer)

    threading.Thread(target=run, name="aside", daemon=True).start()
