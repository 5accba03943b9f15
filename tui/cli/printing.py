"""What is printed to a terminal: reports in colour where it is one, and a progress line."""

from __future__ import annotations

import os
import shutil
import sys
import time
from collections.abc import Iterable, Sequence
from types import TracebackType
from typing import TextIO

from rich.console import Console
from rich.text import Text

from tui.checkpoints.verify import VerifyResult
from tui.cli import verified
from tui.model.launch import ListedRun
from tui.model.loss import Loss
from tui.model.plan import ActionPlan, Ask
from tui.model.snapshot import Snapshot
from tui.model.text import harmless
from tui.view import action, checkpoints, confirm, losses, question, report, runs
from tui.view.rows import Look, Role, Row

_STYLES = {
    Role.LABEL: "dim",
    Role.MUTED: "dim",
    Role.STRONG: "bold",
    Role.GOOD: "green",
    Role.BUSY: "cyan",
    Role.PAUSED: "blue",
    Role.WARNING: "yellow",
    Role.BAD: "bold red",
    Role.KEY: "bold",
}
_NARROWEST, _WIDEST = 40, 120
_PAGE_ROWS = 200
_SHOWN_AFTER_S = 0.5
_REDRAWN_S = 0.1


class _Console(Console):
    def on_broken_pipe(self) -> None:
        """Rich would end the process with 1; a reader that has read enough is no error."""
        raise BrokenPipeError


def print_report(snapshot: Snapshot) -> None:
    """The report of a snapshot on stdout."""
    look = Look(ascii=not _is_utf8(), utc_offset_s=_utc_offset_s(snapshot))
    _print_rows(report.rows(snapshot, _width(), look))


def print_runs(seen: Sequence[tuple[ListedRun, Snapshot]], notes: Sequence[str]) -> None:
    """The runs of this machine on stdout."""
    _print_rows(runs.rows(seen, notes, _width(), Look(ascii=not _is_utf8())))


def print_checkpoints(snapshot: Snapshot) -> None:
    """A save folder on stdout."""
    look = Look(ascii=not _is_utf8(), utc_offset_s=_utc_offset_s(snapshot))
    _print_rows(checkpoints.rows(snapshot, max(_width(), 80), 10_000, look))


def print_verified(result: VerifyResult) -> None:
    """What one verify found, on stdout."""
    _print_rows(verified.rows(result, _width(), Look(ascii=not _is_utf8())))


def print_plan(plan: ActionPlan, ask: Ask, *, to_stderr: bool) -> None:
    """What would be done."""
    asked = question.of_plan(plan, ask)
    look = Look(ascii=not _is_utf8())
    shown = confirm.rows(asked, _width(), look)
    stream = sys.stderr if to_stderr else sys.stdout
    print(confirm.title(asked, plan.made_at, look).strip(), file=stream, flush=True)
    _print_rows(shown, stream)


def print_actions(snapshot: Snapshot) -> None:
    """What was done to the run."""
    look = Look(ascii=not _is_utf8(), utc_offset_s=_utc_offset_s(snapshot))
    _print_rows(action.rows(snapshot, _width(), _PAGE_ROWS, look))


def print_losses(lost: Sequence[Loss], name: str) -> None:
    """What became of a run while nobody watched, on stdout."""
    if not lost:
        print(f"the record of {harmless(name)} tells of no loss")
        return
    look = Look(ascii=not _is_utf8(), utc_offset_s=time.localtime().tm_gmtoff)
    _print_rows(losses.rows(lost, time.time(), _width(), look))


def _width() -> int:
    return max(_NARROWEST, min(_WIDEST, shutil.get_terminal_size((100, 24)).columns))


def _print_rows(rows: Iterable[Row], stream: TextIO | None = None) -> None:
    console = _Console(file=stream, highlight=False, soft_wrap=True, markup=False, emoji=False)
    for row in rows:
        console.print(_text(row))


def _text(row: Row) -> Text:
    text = Text()
    for span in row:
        # Whatever a view lets through: nothing but printable characters is printed.
        printable = span.text if span.text.isprintable() else harmless(span.text)
        text.append(printable, style=_STYLES.get(span.role, ""))
    return text


def _is_utf8() -> bool:
    return (sys.stdout.encoding or "").lower().replace("-", "") == "utf8"


def _utc_offset_s(snapshot: Snapshot) -> int:
    """A copied log is told in its own clock, a live run in ours."""
    return time.localtime(snapshot.now).tm_gmtoff if snapshot.live else 0


class ProgressLine:
    """One line on stderr that says how far a long read is; nothing where stderr is no terminal."""

    def __init__(self, verb: str) -> None:
        self._verb = verb
        self._began = time.monotonic()
        self._drawn = 0.0
        self._is_terminal = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def __enter__(self) -> ProgressLine:
        return self

    def __call__(self, ratio: float) -> None:
        now = time.monotonic()
        is_early = now - self._began < _SHOWN_AFTER_S
        if not self._is_terminal or is_early or now - self._drawn < _REDRAWN_S:
            return
        self._drawn = now
        full = round(ratio * 30)
        bar = "#" * full + "-" * (30 - full)
        print(f"\r{self._verb} {bar} {ratio:4.0%}", end="", file=sys.stderr, flush=True)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        fault: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._drawn:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)
