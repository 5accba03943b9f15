"""Recipes in the state folder: whole or as before, for their owner's eyes, a few of them."""

from __future__ import annotations

import json
import os
import stat
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from anything import anything
from begun import killed_at
from hypothesis import given
from hypothesis import strategies as st

from tui.model.reading import Absence, Known, Unknown
from tui.model.recipe import Recipe, RecipeKind
from tui.runs.recipe_store import FILE, is_same_start, keep, kept, read

RECIPE = Recipe(
    kind=RecipeKind.PROCESS,
    source="docker run client, process 7",
    captured_at=1_795_956_100.0,
    run_started_at=1_795_956_000.0,
    pid=7,
    argv=("docker", "run", "-e", "HF_TOKEN=hunter2"),
    environment=(("A", "1"), ("odd", os.fsdecode(b"\xff"))),
    mounts=(("/data", "/ckpt"),),
)


def started_at(seconds: float, **changes: Any) -> Recipe:
    at = RECIPE.run_started_at + seconds
    return replace(RECIPE, run_started_at=at, pid=RECIPE.pid + round(seconds), **changes)


def test_what_is_kept_is_read_back(tmp_path: Path) -> None:
    folder = tmp_path / "state" / "run-a"
    assert kept(folder) is None
    assert keep(folder, RECIPE)
    assert kept(folder) == RECIPE
    assert stat.S_IMODE((folder / FILE).stat().st_mode) == 0o600
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert [file.name for file in folder.iterdir()] == [FILE]


@given(anything(Recipe))
def test_any_recipe_is_read_back(recipe: Recipe) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        keep(Path(folder), recipe)
        found = kept(Path(folder))
        assert repr(found) == repr(recipe)  # nan is not equal to itself
        assert found is not None
        assert found.environment == recipe.environment


def test_only_what_changed_is_written(tmp_path: Path) -> None:
    keep(tmp_path, RECIPE)
    before = (tmp_path / FILE).stat()
    assert not keep(tmp_path, replace(RECIPE, captured_at=RECIPE.captured_at + 5.0))
    assert (tmp_path / FILE).stat().st_ino == before.st_ino
    assert keep(tmp_path, replace(RECIPE, container_id="ab" * 32))
    assert kept(tmp_path) == replace(RECIPE, container_id="ab" * 32)
    assert len(list(tmp_path.iterdir())) == 1


def test_five_starts_before_the_newest_stay(tmp_path: Path) -> None:
    for number in range(8):
        keep(tmp_path, started_at(number * 60.0))
    assert kept(tmp_path) == started_at(7 * 60.0)
    old = sorted(tmp_path.glob("recipe-*.json"))
    pids = [json.loads(file.read_text())["pid"] for file in old]
    assert pids == [started_at(number * 60.0).pid for number in range(2, 7)]
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in old)


@pytest.mark.parametrize(
    "text", ["", "{", "[]", "null", "{}", '{"milepost_recipe": 2}', '{"milepost_recipe": 1}', "\0"]
)
def test_a_damaged_file_is_none_with_a_reason_and_is_replaced(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    assert kept(tmp_path) is None
    found = read(tmp_path)
    assert isinstance(found, Unknown)
    assert found.why is Absence.ERROR
    assert str(tmp_path / FILE) in found.reason
    keep(tmp_path, RECIPE)
    assert kept(tmp_path) == RECIPE


def test_what_a_newer_milepost_wrote_beside_is_left_out(tmp_path: Path) -> None:
    keep(tmp_path, RECIPE)
    document = json.loads((tmp_path / FILE).read_text())
    (tmp_path / FILE).write_text(json.dumps({**document, "umask": 18}))
    found = read(tmp_path)
    assert isinstance(found, Known)
    assert found.value == RECIPE


def test_killed_at_any_step_the_old_or_the_new_is_there(tmp_path: Path) -> None:
    number = 0
    while True:
        number += 1
        folder = tmp_path / str(number)
        keep(folder, RECIPE)
        was_killed = killed_at(number, partial(keep, folder, started_at(60.0)))
        assert kept(folder) in (RECIPE, started_at(60.0))
        keep(folder, started_at(60.0))
        assert kept(folder) == started_at(60.0)
        assert len(list(folder.glob("recipe-*.json"))) == 1
        if not was_killed:
            break
    assert number > 3


def test_what_one_left_that_was_killed_in_a_write_is_removed_by_the_next(tmp_path: Path) -> None:
    old, new = tmp_path / "recipe.4711.tmp", tmp_path / "recipe.4712.tmp"
    for draft in (old, new):
        draft.touch()
    os.utime(old, (1.0, 1.0))
    keep(tmp_path, RECIPE)

    assert not old.exists()
    assert new.exists()


def test_a_folder_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match="Not a directory"):
        keep(tmp_path / "file" / "run-a", RECIPE)


@pytest.mark.parametrize(
    ("changes", "same"),
    [
        ({"captured_at": 0.0, "argv": ()}, True),
        ({"pid": 8}, False),
        ({"pid": 8, "container_id": "ab"}, True),
        ({"pid": 8, "submission_id": "one"}, True),
        ({"pid": 8, "container_id": "cd", "submission_id": "two"}, False),
        ({"pid": 0, "run_started_at": 1.0, "ours": True, "log": "/a.log"}, True),
        ({"pid": 0, "run_started_at": 1.0, "ours": True, "log": "/b.log"}, False),
    ],
)
def test_one_start_seen_from_two_sides(changes: dict[str, Any], same: bool) -> None:
    known = replace(RECIPE, container_id="ab", submission_id="one", ours=True, log="/a.log")
    cleared = replace(RECIPE, container_id="", submission_id="")
    assert is_same_start(known, replace(cleared, **changes)) is same


@given(st.binary(max_size=200))
def test_any_bytes_are_read_without_complaint(content: bytes) -> None:
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / FILE).write_bytes(content)
        assert kept(Path(folder)) is None
