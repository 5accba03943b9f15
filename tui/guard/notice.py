"""What a channel is told: one alert that came, got worse or cleared, or a word of the guard. Pure.

An alert is told once. While it comes and goes it is told again at most every ten minutes, unless it
got worse.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tui.miles.secrets import masked_text
from tui.model.codec import encoded
from tui.model.snapshot import Alert, Level, Snapshot
from tui.model.text import fitted, harmless

VERSION = 1
RETURN_S = 600.0
"""An alert that cleared and is back so soon is not told again before this."""
_KNOWN = 512
"""Alerts that are remembered as told; the log of alerts holds fewer."""
_LINE_CELLS, _EVIDENCE = 500, 12
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
        self._told: dict[tuple[str, str], _Told] = {}

    def of(self, snapshot: Snapshot) -> tuple[Notice, ...]:
        """What is to be told now; telling of it is taken for done."""
        open_now = {
            (record.alert.code, record.alert.subject): record.alert
            for record in snapshot.alert_log
            if record.cleared_at is None
        }
        news = [*self._cleared(open_now, snapshot), *self._came(open_now, snapshot)]
        while len(self._told) > _KNOWN:
            del self._told[next(iter(self._told))]
        return tuple(news)

    def _came(
        self, open_now: Mapping[tuple[str, str], Alert], snapshot: Snapshot
    ) -> Iterator[Notice]:
        for key, alert in open_now.items():
            told = self._told.get(key)
            if told is None or (not told.stands and snapshot.now - told.at >= RETURN_S):
                news = News.BEGAN
            elif _SEVERITY[alert.level] > _SEVERITY[told.level]:
                news = News.WORSE
            else:
                continue
            self._told.pop(key, None)  # what was told last stands last
            self._told[key] = _Told(level=alert.level, at=snapshot.now, stands=True)
            yield _of_alert(alert, news, snapshot)

    def _cleared(
        self, open_now: Mapping[tuple[str, str], Alert], snapshot: Snapshot
    ) -> Iterator[Notice]:
        cleared = {
            (record.alert.code, record.alert.subject): record.alert
            for record in snapshot.alert_log
            if record.cleared_at is not None
        }
        for key, told in self._told.items():
            if told.stands and key not in open_now:
                self._told[key] = _Told(level=told.level, at=snapshot.now, stands=False)
                if key in cleared:
                    yield _of_alert(cleared[key], News.CLEARED, snapshot)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Told:
    level: Level
    """The worst that was told."""
    at: float
    stands: bool
    """That it is over was not told yet."""


def _of_alert(alert: Alert, news: News, snapshot: Snapshot) -> Notice:
    is_over = news is News.CLEARED
    return Notice(
        at=snapshot.now,
        run=_shown(snapshot.attachment.name),
        news=news,
        level=Level.INFO if is_over else alert.level,
        code=alert.code,
        subject=_shown(alert.subject),
        line=f"over: {_shown(alert.line)}" if is_over else _shown(alert.line),
        evidence=tuple(map(_shown, alert.evidence[:_EVIDENCE])),
        advice=_shown(alert.advice),
    )


def _shown(text: str) -> str:
    return fitted(masked_text(harmless(text)), _LINE_CELLS)
