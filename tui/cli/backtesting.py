"""`milepost guard --backtest`: what the alarms would have been over recorded history."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from tui.cli.chosen import chosen_run
from tui.cli.printing import ProgressLine
from tui.errors import ExitCode, NothingFoundError
from tui.guard.backtest import Backtest, backtest, by_code, headline
from tui.model.codec import encoded
from tui.model.judge.words import span
from tui.model.text import harmless

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments
    from tui.config import Config


def replayed(arguments: Arguments, config: Config) -> int:
    """Replay the logs that were named, else the run's own, and say what would have been told."""
    logs = arguments.backtest or [_own_log(arguments)]
    with ProgressLine("replaying") as report:
        result = backtest(logs, config.limits, report)
    if getattr(arguments, "json", False):
        json.dump({"milepost": 1, "backtest": encoded(result)}, sys.stdout)
        sys.stdout.write("\n")
    else:
        print("\n".join(map(harmless, _lines(result))))
    return int(ExitCode.WELL)


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
