"""An action that is followed is told to its last line, whenever that is written."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tui.cli.following import followed
from tui.model.action import ActionKind, ActionRecord, ActionState
from tui.model.journal import Entry, Mark
from tui.runs.journal import Journal
from tui.runs.lock import locked

ACTION = "stop-1"


def written(journal: Journal, mark: Mark, **rest: object) -> None:
    entry = Entry(at=1_000.0, action=ACTION, kind=ActionKind.STOP, mark=mark, **rest)  # type: ignore[arg-type]
    journal.write(entry)


def begun(folder: Path) -> Journal:
    journal = Journal(folder)
    written(journal, Mark.STARTED, title="Stop plain", steps=("stop",))
    return journal


class Ending:
    """Ends the action right after the journal was read for the nth time."""

    def __init__(self, journal: Journal, reading: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self._journal, self._left = journal, reading
        self._lines = Journal._lines
        monkeypatch.setattr(Journal, "_lines", lambda _: self._read())

    def _read(self) -> Iterator[str]:
        lines = list(self._lines(self._journal))
        self._left -= 1
        if self._left == 0:
            written(self._journal, Mark.ENDED, line="it does not die", ok=False)
        return iter(lines)


@pytest.mark.parametrize("reading", range(1, 6))
def test_it_is_told_to_its_last_line(
    tmp_path: Path,
    reading: int,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    journal = begun(tmp_path)
    Ending(journal, reading, monkeypatch)
    with locked(tmp_path, ACTION):
        record = followed(tmp_path, ACTION, quiet=False)

    assert isinstance(record, ActionRecord)
    assert record.state is ActionState.FAILED
    assert [line[10:] for line in capsys.readouterr().out.splitlines()] == [
        "Stop plain",
        "FAILED: it does not die",
    ]


def test_one_whose_process_died_is_not_waited_for(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    begun(tmp_path)

    assert followed(tmp_path, ACTION, quiet=False) is None
    assert "--finish" in capsys.readouterr().err
