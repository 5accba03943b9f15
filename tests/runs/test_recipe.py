"""How a run was started, from its processes, its container, its job."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import sightings
from children import end_session
from sightings import NOW, container, job, process

from tui.model.reading import Absence, Unknown
from tui.model.recipe import Recipe, RecipeKind
from tui.runs import origin, recipe, recipe_sources
from tui.runs.bounds import bounds_of
from tui.runs.docker_answers import FoundContainer
from tui.runs.merge import FoundRun
from tui.runs.process import RunProcess, find_processes
from tui.runs.ray_jobs import URL
from tui.runs.recipe import captured, describes

DEMO = (sys.executable, "-m", "tui.demo", "--speed", "1", "--num-rollout", "5000")
TRAIN = "python3 train.py --save /ckpt/run-a"


def taken(run: FoundRun) -> Recipe:
    found = captured(run, NOW)
    assert isinstance(found, Recipe), found
    return found


# Real processes


@contextmanager
def started(folder: Path, *argv: str, **options: Any) -> Iterator[RunProcess]:
    """The driver that this starts, seen."""
    leader = subprocess.Popen(
        argv, cwd=folder, start_new_session=True, **{"stdin": subprocess.DEVNULL, **options}
    )
    try:
        yield _driver_of(leader.pid)
    finally:
        end_session(leader)
        if leader.stdin is not None:
            leader.stdin.close()


def _driver_of(session: int) -> RunProcess:
    end = time.monotonic() + 60.0
    while time.monotonic() < end:
        for driver in find_processes(time.time()).drivers:
            if os.getsid(driver.pid) == session:
                return driver
        time.sleep(0.05)
    raise AssertionError("no driver came")


def test_a_driver_that_prints_into_a_file(tmp_path: Path) -> None:
    log = tmp_path / "plain.log"
    argv = (*DEMO, "--dir", str(tmp_path / "demo"), "--wandb-key", "hunter2hunter2")
    with (
        log.open("wb") as out,
        started(tmp_path, *DEMO, "--dir", str(tmp_path / "demo"), stdout=out, stderr=out) as driver,
    ):
        found = taken(FoundRun(driver=driver))
        expected = Path(f"/proc/{driver.pid}/environ").read_bytes().split(b"\0")[:-1]
        assert describes(found, FoundRun(driver=driver))
    assert argv[: len(found.argv)] == found.argv
    assert [f"{name}={value}".encode() for name, value in found.environment or ()] == expected
    assert found == Recipe(
        kind=RecipeKind.PROCESS,
        source=f"driver, process {driver.pid}",
        captured_at=NOW,
        run_started_at=driver.started_at,
        pid=driver.pid,
        argv=driver.argv,
        environment=found.environment,
        cwd=str(tmp_path),
        bounds=bounds_of(os.getpid()),
        log=str(log),
    )


def test_what_a_script_around_it_did_is_said_and_what_it_exported_is_known(tmp_path: Path) -> None:
    script = tmp_path / "start.sh"
    script.write_text(f"export GREETING='good day'\n{' '.join(DEMO)} --dir demo > a.log 2>&1\ntrue")
    with started(tmp_path, "bash", "start.sh", "--wandb-key", "hunter2hunter2") as driver:
        found = taken(FoundRun(driver=driver))
    assert ("GREETING", "good day") in (found.environment or ())
    (line,) = found.missing
    assert line.startswith("it was started by `bash start.sh --wandb-key ")
    assert "hunter2hunter2" not in line


def test_a_pipe_and_something_to_read_are_said(tmp_path: Path) -> None:
    read, write = os.pipe()
    try:
        with started(
            tmp_path, *DEMO, "--dir", "demo", stdin=subprocess.PIPE, stdout=write, stderr=write
        ) as driver:
            found = taken(FoundRun(driver=driver))
    finally:
        os.close(read)
        os.close(write)
    assert found.log == ""
    assert found.missing == (
        "log: it prints into a pipe that ends in no file: a start makes a new file for it",
        "its output went through a pipe: a start writes into the new log itself",
        "it was given something to read as standard input: a start gives it nothing",
    )


def test_a_process_of_another_user_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with started(tmp_path, *DEMO, "--dir", "demo", stdout=subprocess.DEVNULL) as driver:
        monkeypatch.setattr("os.geteuid", lambda: 54321)
        found = captured(FoundRun(driver=driver), NOW)
    assert found == Unknown(
        why=Absence.NO_PERMISSION,
        reason=f"process {driver.pid} is another user's: run milepost as that user or with sudo",
        at=NOW,
    )


def test_a_process_that_is_gone_meanwhile_has_no_environment(tmp_path: Path) -> None:
    with started(tmp_path, *DEMO, "--dir", "demo", stdout=subprocess.DEVNULL) as driver:
        assert origin.environment_of(driver)
        stranger = replace(driver, started_at=driver.started_at - 100.0)
        assert origin.environment_of(stranger) is None
    assert origin.environment_of(driver) is None


# Sources, of which the best counts


@pytest.fixture
def _readable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Processes that are made up can be read."""
    for module in (recipe, recipe_sources):
        monkeypatch.setattr(module, "may_be_read", lambda _: True)
    monkeypatch.setattr(recipe_sources, "environment_of", lambda _: (("PATH", "/bin"),))


def elsewhere(pid: int, line: str, **changes: Any) -> RunProcess:
    return process(pid, line, is_elsewhere=True, **changes)


def in_container(line: str = "bash start.sh", **changes: Any) -> FoundContainer:
    return container("run-a", line, pid=0, **changes)


@pytest.mark.usefixtures("_readable")
def test_the_client_beats_all_else() -> None:
    client = process(7, f"docker run --rm --name=run-a -v /data:/ckpt miles {TRAIN}", log="/a.log")
    run = FoundRun(
        client=client, container=in_container(), driver=elsewhere(9, TRAIN), is_here=False
    )
    found = taken(run)
    assert (found.kind, found.is_client, found.pid) == (RecipeKind.PROCESS, True, 7)
    assert (found.container_name, found.removes_container) == ("run-a", True)
    assert found.container_id == sightings.id_of("run-a")
    assert (found.log, found.mounts) == ("/a.log", (("/data/ckpt", "/ckpt"),))
    alone = taken(FoundRun(client=client, is_here=False))
    assert alone.mounts == (("/data", "/ckpt"),)


@pytest.mark.usefixtures("_readable")
@pytest.mark.parametrize("verb", ["logs -f", "attach", "start -a"])
def test_a_client_that_only_shows_output_starts_nothing(verb: str) -> None:
    client = process(7, f"docker {verb} run-a", log="/a.log")
    found = taken(FoundRun(client=client, container=in_container(), is_here=False))
    assert found.kind is RecipeKind.CONTAINER
    assert found.argv == ("bash", "start.sh")
    assert found.log == ""
    assert found.missing == (
        f"`docker {verb.split()[0]}`, process 7, only shows its output: what a new container "
        "prints is in `docker logs`",
    )


@pytest.mark.usefixtures("_readable")
def test_a_run_that_was_started_by_exec() -> None:
    client = process(7, f"docker exec tools {TRAIN}", log="/a.log", cwd="/lab")
    run = FoundRun(
        client=client,
        container=container("tools", "sleep infinity"),
        driver=elsewhere(9, TRAIN),
        is_here=False,
    )
    found = taken(run)
    assert (found.kind, found.container_name, found.container_id) == (RecipeKind.PROCESS, "", "")
    assert found.missing == (
        "it was started in container tools: that has to run when it starts again",
    )


@pytest.mark.usefixtures("_readable")
@pytest.mark.parametrize(
    ("command", "by_hand"),
    [
        ("bash", True),
        ("/bin/bash -l", True),
        ("/opt/entrypoint.sh bash", True),
        ("tini -- sleep infinity", True),
        ("sh -c 'sleep 1000'", True),
        ("tail -f /dev/null", True),
        ("bash start.sh", False),
        ("sh -c 'ray start --head; sleep infinity'", False),
        (f"sh -c '{TRAIN}; bash'", False),
        ("python3 /lab/launch.py", False),
        ("python3 train.py --shell bash", False),
    ],
)
def test_a_command_that_only_waits_means_that_it_was_started_by_hand(
    command: str, by_hand: bool
) -> None:
    run = FoundRun(
        container=container("dev", command), driver=elsewhere(9, TRAIN, cwd="/lab"), is_here=False
    )
    found = taken(run)
    if not by_hand:
        assert found.kind is RecipeKind.CONTAINER
        return
    assert found.kind is RecipeKind.PROCESS
    assert found.source == "process 9, started by hand in container dev"
    words = ("exec", "--env=PATH=/bin", "--workdir=/lab", "dev", *TRAIN.split())
    assert found.argv[1:] == words


@pytest.mark.usefixtures("_readable")
def test_secrets_of_a_run_by_hand_are_passed_on_and_not_typed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = (("HF_TOKEN", "hunter2"), ("HOME", "/root"), ("BASH_FUNC_x%%", "() { :; }"))
    monkeypatch.setattr(recipe_sources, "environment_of", lambda _: pairs)
    monkeypatch.setenv("DOCKER_HOST", "tcp://192.0.2.1:2375")
    run = FoundRun(container=container("dev", "bash"), driver=elsewhere(9, TRAIN), is_here=False)
    found = taken(run)
    assert found.argv[1:5] == ("exec", "--env=HF_TOKEN", "--env=HOME=/root", "dev")
    environment = dict(found.environment or ())
    assert environment["HF_TOKEN"] == "hunter2"
    assert environment["HOME"] == os.environ["HOME"]
    assert environment["DOCKER_HOST"] == "tcp://192.0.2.1:2375"


@pytest.mark.usefixtures("_readable")
def test_the_outermost_launcher_counts() -> None:
    launchers = (
        process(7, "python3 scripts/run_qwen3.py", log="/a.log"),
        process(8, "python3 /bin/ray job submit -- python3 train.py"),
    )
    found = taken(FoundRun(driver=process(9, TRAIN), launchers=launchers))
    assert (found.source, found.pid, found.log) == ("run_qwen3.py, process 7", 7, "/a.log")
    found = taken(FoundRun(driver=process(9, TRAIN), launchers=launchers[1:]))
    assert found.source == "ray job submit, process 8"
    assert "it submits to a Ray cluster, which has to be up when it starts again" in found.missing


def test_a_job_whose_submitter_is_gone() -> None:
    env = '{"env_vars": {"A": "1"}, "working_dir": "gcs://_ray_pkg_1.zip"}'
    ray = replace(job("one", TRAIN), runtime_env=env, metadata=(("owner", "me"),))
    found = taken(FoundRun(driver=process(9, TRAIN, submission_id="one"), job=ray))
    assert (found.kind, found.submission_id, found.address) == (RecipeKind.JOB, "one", URL)
    assert (found.entrypoint, found.runtime_env) == (TRAIN, env)
    assert found.metadata == (("owner", "me"),)
    assert len(found.missing) == 2
    untold = taken(FoundRun(driver=process(9, TRAIN, submission_id="one")))
    assert untold.entrypoint == TRAIN
    assert untold.missing == ("Ray does not tell of the job: its runtime environment is not known",)


def test_a_docker_client_of_another_user_leaves_the_container() -> None:
    client = process(1 << 30, f"docker run --name=run-a miles {TRAIN}")
    found = taken(FoundRun(client=client, container=in_container(), is_here=False))
    assert found.kind is RecipeKind.CONTAINER
    assert "another user's: a container like this one is created instead" in found.missing[0]


@pytest.mark.usefixtures("_readable")
@pytest.mark.parametrize(
    ("run", "why", "reason"),
    [
        (
            FoundRun(container=container("run-a", "bash"), is_idle=True, is_here=False),
            Absence.MISSING,
            "nothing of a run is seen in it yet",
        ),
        (
            FoundRun(driver=elsewhere(9, TRAIN), is_here=False, hidden_by="no permission"),
            Absence.NO_PERMISSION,
            "it runs in a container that Docker does not tell of: no permission",
        ),
        (
            FoundRun(client=process(7, "docker logs -f run-a"), is_here=False),
            Absence.MISSING,
            "nothing tells how it was started",
        ),
    ],
)
def test_what_cannot_be_told_has_a_reason(run: FoundRun, why: Absence, reason: str) -> None:
    assert captured(run, NOW) == Unknown(why=why, reason=reason, at=NOW)


def test_environment_of_a_container_is_as_it_was_given() -> None:
    told = ("A=1", "B=two words", "C=x=y", "odd")
    found = taken(FoundRun(container=in_container(environment=told), is_here=False))
    assert found.environment == (("A", "1"), ("B", "two words"), ("C", "x=y"))


# Whether a recipe is of this start


def test_a_recipe_describes_its_own_start_only() -> None:
    started_by = Recipe(
        kind=RecipeKind.PROCESS, source="", captured_at=NOW, pid=9, run_started_at=NOW
    )
    assert describes(started_by, FoundRun(driver=process(9, TRAIN)))
    assert not describes(started_by, FoundRun(driver=process(9, TRAIN, after_s=60.0)))
    assert not describes(started_by, FoundRun(driver=process(8, TRAIN)))
    in_a = replace(started_by, container_id=sightings.id_of("run-a"))
    assert describes(in_a, FoundRun(container=in_container()))
    assert not describes(in_a, FoundRun(container=container("run-b")))
    of_job = replace(started_by, submission_id="one")
    assert describes(of_job, FoundRun(job=job("one")))
    assert not describes(of_job, FoundRun(job=job("two")))


def test_all_in_the_session_of_a_start_of_ours_is_of_that_start(tmp_path: Path) -> None:
    line = f"{' '.join(DEMO)} --dir demo & disown; exec true"
    with started(tmp_path, "bash", "-c", line, stdout=subprocess.DEVNULL) as driver:
        session = os.getsid(driver.pid)
        ours = Recipe(
            kind=RecipeKind.PROCESS,
            source="",
            captured_at=NOW,
            run_started_at=driver.started_at - 1.0,
            ours=True,
            pid=session,
        )
        assert describes(ours, FoundRun(driver=driver))
        assert not describes(replace(ours, ours=False), FoundRun(driver=driver))
        later = replace(ours, run_started_at=driver.started_at + 60.0)
        assert not describes(later, FoundRun(driver=driver))
