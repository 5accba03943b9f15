"""Open the screen, and leave the terminal as it was, however it ends.

Textual reads its settings from the environment when it is imported, so nothing here imports it
before they are made.
"""

from __future__ import annotations

import asyncio
import os
import signal
import sys
import threading
from dataclasses import replace
from typing import TYPE_CHECKING

from tui.app.leaving import Leaving
from tui.app.noise import held_back
from tui.app.options import ScreenOptions
from tui.app.source import ActionDesk, SnapshotSource
from tui.errors import UsageError
from tui.model.text import harmless

if TYPE_CHECKING:
    from tui.app.app import MilepostApp

_SETTINGS = {
    "TEXTUAL_ANIMATIONS": "none",
    "TEXTUAL_FPS": "10",
    "TEXTUAL_SMOOTH_SCROLL": "0",
    "TEXTUAL_DISABLE_KITTY_KEY": "1",  # a lost connection must not leave a shell with strange keys
    "ESCDELAY": "50",
}
_SIGNALS = {
    signal.SIGTERM: Leaving.TERMINATED,
    signal.SIGHUP: Leaving.HUNG_UP,
    signal.SIGINT: Leaving.INTERRUPTED,
}
_STOP_PATIENCE_S = 0.2
_TOLD_LINES = 10


def run_app(source: SnapshotSource, options: ScreenOptions, desk: ActionDesk | None = None) -> int:
    """Show the source's snapshots until the person leaves; a `Leaving`.

    Without a desk nothing can be done to the run.

    Raises UsageError where there is no terminal to draw on, ConfigError for keys or a theme that
    cannot be.
    """
    _refuse_unsuited_terminal()
    _prepare_environment()
    from tui.app.app import MilepostApp
    from tui.app.terminal import AsciiTerminal, Terminal
    from tui.app.themes import all_themes

    shown = replace(options, ascii=options.ascii or not _is_utf8())
    terminal = AsciiTerminal if shown.ascii else Terminal
    themes = all_themes(options.theme_folder)
    app = MilepostApp(source, shown, themes, desk=desk, driver_class=terminal)
    with held_back() as held:
        code = asyncio.run(_until_left(app))
        _stop(source)
    if held.lines and code != Leaving.HUNG_UP:
        told = (harmless(line) for line in list(held.lines)[-_TOLD_LINES:])
        sys.stderr.write("".join(f"{line}\n" for line in told))
    return code


async def _until_left(app: MilepostApp) -> int:
    loop = asyncio.get_running_loop()
    for number, code in _SIGNALS.items():
        loop.add_signal_handler(number, app.leave, code)
    await app.run_async(mouse=app.options.mouse)
    return app.return_code or Leaving.QUIT


def _stop(source: SnapshotSource) -> None:
    """Tell the source, and do not wait for one that hangs."""
    stopping = threading.Thread(target=source.stop, name="source-stop", daemon=True)
    stopping.start()
    stopping.join(_STOP_PATIENCE_S)


def _refuse_unsuited_terminal() -> None:
    term = os.environ.get("TERM", "")
    remedy = "`milepost status` prints one reading, `milepost status --json` one for scripts."
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("the screen needs a terminal for input and output", remedy)
    if term in ("", "dumb", "unknown"):
        raise UsageError(f"a terminal with TERM={term or '(not set)'} cannot show it", remedy)


def _prepare_environment() -> None:
    os.environ.update(_SETTINGS)
    for stale_size in ("COLUMNS", "LINES"):
        os.environ.pop(stale_size, None)
    if not os.environ.get("NO_COLOR"):
        os.environ.pop("NO_COLOR", None)


def _is_utf8() -> bool:
    return sys.stdout.encoding.lower().replace("-", "") == "utf8"
