"""The name of the log of another start."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.runs.next_log import next_log, next_name


@pytest.mark.parametrize(
    ("path", "taken", "wanted"),
    [
        ("/runs/plain.log", (), "/runs/plain-resume.log"),
        ("/runs/plain.log", ("plain-resume.log",), "/runs/plain-resume-2.log"),
        (
            "/runs/plain.log",
            ("plain-resume.log", "plain-resume-2.log", "plain-resume-4.log"),
            "/runs/plain-resume-3.log",
        ),
        ("/runs/plain-resume.log", ("plain-resume.log",), "/runs/plain-resume-2.log"),
        ("/runs/plain-resume-2.log", ("plain-resume.log",), "/runs/plain-resume-2.log"),
        ("/runs/plain", (), "/runs/plain-resume"),
        ("/runs/a.b.txt", (), "/runs/a.b-resume.txt"),
        ("/runs/.log", (), "/runs/.log-resume"),
        ("plain.log", (), "plain-resume.log"),
    ],
)
def test_the_next_name(path: str, taken: tuple[str, ...], wanted: str) -> None:
    assert next_name(path, lambda name: os.path.split(name)[1] in taken) == wanted


@given(st.text("ab-resume.0123/", min_size=1, max_size=30))
def test_it_is_new_in_the_same_folder_and_never_grows_twice(path: str) -> None:
    first = next_name(path, lambda _: False)
    second = next_name(first, lambda name: name == first)
    assert len({path, first, second}) >= 2
    assert first != second
    folders, names = zip(*map(os.path.split, (path, first, second)), strict=True)
    assert len(set(folders)) == 1
    assert names[2].count("-resume") <= names[0].count("-resume") + 1


def test_it_lies_beside_the_old_one_or_in_the_state_folder(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (tmp_path / "plain.log").touch()
    assert next_log(f"{tmp_path}/plain.log", state) == f"{tmp_path}/plain-resume.log"
    (tmp_path / "plain-resume.log").symlink_to("nowhere")
    assert next_log(f"{tmp_path}/plain.log", state) == f"{tmp_path}/plain-resume-2.log"
    assert next_log("/no/such/folder/plain.log", state) == f"{state}/plain-resume.log"
    assert next_log("", state) == f"{state}/run-resume.log"
