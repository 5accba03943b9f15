"""A state folder that is full or read-only: the guard watches and tells, and acts once it can."""

from __future__ import annotations

import json
import os
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from box import opened_box
from guard_killed import guard
from places import BareProcess, Place, until

_ROOM = "size=512k"


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Place]:
    """A run whose state folder is a file system of its own."""
    monkeypatch.setenv("HOME", str(tmp_path))
    if os.geteuid() != 0:
        pytest.skip("needs root to mount a file system")
    with opened_box() as box:
        place = BareProcess(box, tmp_path / "work")
        place.state.mkdir(parents=True)
        _done(place, "mount", "-t", "tmpfs", "-o", _ROOM, "tmpfs", place.state)
        with place:
            place.wait_for_checkpoint(8)
            yield place


def _done(place: Place, *words: str | Path) -> None:
    ran = place.box.run(*words)
    assert ran.returncode == 0, ran.stderr


@contextmanager
def _guard(place: Place, told: Path) -> Iterator[None]:
    """One that writes down what it tells; still there at the end."""
    command = f"sh -c {shlex.quote(f'cat >> {told}; echo >> {told}')}"
    with guard(place, "--notify-command", command) as process:
        yield
        assert process.is_running()


def test_a_full_one(place: Place, tmp_path: Path) -> None:
    told, filler = tmp_path / "told", place.state / "filler"
    with _guard(place, told):
        until(lambda: "guard-watches" in _read(place, "*/*/journal.jsonl"))
        until(lambda: _read(place, "*/*/recipe.json") != "")
        place.box.run("sh", "-c", f"cat /dev/zero > {filler}; echo > {filler}.more")
        place.kill()
        until(lambda: "run-crashed" in _codes(told) and "No space left on device" in _all(told))
        assert place.drivers() == []

        _done(place, "rm", filler)
        until(lambda: "guard-outcome" in _codes(told))
        assert len(place.drivers()) == 1


def test_a_read_only_one(place: Place, tmp_path: Path) -> None:
    told = tmp_path / "told"
    _done(place, "mount", "-o", "remount,ro", place.state)
    with _guard(place, told):
        until(lambda: "guard-journal" in _codes(told))
        line = next(each["line"] for each in _told(told) if each["code"] == "guard-journal")
        assert line.startswith("the journal cannot be written, and so nothing is done: ")
        assert line.endswith(": Read-only file system")

        _done(place, "mount", "-o", "remount,rw", place.state)
        until(lambda: _read(place, "*/*/recipe.json") != "")
        place.kill()
        until(lambda: "guard-outcome" in _codes(told))
        assert len(place.drivers()) == 1


def _read(place: Place, pattern: str) -> str:
    """From within the box: its mounts are its own."""
    return place.box.run("sh", "-c", f"cat {place.state}/{pattern}").stdout


def _told(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text().splitlines() if line]


def _all(file: Path) -> str:
    return " ".join(each["line"] for each in _told(file))


def _codes(file: Path) -> set[str]:
    return {each["code"] for each in _told(file)}
