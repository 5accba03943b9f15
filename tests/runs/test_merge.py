"""The same run seen in several ways is one; different ones stay apart. No process is started."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from sightings import FORBIDDEN, container, id_of, job, process, seen

from tui.model.reading import Absence, Unknown
from tui.runs.merge import FoundRun, merged
from tui.runs.process import RunProcess

TRAIN = "python3 /root/miles/train.py --save /ckpt --num-rollout 200"
RUN = "docker run --rm radixark/miles bash run.sh"
NO_DOCKER = Unknown(why=Absence.NO_PERMISSION, reason="no permission for Docker: join the group")


def the_run(runs: tuple[FoundRun, ...]) -> FoundRun:
    (run,) = runs
    return run


def test_a_container_its_client_its_driver_its_launchers_and_its_job_are_one() -> None:
    inside: dict[str, Any] = {"container_id": id_of("run-a"), "is_elsewhere": True}
    client = process(10, "docker run --rm --name run-a radixark/miles bash run.sh")
    script = process(20, "python scripts/run_qwen.py", **inside)
    submit = process(30, f"python ray job submit -- {TRAIN}", ancestors=(25, 20), **inside)
    driver = process(40, TRAIN, inner_pid=7, ancestors=(35, 2), **inside)
    one = container("run-a", "bash run.sh", pid=2)
    its_job = job("raysubmit_A", TRAIN, pid=7)

    def run_of(*launchers: RunProcess) -> FoundRun:
        return the_run(
            merged(
                seen(
                    drivers=[driver],
                    launchers=launchers,
                    clients=[client],
                    containers=[one],
                    jobs=[its_job],
                )
            )
        )

    run = run_of(script, submit)
    assert (run.driver, run.container, run.client, run.job) == (driver, one, client, its_job)
    assert run.launchers == (script, submit)
    assert run == run_of(submit, script)
    assert (run.is_here, run.is_idle, run.hidden_by) == (False, False, "")
    for name in ("run-a", id_of("run-a"), id_of("run-a")[:12], "40", "10", "20", "raysubmit_A"):
        assert run.answers_to(name)
    for name in ("", "run", "7", "4", id_of("run-a")[:8]):
        assert not run.answers_to(name)


def test_a_driver_belongs_to_the_container_whose_first_process_it_descends_from() -> None:
    runs = merged(
        seen(
            drivers=[process(40, TRAIN, ancestors=(30, 20), is_elsewhere=True)],
            containers=[container("other", pid=19), container("run-a", pid=20)],
        )
    )
    assert {run.container.container.name: run.is_idle for run in runs if run.container} == {
        "run-a": False,
        "other": True,
    }


def test_pids_of_docker_mean_nothing_inside_a_container() -> None:
    runs = merged(
        seen(
            drivers=[process(40, TRAIN, ancestors=(20,))],
            containers=[container("other", pid=20), container("ours")],
            own_container=id_of("ours"),
        )
    )
    run = next(run for run in runs if run.driver is not None)
    assert run.container is not None
    assert (run.container.container.name, run.is_here) == ("ours", True)
    assert not any(run.is_idle for run in runs)


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("docker run --name run-b radixark/miles bash", "run-b"),
        (f"docker attach {id_of('run-b')[:12]}", "run-b"),
        (f"docker logs -f {id_of('run-b')[:4]}", "run-b"),
        ("docker start -a run-b", "run-b"),
        (f"docker exec run-b {TRAIN}", "run-b"),
        ("docker exec run-b top", ""),
        ("docker run --name run-c radixark/miles bash", ""),
    ],
)
def test_a_client_that_names_its_container(line: str, name: str) -> None:
    runs = merged(
        seen(
            clients=[process(10, line)],
            containers=[container("run-a", pid=2), container("run-b", pid=3)],
        )
    )
    with_client = [run for run in runs if run.client is not None and run.container is not None]
    assert [run.container and run.container.container.name for run in with_client] == (
        [name] if name else []
    )


def test_clients_without_a_name_are_told_apart_by_image_command_and_time() -> None:
    slow = process(10, RUN, after_s=0.0)  # pulled its image first
    quick = process(11, RUN, after_s=60.0)
    late = process(12, RUN, after_s=500.0)
    other = process(13, "docker run --rm radixark/miles bash other.sh", after_s=61.0)
    runs = merged(
        seen(
            clients=[late, other, quick, slow],
            containers=[
                container("of-slow", "bash run.sh", after_s=300.0),
                container("of-quick", "bash run.sh", after_s=61.0),
                container("of-other", "/entry.sh bash other.sh", after_s=62.0),
                container("of-nobody", "bash run.sh", image="other/miles", after_s=70.0),
            ],
        )
    )
    found = {
        run.container.container.name if run.container else "": run.client and run.client.pid
        for run in runs
    }
    assert found == {"of-slow": 10, "of-quick": 11, "of-other": 13, "of-nobody": None, "": 12}


def test_of_several_clients_the_one_that_prints_into_a_file_counts() -> None:
    shell = process(10, "docker run -it --name run-a radixark/miles bash")
    copied = process(11, "docker logs -f run-a", log="/home/me/copy.log")
    run = the_run(merged(seen(clients=[shell, copied], containers=[container("run-a")])))
    assert run.client == copied
    printing = replace(shell, output=copied.output)
    run = the_run(merged(seen(clients=[copied, printing], containers=[container("run-a")])))
    assert run.client == printing


def test_a_client_whose_container_is_still_to_come_is_a_run_and_of_nothing_else() -> None:
    pull = process(10, RUN)
    noise = process(11, "docker run --rm alpine sh")
    assert the_run(merged(seen(clients=[pull, noise]))).client == pull


class TestWithoutDocker:
    def test_the_client_of_the_same_command_is_the_drivers(self) -> None:
        drivers = [
            process(40, TRAIN, is_elsewhere=True),
            process(41, f"{TRAIN} --seed 2", is_elsewhere=True),
        ]
        clients = [
            process(10, f"docker run -v /data:/ckpt radixark/miles {TRAIN} --seed 2"),
            process(11, f"docker run -v /data:/ckpt radixark/miles {TRAIN}"),
        ]
        runs = merged(seen(drivers=drivers, clients=clients, containers=NO_DOCKER))
        pairs = {(run.driver and run.driver.pid, run.client and run.client.pid) for run in runs}
        assert pairs == {(40, 11), (41, 10)}
        assert {run.hidden_by for run in runs} == {NO_DOCKER.reason}

    def test_the_only_client_is_the_only_hidden_drivers(self) -> None:
        driver, client = process(40, TRAIN, is_elsewhere=True), process(10, RUN)
        run = the_run(merged(seen(drivers=[driver], clients=[client], containers=NO_DOCKER)))
        assert (run.driver, run.client) == (driver, client)

    def test_a_driver_outside_of_containers_has_none(self) -> None:
        runs = merged(
            seen(drivers=[process(40, TRAIN)], clients=[process(10, RUN)], containers=NO_DOCKER)
        )
        assert len(runs) == 2
        assert [run.hidden_by for run in runs if run.driver] == [""]


class TestRay:
    @pytest.mark.parametrize(
        ("changes", "job_pid", "line"),
        [
            ({"submission_id": "raysubmit_A"}, 0, "bash run.sh"),
            ({"inner_pid": 7}, 7, "bash run.sh"),
            ({}, 0, TRAIN),
            ({}, 0, f"python {TRAIN.partition(' ')[2]}"),
        ],
    )
    def test_a_job_is_its_drivers(self, changes: dict[str, Any], job_pid: int, line: str) -> None:
        driver, own = process(40, TRAIN, **changes), job("raysubmit_A", line, pid=job_pid)
        other = job("raysubmit_B", "python train.py --save /other", pid=8)
        runs = merged(seen(drivers=[driver], jobs=[other, own]))
        assert [(run.driver, run.job) for run in runs if run.driver] == [(driver, own)]
        assert [run.job for run in runs if not run.driver] == [other]

    def test_a_client_is_of_the_job_that_it_submitted(self) -> None:
        launchers = [
            process(20, f"python ray job submit --submission-id one -- {TRAIN}", after_s=0.0),
            process(21, f"python ray job submit --submission-id two -- {TRAIN}", after_s=1.0),
        ]
        drivers = [
            process(40, TRAIN, submission_id="two", after_s=3.0),
            process(41, TRAIN, submission_id="one", after_s=2.0),
        ]
        jobs = [job("one", TRAIN), job("two", TRAIN)]
        runs = merged(seen(drivers=drivers, launchers=launchers, jobs=jobs))
        triples = {
            (run.driver and run.driver.pid, run.job and run.job.submission_id, run.launchers[0].pid)
            for run in runs
        }
        assert triples == {(40, "two", 21), (41, "one", 20)}

    def test_a_script_that_was_submitted_and_not_yet_drives(self) -> None:
        submit = process(20, "python ray job submit -- bash run.sh", after_s=-5.0)
        run = the_run(merged(seen(launchers=[submit], jobs=[job("a", "bash run.sh")])))
        assert (run.launchers, run.submission_id) == ((submit,), "a")

    def test_a_launcher_is_a_run_before_there_is_a_driver(self) -> None:
        script = process(20, "python scripts/run_qwen.py --save /ckpt", log="/home/me/plain.log")
        run = the_run(merged(seen(launchers=[script])))
        assert (run.launchers, run.driver, run.is_here) == ((script,), None, True)

    def test_the_job_on_the_hosts_network_is_the_only_containers(self) -> None:
        one = container("run-a", pid=2, shares_network=True)
        run = the_run(merged(seen(containers=[one], jobs=[job("a", TRAIN)])))
        assert (run.container, run.is_idle) == (one, False)
        apart = merged(seen(containers=[container("run-a", pid=2)], jobs=[job("a", TRAIN)]))
        assert len(apart) == 2

    def test_an_ended_job_is_a_run_only_when_named(self) -> None:
        ended = seen(jobs=[job("a", TRAIN, status="FAILED")])
        assert merged(ended) == ()
        assert the_run(merged(ended, ended_job="a")).submission_id == "a"


def test_two_drivers_in_one_container_are_two_runs() -> None:
    inside: dict[str, Any] = {"container_id": id_of("run-a"), "is_elsewhere": True}
    drivers = [process(40, TRAIN, **inside), process(41, f"{TRAIN} --seed 2", **inside)]
    runs = merged(seen(drivers=drivers, containers=[container("run-a", pid=2)]))
    assert [run.container is not None for run in runs] == [True, True]


def test_the_newest_comes_first() -> None:
    drivers = [process(40, TRAIN, after_s=1.0), process(41, f"{TRAIN} --seed 2", after_s=9.0)]
    runs = merged(seen(drivers=drivers, containers=[container("run-a", after_s=5.0)]))
    assert [run.started_at for run in runs] == sorted(
        (run.started_at for run in runs), reverse=True
    )
    assert len(runs) == 3


def test_what_is_forbidden_is_merged_all_the_same() -> None:
    driver = process(40, TRAIN, output=FORBIDDEN, container_id=id_of("run-a"), is_elsewhere=True)
    run = the_run(merged(seen(drivers=[driver], containers=[container("run-a")])))
    assert run.container is not None
