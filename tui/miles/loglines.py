"""From log lines to events: what a Miles run's output states, and nothing it does not.

A model's answer can hold anything, whole log lines included. So a line counts only in the form
of the process that printed it; what follows free text in its line is text; and the lines after it
count again from the first whose stamp fits the log's, which the text of an answer cannot know.
"""

from __future__ import annotations

from dataclasses import dataclass

from tui.miles import messages
from tui.miles.bars import ANY_BAR, BAR_END, newest_bars
from tui.miles.clues import TRACEBACK, clue_in, is_exception, without_guesses, without_ids
from tui.miles.records import Form, Record, record_of
from tui.miles.secrets import masked_text
from tui.miles.stamps import LogClock
from tui.model.events import (
    BarMoved,
    ClueFound,
    ClueKind,
    End,
    Event,
    RetriesExhausted,
    RunEnded,
    RunLaunched,
    RunSubmitted,
)
from tui.model.progress import LineKind, LogLine
from tui.model.text import harmless

_FREE_TEXT = ("First rollout sample", "Finish rollout", "example data:", "text_preview=")
_SHOWN_LIMIT = 2000
_PARSED_LIMIT = 1 << 18
_AHEAD_LIMIT_S = 6 * 3600.0
"""No record comes so much later than all before it: an answer that guesses at the date does."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Parsed:
    """What one physical line holds."""

    events: tuple[Event, ...] = ()
    line: LogLine | None = None
    """For the log pane; None for a line with nothing to show."""


class LogParser:
    """Reads one log from top to bottom, line by line."""

    def __init__(self, clock: LogClock, *, with_lines: bool = True) -> None:
        self.clock = clock
        self.with_lines = with_lines
        self._source: tuple[str, int | None] = ("", None)
        """Whose bar an unprefixed line continues: Ray prints the prefix on a line of its own."""
        self._free_text: dict[int | None, float] = {}
        """Processes whose last record was free text, with that record's stamp."""
        self._newest_stamp = 0.0
        """Of Miles' records."""
        self._traceback: set[int | None] = set()
        self._job_id = ""
        self._replaying = False

    def feed(self, text: str, arrival: float | None = None) -> Parsed:
        """The events of one line.

        Args:
            text: the decoded line without its newline; may hold carriage returns.
            arrival: when it was read, None for a line that was there before we came.
        """
        text = text[:_PARSED_LIMIT]
        events: list[Event] = []
        record: Record | None = None
        is_text = False
        for part in _parts(text):
            record = self._record(part)
            is_text = is_text or self._is_forged(record)
            at = self.clock.at(None if is_text else record.stamp, arrival, record.form.value)
            if not is_text:
                events += self._events(record, at)
                is_text = self._begins_text(record)
        if record is None:
            return Parsed()
        line = self._line(record, events) if self.with_lines else None
        return Parsed(events=tuple(events), line=line)

    def _record(self, text: str) -> Record:
        cls, pid = self._source
        is_continuation = bool(cls) and ANY_BAR.search(text[:400]) is not None
        record = record_of(text, cls, pid) if is_continuation else record_of(text)
        if not is_continuation:
            self._source = (record.cls, record.pid) if not record.message.strip() else ("", None)
        return record

    def _events(self, record: Record, at: float) -> list[Event]:
        if record.form is Form.BARE:
            return self._bare(record, at)
        self._traceback.discard(record.pid)
        if record.form is Form.RAY_CLI:
            return self._job(record, at)
        if self._replaying:
            return []
        if record.form is Form.MILES:
            return self._miles(record, at)
        if record.form is Form.SGLANG:
            return messages.sglang_events(record, at)
        found = messages.print_events(record, at)
        return found or self._clues(record, at)

    def _is_forged(self, record: Record) -> bool:
        since = self._free_text.get(record.pid)
        if since is None:
            return False
        if record.form is Form.BARE:
            return record.pid is not None or not messages.is_job_line(record.message, self._job_id)
        latest = max(self._newest_stamp, since) + _AHEAD_LIMIT_S
        if record.stamp is None or not since <= record.stamp <= latest:
            return True
        del self._free_text[record.pid]
        return False

    def _begins_text(self, record: Record) -> bool:
        if record.form is not Form.MILES or record.stamp is None:
            return False
        self._newest_stamp = max(self._newest_stamp, record.stamp)
        is_text = any(mark in record.message[:200] for mark in _FREE_TEXT)
        if is_text:
            self._free_text[record.pid] = record.stamp
        return is_text

    def _miles(self, record: Record, at: float) -> list[Event]:
        if any(mark in record.message[:200] for mark in _FREE_TEXT):
            return []
        found = messages.miles_events(record, at)
        if found and not isinstance(found[0], RetriesExhausted):
            return found
        return [*found, *self._clues(record, at)]

    def _job(self, record: Record, at: float) -> list[Event]:
        events = messages.job_events(record.message, at)
        for event in events:
            if isinstance(event, RunSubmitted):
                self._job_id, self._replaying = event.job_id, False
                self._free_text.clear()
        if messages.begins_replay(record.message):
            self._replaying = True
        return events or self._clues(record, at)

    def _bare(self, record: Record, at: float) -> list[Event]:
        if not record.cls and (events := self._driver(record, at)):
            return events
        if self._replaying:
            return []
        bars: list[Event] = [
            BarMoved(at=at, name=name, done=done, total=total)
            for name, done, total in newest_bars(record.message)
        ]
        return bars or messages.print_events(record, at) or self._fault(record, at)

    def _driver(self, record: Record, at: float) -> list[Event]:
        events = messages.driver_events(record.message, at, self._job_id)
        for event in events:
            if isinstance(event, RunLaunched | RunSubmitted):
                self._job_id, self._replaying = event.job_id, False
        if messages.begins_replay(record.message):
            self._replaying = True
        return events

    def _fault(self, record: Record, at: float) -> list[Event]:
        if record.message.startswith(TRACEBACK):
            self._traceback.add(record.pid)
            return []
        clues = self._clues(record, at)
        if record.pid in self._traceback and is_exception(record.message):
            self._traceback.discard(record.pid)
            told = without_guesses(record.message)[:400]
            if not clues:
                clues = [
                    ClueFound(at=at, kind=ClueKind.PYTHON, line=told, source=_source_name(record))
                ]
            if not record.cls:
                clues.append(RunEnded(at=at, end=End.DRIVER_ERROR, detail=told))
        return clues

    def _clues(self, record: Record, at: float) -> list[Event]:
        kind = clue_in(record.message)
        if kind is None:
            return []
        line = without_ids(without_guesses(record.message)).strip()[-400:]
        return [ClueFound(at=at, kind=kind, line=line, source=_source_name(record))]

    def _line(self, record: Record, events: list[Event]) -> LogLine | None:
        message = record.message[:_SHOWN_LIMIT]
        if "--" in message or "KEY" in message or "TOKEN" in message:
            message = masked_text(message)
        text = harmless(message).rstrip()
        if not text:
            return None
        kind = messages.line_kind(record, events)
        at = self.clock.last_at or 0.0
        return LogLine(
            at=at, source=_source_name(record), text=text, kind=kind, repeated=record.repeated
        )


def _parts(text: str) -> list[str]:
    """The pieces of one physical line: carriage returns and bars glue records together."""
    if "\r" not in text and "%|" not in text:
        return [text]
    parts = []
    for piece in text.split("\r"):
        start = 0
        for end in BAR_END.finditer(piece):
            rest = piece[end.end() :]
            if rest.startswith(("[2", "\x1b[")):
                parts.append(piece[start : end.end()])
                start = end.end()
        parts.append(piece[start:])
    return [part for part in parts if part] or [""]


def _source_name(record: Record) -> str:
    if record.cls.endswith("TrainRayActor"):
        return "trainer"
    if record.cls == "RolloutManager" or record.name == "rollout_manager":
        return "rollout"
    if record.cls == "SGLangEngine":
        return f"engine {record.pid}"
    if record.name.startswith(("actor_", "critic_")):
        return "trainer"
    return record.cls or record.name or ("ray" if record.form is Form.RAY_CLI else "driver")


def kind_of_line(parsed: Parsed) -> LineKind:
    """The kind of a parsed line, PLAIN where there is none to show."""
    return parsed.line.kind if parsed.line else LineKind.PLAIN
