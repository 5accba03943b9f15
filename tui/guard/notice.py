"""What a channel is told: one alert that came, got worse or cleared, or a word of the guard. Pure.

An alert is told once. While it comes and goes it is told again at most every ten minutes, unless it
got worse.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tui.guard.worse import is_much_worse
from tui.miles.secrets import masked_text
from tui.model.codec import encoded
from tui.model.journal import Remark
from tui.model.reduce import ALERT_LOG_LIMIT
from tui.model.snapshot import Alert, AlertRecord, Level, Snapshot
from tui.model.text import fitted, harmless

VERSION = 1
RETURN_S = 600.0
"""An alert that cleared and is back so soon is not told again before this."""
_KNOWN = 512
"""Alerts that are remembered as told; the log of alerts holds fewer."""
_SETTLES_S = 60.0
"""After that a monitor that has just begun knows every alert that still stands."""
_LINE_CELLS, _EVIDENCE = 500, 12
_OVER = "over: "
Key = tuple[str, str]
"""Code and subject of an alert."""
_SEVERITY: Mapping[Level, int] = {Level.INFO: 0, Level.WARNING: 1, Level.CRITICAL: 2}


class News(StrEnum):
    """What is new."""

    BEGAN = "began"
    WORSE = "worse"
    CLEARED = "cleared"
    SAID = "said"
    """The guard speaks of itself: what it did, could not do, or was asked for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Notice:
    """One message. Its texts are harmless and hold no secret."""

    at: float
    """Epoch seconds."""
    run: str
    """The run's name, for people."""
    host: str = ""
    """The box, for people who have several."""
    news: News
    level: Level
    code: str
    """Of the alert; the guard's own words have codes that begin with `guard-`."""
    line: str
    subject: str = ""
    evidence: tuple[str, ...] = ()
    advice: str = ""

    @property
    def title(self) -> str:
        """`run-a on spark-1: stalled` and the like."""
        where = f"{self.run} on {self.host}" if self.host else self.run
        told = f"{self.code} {self.subject}".rstrip()
        return f"{where}: {told}" + (f" {self.news.value}" if self.news in _MARKED else "")

    @property
    def text(self) -> str:
        """All of it, for a person."""
        moment = time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(self.at))
        lines = [self.line, *(f"- {each}" for each in self.evidence)]
        if self.advice and self.news is not News.CLEARED:
            lines.append(f"do: {self.advice}")
        return "\n".join((*lines, f"{self.level.value}, {moment}"))


_MARKED = frozenset({News.WORSE, News.CLEARED})


def said(
    snapshot: Snapshot,
    code: str,
    line: str,
    level: Level = Level.INFO,
    evidence: tuple[str, ...] = (),
) -> Notice:
    """A word of the guard on the run of that snapshot."""
    return Notice(
        at=snapshot.now,
        run=_shown(snapshot.attachment.name),
        news=News.SAID,
        level=level,
        code=code,
        line=_shown(line),
        evidence=tuple(map(_shown, evidence[:_EVIDENCE])),
    )


def notice_document(notice: Notice) -> dict[str, Any]:
    """What commands and webhooks are given. `text` is what chat servers show."""
    text = f"{notice.title}\n{notice.text}"
    return {"milepost": VERSION, **encoded(notice), "title": notice.title, "text": text}


class NewsDesk:
    """Knows what was told of each alert, and so what is new."""

    def __init__(self) -> None:
        self._told: dict[Key, _Told] = {}
        self._recalled_at: float | None = None
        """Of the first look since; None: there was none."""

    def recall(self, remarks: Iterable[Remark]) -> None:
        """What was told before, as the journal has it: a new guard does not tell it again."""
        for remark in remarks:
            alert = Alert(
                code=remark.code,
                level=remark.level,
                line=remark.line.removeprefix(_OVER),
                subject=remark.subject,
                evidence=remark.evidence,
            )
            match remark.news:
                case News.BEGAN | News.WORSE:
                    self._tell(alert, remark.at, stands=True)
                case News.CLEARED:
                    self._tell(alert, remark.at, stands=False)
                case _:  # a word of the guard's own
                    pass
        self._recalled_at = None

    def of(self, snapshot: Snapshot) -> tuple[Notice, ...]:
        """What is to be told now; telling of it is taken for done."""
        now = snapshot.now
        if self._recalled_at is None:
            self._recalled_at = now
        open_now = {_key(each.alert): each.alert for each in _records(snapshot, stands=True)}
        over = {_key(each.alert) for each in _records(snapshot, stands=False)}
        news = []
        for key, told in list(self._told.items()):
            if told.stands and key not in open_now and (key in over or self._is_lost(snapshot)):
                self._tell(told.alert, now, stands=False)
                news.append(_of_alert(told.alert, News.CLEARED, snapshot))
        for key, alert in open_now.items():
            if (what := _new_of(alert, self._told.get(key), now)) is not None:
                self._tell(alert, now, stands=True)
                news.append(_of_alert(alert, what, snapshot))
        return tuple(news)

    def _is_lost(self, snapshot: Snapshot) -> bool:
        """An alert that the log has no word of is over, unless the log is full or too young."""
        assert self._recalled_at is not None
        is_young = snapshot.now - self._recalled_at < _SETTLES_S
        return not is_young and len(snapshot.alert_log) < ALERT_LOG_LIMIT

    def _tell(self, alert: Alert, at: float, *, stands: bool) -> None:
        self._told.pop(_key(alert), None)  # what was told last stands last
        self._told[_key(alert)] = _Told(alert=alert, at=at, stands=stands)
        while len(self._told) > _KNOWN:
            del self._told[next(iter(self._told))]


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    alert: Alert
    """As it was told last, so at its worst."""
    at: float
    stands: bool
    """That it is over was not told yet."""


def _new_of(alert: Alert, told: _Told | None, now: float) -> News | None:
    if told is None or (not told.stands and now - told.at >= RETURN_S):
        return News.BEGAN
    rises = _SEVERITY[alert.level] > _SEVERITY[told.alert.level]
    grows = now - told.at >= RETURN_S and is_much_worse(told.alert.line, _shown(alert.line))
    return News.WORSE if rises or grows else None


def _key(alert: Alert) -> Key:
    return alert.code, _shown(alert.subject)


def _records(snapshot: Snapshot, *, stands: bool) -> Iterator[AlertRecord]:
    return (each for each in snapshot.alert_log if (each.cleared_at is None) is stands)


def _of_alert(alert: Alert, news: News, snapshot: Snapshot) -> Notice:
    is_over = news is News.CLEARED
    return Notice(
        at=snapshot.now,
        run=_shown(snapshot.attachment.name),
        news=news,
        level=Level.INFO if is_over else alert.level,
        code=alert.code,
        subject=_shown(alert.subject),
        line=f"{_OVER}{_shown(alert.line)}" if is_over else _shown(alert.line),
        evidence=tuple(map(_shown, alert.evidence[:_EVIDENCE])),
        advice=_shown(alert.advice),
    )


def _shown(text: str) -> str:
    return fitted(masked_text(harmless(text)), _LINE_CELLS)
