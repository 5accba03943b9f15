"""Hostile text in every sink of every command: what comes out is text, and colour on a terminal."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import replace
from pathlib import Path

import hostile
import logs
import pytest
from anything import anything
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tui.cli import run
from tui.cli.printing import print_report, print_runs
from tui.model.document import status_document
from tui.model.launch import ListedRun
from tui.model.snapshot import Snapshot
from tui.model.text import harmless

RECORDS = (
    "X",
    "(X pid=200) X",
    logs.trainer("10:00:01", "Timer X start"),
    logs.trainer("10:00:02", "Timer X end (elapsed: 1.0s)"),
    logs.trainer("10:00:03", "X"),
    logs.trainer("10:00:04", "step 3: {'train/X': 0.1, 'train/loss': nan, 'train/step': 3}"),
    logs.rollout("10:00:05", "eval 3: {'eval/X': 0.2}"),
    logs.trainer("10:00:06", "[FSDP] Saved checkpoint to /X/iter_0000004"),
    logs.trainer("10:00:07", "[FSDP] Failed to load model from /X/iter_0000004: X"),
    logs.rollout("10:00:08", "Ports for engine 0: {'host': 'X', 'port': 15000}"),
    logs.rollout("10:00:09", "X, retrying... (attempt 9/60, url=http://X, response=X)"),
    logs.rollout("10:00:10", "Max retries (60) reached, failing... (url=http://X)"),
    logs.rollout("10:00:11", "First rollout sample: X"),
    logs.engine("10:00:12", "Decode batch, #running-req: 3, token usage: 0.1, X"),
    "Running entrypoint for job X: python3 train.py --save 'X' --load 'X' --num-rollout 5",
    "X:  50%|█████     | 4/8 [00:01<00:01, X]",
    "(raylet) file_system_monitor.cc: /X is over 95% full, available space: 1.0 GB; capacity: 9 GB",
    "Traceback (most recent call last):",
    "RuntimeError: X",
    "ray.exceptions.ActorDiedError: The actor is dead because X",
    "train.py: error: unrecognized arguments: X",
    "Job 'X' failed",
    "Status message: X",
)
LINES = st.lists(
    st.tuples(st.sampled_from(RECORDS), st.sampled_from(hostile.STRINGS)).map(
        lambda chosen: chosen[0].replace("X", chosen[1])
    ),
    max_size=12,
)


@contextmanager
def printed(encoding: str = "utf-8") -> Iterator[list[str]]:
    """What stdout and stderr receive, as a pipe would: undecodable text is an error."""
    out = [io.TextIOWrapper(io.BytesIO(), encoding, write_through=True) for _ in range(2)]
    told: list[str] = []
    with redirect_stdout(out[0]), redirect_stderr(out[1]):
        yield told
    told += (each.buffer.getvalue().decode(encoding) for each in out)


def told_by(*argv: str) -> str:
    with printed() as told:
        run(argv)
    return "".join(told)


def write(path: Path, lines: Sequence[str]) -> Path:
    path.write_bytes("\n".join(lines).encode("utf-8", "surrogatepass"))
    return path


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(lines=LINES)
def test_explain_prints_text(lines: list[str], tmp_path: Path) -> None:
    log = write(tmp_path / "run.log", lines)
    assert hostile.unmeant(told_by("explain", str(log))) == []
    document = told_by("explain", str(log), "--json")
    assert document.isascii()
    assert document[:-1].isprintable()
    assert json.loads(document)["milepost"] == 1


@settings(max_examples=50, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    snapshot=anything(Snapshot),
    runs=st.lists(anything(ListedRun), max_size=2),
    encoding=st.sampled_from(("utf-8", "ascii", "latin-1")),
)
def test_any_snapshot_is_printed_as_text(
    snapshot: Snapshot, runs: list[ListedRun], encoding: str
) -> None:
    with printed(encoding) as told:
        print_report(replace(snapshot, live=False))
        print_runs([(one, snapshot) for one in runs], [snapshot.verdict.reason])
    assert hostile.unmeant("".join(told)) == []
    json.dumps(status_document(snapshot), ensure_ascii=True, allow_nan=False).encode("ascii")


@pytest.mark.parametrize("text", hostile.STRINGS)
def test_one_of_each_kind_becomes_text(text: str) -> None:
    assert hostile.unmeant(harmless(text)) == []


def test_no_character_at_all_is_more_than_text() -> None:
    every = map(chr, range(sys.maxunicode + 1))
    assert [found for char in every if (found := hostile.unmeant(harmless(f"a{char}b")))] == []


@given(st.text())
def test_no_text_at_all_is_more_than_text(text: str) -> None:
    assert hostile.unmeant(harmless(text)) == []


ARGV = tuple(text for text in hostile.STRINGS if "\0" not in text and "\ud800" not in text)
"""Arguments hold any byte but NUL; those that are no UTF-8 arrive as lone surrogates."""


@pytest.mark.parametrize(
    "words",
    [
        ("explain", "X"),
        ("explain", "run.log", "--as-of", "X"),
        ("status", "--log", "X"),
        ("status", "X"),
        ("status", "a/X"),
        ("status", "--container", "X"),
        ("status", "--X"),
        ("status", "--config", "X"),
        ("demo", "--fault", "X"),
        ("demo", "--fault", "X@3"),
        ("demo", "--speed", "X"),
        ("--theme", "X"),
        ("--interval", "X"),
        ("X", "X"),
    ],
    ids=" ".join,
)
def test_what_was_typed_comes_back_as_text(
    words: tuple[str, ...], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    (tmp_path / "run.log").touch()
    for text in ARGV:
        told = told_by(*(word.replace("X", text) for word in words))
        assert told
        assert hostile.unmeant(told) == [], text


@pytest.mark.parametrize(
    "table", ["'X' = 1", "theme = 5\n'X' = 2", "[limits]\n'X' = 1", "[keys]\n'X' = 1"]
)
def test_what_a_configuration_holds_comes_back_as_text(table: str, tmp_path: Path) -> None:
    for text in hostile.STRINGS:
        quoted = json.dumps(text.encode("utf-8", "replace").decode())
        config = write(tmp_path / "config.toml", [table.replace("'X'", quoted)])
        assert hostile.unmeant(told_by("status", "--config", str(config))) == [], text
