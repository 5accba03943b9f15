"""What has to differ in a second start: no terminal to type at, no id that Ray has seen."""

from __future__ import annotations

import shlex
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.model.recipe import Recipe, RecipeKind
from tui.runs.docker_client import docker_command, is_detached, without_terminal
from tui.runs.recipe_changes import new_submission_id, startable

STAMP = "20261129-181503"


def recipe(line: str, *, is_client: bool = False) -> Recipe:
    return Recipe(
        kind=RecipeKind.PROCESS,
        source="",
        captured_at=0.0,
        argv=tuple(shlex.split(line)),
        is_client=is_client,
    )


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        ("docker run -it --rm miles bash -it", "docker run -t --rm miles bash -it"),
        ("docker run -ti miles x", "docker run -t miles x"),
        ("docker run -i -t miles x", "docker run -t miles x"),
        ("docker run --interactive --tty miles -i", "docker run --tty miles -i"),
        ("docker run --interactive=true -t miles x", "docker run -t miles x"),
        ("docker run -itv /i:/t miles x", "docker run -tv /i:/t miles x"),
        ("docker run -itv/i:/t miles x", "docker run -tv/i:/t miles x"),
        ("docker run -it -e '' -- miles -i", "docker run -t -e '' -- miles -i"),
        ("docker run --tty --name -i -i miles x", "docker run --tty --name -i miles x"),
        ("docker --debug container run -it miles x", "docker --debug container run -t miles x"),
        ("docker exec -it tools python3 train.py", "docker exec -t tools python3 train.py"),
        ("docker run -i miles x", "docker run -i miles x"),
        ("docker run -t miles x", "docker run -t miles x"),
        ("docker run miles bash -it", "docker run miles bash -it"),
        ("docker attach run-a", "docker attach run-a"),
        ("podman run -it miles", "podman run -it miles"),
    ],
)
def test_docker_is_not_told_of_a_terminal_to_type_at(line: str, wanted: str) -> None:
    able, changes = startable(recipe(line, is_client=True), STAMP)
    assert able.argv == tuple(shlex.split(wanted))
    said = ("docker's -i is left out: there is no terminal to type at",)
    assert changes == (() if line == wanted else said)
    assert startable(able, STAMP) == (able, ())


@given(
    st.lists(
        st.sampled_from(
            ("-i", "-t", "-it", "--rm", "-e", "A=1", "--name", "run-a", "-v/a:/b", "-", "--", "-d")
        ),
        max_size=8,
    )
)
def test_all_else_is_as_it_was(options: list[str]) -> None:
    argv = ("docker", "run", *options, "miles", "python3", "train.py", "-i")
    before, after = docker_command(argv), docker_command(without_terminal(argv))
    assert (before is None) == (after is None)
    if before is not None and after is not None:
        assert after == before
    assert without_terminal(without_terminal(argv)) == without_terminal(argv)


@pytest.mark.parametrize(
    ("line", "detached"),
    [
        ("docker run -d miles", True),
        ("docker run --rm -itd --name run-a miles", True),
        ("docker run --detach miles", True),
        ("docker exec -d tools x", True),
        ("docker run miles -d", False),
        ("docker run --rm miles", False),
        ("docker ps", False),
        ("python3 -d", False),
    ],
)
def test_a_client_that_leaves_what_it_starts(line: str, detached: bool) -> None:
    assert is_detached(shlex.split(line)) is detached


@pytest.mark.parametrize(
    ("line", "wanted"),
    [
        (
            "ray job submit --submission-id one -- python3 train.py --job-id 7",
            "ray job submit --submission-id one-resume-20261129-181503 "
            "-- python3 train.py --job-id 7",
        ),
        (
            "python3 /bin/ray job submit --submission-id=one-resume-20261128-000000 -- x",
            "python3 /bin/ray job submit --submission-id=one-resume-20261129-181503 -- x",
        ),
        (
            "ray job submit --job-id one -- x",
            "ray job submit --job-id one-resume-20261129-181503 -- x",
        ),
        ("ray job submit -- x", "ray job submit -- x"),
        ("python3 train.py --submission-id one -- x", "python3 train.py --submission-id one -- x"),
        ("ray job submit --submission-id -- x", "ray job submit --submission-id -- x"),
    ],
)
def test_a_job_gets_an_id_that_ray_has_not_seen(line: str, wanted: str) -> None:
    able, changes = startable(recipe(line), STAMP)
    assert able.argv == tuple(shlex.split(wanted))
    said = ("submission id one-resume-20261129-181503: Ray takes no id twice",)
    assert changes == (() if line == wanted else said)


def test_other_kinds_are_left_as_they_are() -> None:
    for kind in (RecipeKind.CONTAINER, RecipeKind.JOB):
        given_ = replace(recipe("docker run -it miles", is_client=True), kind=kind)
        assert startable(given_, STAMP) == (given_, ())


def test_ids_do_not_grow_with_each_resume() -> None:
    once = new_submission_id("one", STAMP)
    assert once == "one-resume-20261129-181503"
    assert new_submission_id(once, "20261130-000000") == "one-resume-20261130-000000"
