"""The words of Docker's client: whose client it is, and when it is one that stays."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tui.runs.docker_client import DockerCommand, docker_command


def read(line: str) -> DockerCommand | None:
    return docker_command(shlex.split(line), "/home/me")


@pytest.mark.parametrize(
    ("line", "container", "image", "command"),
    [
        ("docker run --rm radixark/miles bash", "", "radixark/miles", ("bash",)),
        ("/usr/bin/docker run -it --name run-a miles", "run-a", "miles", ()),
        ("docker container run --name=run-a miles sh -c 'a b'", "run-a", "miles", ("sh", "-c", "a b")),
        ("docker -H unix:///x --context lab run --name run-a miles", "run-a", "miles", ()),
        ("docker --debug run -itv /a:/b --gpus all --ipc=host -e A=b miles python x -d", "", "miles", ("python", "x", "-d")),
        ("docker run --shm-size 32g --ulimit memlock=-1 --network=host miles", "", "miles", ()),
        ("docker run --init --privileged --read-only -P -q miles", "", "miles", ()),
        ("docker run -e A -w/root -- miles x", "", "miles", ("x",)),
    ],
)  # fmt: skip
def test_run(line: str, container: str, image: str, command: tuple[str, ...]) -> None:
    found = read(line)
    assert found is not None
    assert (found.verb, found.container, found.image) == ("run", container, image)
    assert found.command == command


@pytest.mark.parametrize(
    ("line", "verb", "container"),
    [
        ("docker start -a run-a", "start", "run-a"),
        ("docker start --attach --interactive run-a", "start", "run-a"),
        ("docker attach --no-stdin run-a", "attach", "run-a"),
        ("docker logs -f --tail 100 run-a", "logs", "run-a"),
        ("docker logs --follow -n 5 run-a", "logs", "run-a"),
        ("docker exec -it -w /root -e A=b run-a bash -c 'python train.py'", "exec", "run-a"),
        ("docker container exec run-a bash", "exec", "run-a"),
    ],
)
def test_others_that_print_what_a_container_prints(line: str, verb: str, container: str) -> None:
    found = read(line)
    assert found is not None
    assert (found.verb, found.container) == (verb, container)


@pytest.mark.parametrize(
    "line",
    [
        "docker run -d miles",
        "docker run --detach --rm miles",
        "docker run -itd miles",
        "docker exec -d run-a bash",
        "docker start run-a",
        "docker logs run-a",
        "docker ps",
        "docker compose up",
        "docker run",
        "docker run --name run-a",
        "docker",
        "dockerd --host x",
        "podman run miles",
        "bash -c 'docker run miles'",
        "",
    ],
)
def test_what_is_none_or_ends_at_once(line: str) -> None:
    assert read(line) is None


def test_mounts_and_the_file_of_the_id() -> None:
    found = read(
        "docker run -v /data/ckpt:/ckpt -v ./runs:/runs:ro -v named:/cache -v /anonymous "
        "--mount type=bind,source=/hf,target=/root/hf --mount type=bind,src=/a,dst=/b,readonly "
        "--mount type=tmpfs,target=/t --cidfile run.id miles"
    )
    assert found is not None
    assert found.mounts == (
        ("/data/ckpt", "/ckpt"),
        ("/home/me/runs", "/runs"),
        ("/hf", "/root/hf"),
        ("/a", "/b"),
    )
    assert found.cidfile == "/home/me/run.id"


def test_a_secret_in_the_command_is_not_shown() -> None:
    assert "hidden" not in repr(read("docker run -e HF_TOKEN=hidden miles --wandb-key hidden"))


WORDS = st.one_of(
    st.text(max_size=6), st.sampled_from(("-", "--", "-v", "--mount", "--name", "=", "run", "-it"))
)


@given(st.lists(WORDS, max_size=8))
def test_any_words_are_read(argv: list[str]) -> None:
    docker_command(["docker", *argv])
    docker_command(["docker", "run", *argv])
