"""`milepost guard --backtest`: what the alarms would have been over recorded history."""

from __future__ import annotations

import json
import sys
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING

from tui.cli.chosen import chosen_run
from tui.errors import ExitCode, MilepostError, NothingFoundError
from tui.guard.backtest import Backtest, backtest, by_code, headline
from tui.model.codec import encoded
from tui.model.judge.words import span
from tui.model.launch import Attachment
from tui.model.text import harmless

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments
    from tui.config import Config

_LOOKED_BACK_BYTES = 16 << 20
"""Half a minute's work on a busy machine."""


def replayed(arguments: Arguments, config: Config) -> int:
    """Replay the logs that were named, else the run's own, and say what would have been told."""
    from tui.cli.printing import ProgressLine

    logs = arguments.backtest or [_own_log(arguments)]
    with ProgressLine("replaying") as report:
        result = backtest(logs, config.limits, report)
    if getattr(arguments, "json", False):
        json.dump({"milepost": 1, "backtest": encoded(result)}, sys.stdout)
        sys.stdout.write("\n")
    else:
        print("\n".join(map(harmless, _lines(result))))
    return int(ExitCode.WELL)


def look_back(attachment: Attachment, config: Config) -> None:
    """For who lets a guard act: what its alarms would have been in this run's own past."""
    if attachment.log is None:
        return
    with suppress(MilepostError):
        log = Path(attachment.log.value)
        result = backtest([log], config.limits, most_bytes=_LOOKED_BACK_BYTES)
        print(harmless(f"before it acts, looking back: {headline(result)}"), flush=True)


def _own_log(arguments: Arguments) -> Path:
    log = chosen_run(arguments).log
    if log is None:
        raise NothingFoundError("the run has no log that could be replayed", "name LOG files")
    return Path(log.value)


def _lines(result: Backtest) -> list[str]:
    lines = [headline(result)]
    for code, alarms in by_code(result.alarms).items():
        gone = sum(alarm.went_away for alarm in alarms)
        lines.append(f"{code}: {len(alarms)}, of them {gone} false")
        for alarm in alarms:
            after = f", {span(alarm.after_s)} after the last progress" if alarm.after_s else ""
            fate = "went away by itself" if alarm.went_away else "stayed"
            lines.append(f"  told{after}, {fate} after {span(alarm.lasted_s)}: {alarm.line}")
    return lines
