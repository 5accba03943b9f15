"""`milepost guard --backtest`: what the alarms would have been over what is recorded."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tui.cli.chosen import chosen_run
from tui.config import Config
from tui.errors import ExitCode, NothingFoundError
from tui.guard.backtest import Alarm, Backtest, backtest, by_code
from tui.model.launch import Attachment
from tui.model.text import harmless
from tui.view.numbers import age, counted, day_and_time, size

if TYPE_CHECKING:
    from tui.cli.arguments import Arguments

_SHOWN_BYTES = 64 << 20
"""A longer log takes minutes: it is replayed when that is asked for."""
_MOST_LISTED = 8


def replay(arguments: Arguments, config: Config) -> int:
    """Replay the logs that were named, or the run's own, and say what would have been told."""
    logs = arguments.backtest or [_log_of(chosen_run(arguments))]
    _print(_replayed(logs, config))
    return int(ExitCode.WELL)


def show_before_acting(attachment: Attachment, config: Config) -> None:
    """The same for whoever lets a guard act: how far its eyes can be trusted."""
    if attachment.log is None or not (log := Path(attachment.log.value)).is_file():
        print("nothing is recorded of this run yet that the alarms could be tried on")
    elif (log_bytes := log.stat().st_size) > _SHOWN_BYTES:
        print(f"its log has {size(log_bytes)}: `milepost guard --backtest` tries the alarms on it")
    else:
        _print(_replayed([log], config))


def _log_of(attachment: Attachment) -> Path:
    if attachment.log is None:
        raise NothingFoundError("no log of that run is known", "name one: --backtest LOG")
    return Path(attachment.log.value)


def _replayed(logs: Sequence[Path], config: Config) -> Backtest:
    from tui.cli.printing import ProgressLine

    with ProgressLine("replaying") as report:
        return backtest(logs, config.limits, report)


def _print(result: Backtest) -> None:
    sys.stdout.writelines(f"{harmless(line)}\n" for line in _lines(result))
    sys.stdout.flush()


def _lines(result: Backtest) -> Iterator[str]:
    told = f"{age(result.seconds)} of log, {counted(result.attempts, 'attempt')}"
    if not result.alarms:
        yield f"alarms over {told}: none"
        return
    false = sum(alarm.went_away for alarm in result.alarms)
    yield f"alarms over {told}: {len(result.alarms)}, of which {false} went away by themselves"
    for code, alarms in by_code(result.alarms).items():
        yield f"  {code}  {_sum(alarms)}"
        for alarm in alarms[:_MOST_LISTED]:
            yield f"    {_line(alarm)}"
        if len(alarms) > _MOST_LISTED:
            yield f"    … and {len(alarms) - _MOST_LISTED} more"


def _sum(alarms: Sequence[Alarm]) -> str:
    stayed = sum(not alarm.went_away for alarm in alarms)
    return f"{stayed} stayed, {len(alarms) - stayed} went away"


def _line(alarm: Alarm) -> str:
    late = "" if alarm.after_s is None else f"{age(alarm.after_s)} after the last progress, "
    end = "went away after" if alarm.went_away else "stood for"
    when = day_and_time(alarm.at, alarm.at, 0)
    return f"{when}  {late}{end} {age(alarm.lasted_s)}: {alarm.line}"
