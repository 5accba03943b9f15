"""`python -m tui.demo`: a simulated run in the foreground, its log on stdout."""

from __future__ import annotations

import os
import stat
import sys
import threading

from tui.demo import pace, settings
from tui.demo.console import Console
from tui.demo.driver import run


def main() -> None:
    pace.block_stop_signals()
    chosen = settings.parsed(sys.argv[1:])
    chosen.directory.mkdir(parents=True, exist_ok=True)
    if chosen.leash and stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode):
        threading.Thread(target=_hold_leash, daemon=True, name="leash").start()
    sys.stdout.reconfigure(encoding="utf-8")  # type: ignore[union-attr]
    try:
        code = run(chosen, Console(sys.stdout), pace.Pace(chosen.speed))
    except pace.StopRequested as stop:
        pace.die_by(stop.number)
        raise
    sys.exit(code)


def _hold_leash() -> None:
    sys.stdin.buffer.read()
    pace.request_stop()


if __name__ == "__main__":
    main()
