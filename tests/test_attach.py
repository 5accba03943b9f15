"""What is watched, from what a person named and what was sighted; where each value came from."""

from __future__ import annotations

import os
import socket
import threading
from collections.abc import Iterator
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from sightings import FORBIDDEN, NOW, container, id_of, job, process, seen

from tui import attach
from tui.attach import Target, attached, completed, found, started_again
from tui.errors import NothingFoundError, UsageError
from tui.model.action import ActionKind
from tui.model.journal import Entry, Mark
from tui.model.launch import Attachment, Found
from tui.model.reading import Absence, Unknown, known
from tui.runs import look, ray_jobs
from tui.runs.attachment import output_copy
from tui.runs.journal import Journal
from tui.runs.merge import Sightings
from tui.runs.output import OutputFile
from tui.runs.state_dir import keep, made, run_folder, run_id

TRAIN = "python3 /root/miles/train.py --save /ckpt/run-a --num-rollout 200"
NO_DOCKER = Unknown(why=Absence.NO_PERMISSION, reason="no permission for Docker: join the group")
INSIDE: dict[str, Any] = {"container_id": id_of("run-a"), "is_elsewhere": True}


@pytest.fixture
def sight(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Say what there is to be seen."""

    def sight(sightings: Sightings) -> None:
        monkeypatch.setattr(attach, "look_around", lambda *arguments: sightings)

    return sight


def printing_into(path: Path) -> dict[str, Any]:
    path.touch()
    opened = path.stat()
    file = OutputFile(path=str(path), device=opened.st_dev, inode=opened.st_ino)
    return {"output": known(file, NOW)}


class TestOneRun:
    def test_a_driver(self, sight: Any) -> None:
        sight(seen(drivers=[process(40, TRAIN, log="/home/me/plain.log")]))
        attachment = attached(Target(), at=NOW)

        assert attachment.name == "plain"
        assert attachment.log == Found(
            value="/home/me/plain.log", source="output of the driver, process 40"
        )
        assert attachment.checkpoints == Found(
            value="/ckpt/run-a", source="--save /ckpt/run-a of process 40"
        )
        assert attachment.launch.num_rollout == 200
        assert attachment.notes == ()

    def test_a_relative_save_path_begins_where_the_driver_does(self, sight: Any) -> None:
        driver = process(40, "python3 train.py --save ../ckpt", cwd="/home/me")
        sight(seen(drivers=[driver]))
        attachment = attached(Target(), at=NOW)
        assert attachment.checkpoints is not None
        assert attachment.checkpoints.value == "/home/ckpt"

        sight(seen(drivers=[replace(driver, cwd="")]))
        attachment = attached(Target(), at=NOW)
        assert attachment.checkpoints is None
        assert "relative to a folder that cannot be read; name it with" in attachment.notes[-1]

    def test_a_container_by_environment_alone(self, sight: Any) -> None:
        one = container(
            "run-a",
            "python scripts/run_qwen.py",
            environment=("HF_TOKEN=hidden", "MILES_SCRIPT_EXTRA_ARGS=--save /ckpt/x --save-interval 7"),
        )  # fmt: skip
        sight(seen(containers=[one]))
        attachment = attached(Target(), at=NOW)

        assert attachment.launch.save_interval == 7
        assert attachment.checkpoints == Found(
            value="/data/ckpt/x",
            source="--save /ckpt/x of container run-a, through a mount of container run-a",
        )
        assert attachment.log == Found(
            value=str(output_copy(id_of("run-a"))),
            source="container run-a, its output copied here",
        )
        assert "hidden" not in repr(attachment)

    def test_the_docker_client_prints_the_log(self, sight: Any) -> None:
        client = process(10, "docker run --name run-a radixark/miles bash", log="/runs/plain.log")
        driver = process(40, TRAIN, log="/tmp/own.log", **INSIDE)
        sight(seen(drivers=[driver], clients=[client], containers=[container("run-a")]))
        attachment = attached(Target(), at=NOW)
        assert (attachment.name, attachment.log) == (
            "run-a",
            Found(value="/runs/plain.log", source="output of `docker run`, process 10"),
        )

    def test_the_drivers_own_file_through_a_mount(self, sight: Any, tmp_path: Path) -> None:
        printed = printing_into(tmp_path / "own.log")
        inner = replace(printed["output"].value, path="/ckpt/own.log")
        driver = process(40, TRAIN, **{**INSIDE, "output": known(inner, NOW)})
        mounted = container("run-a", mounts=((str(tmp_path), "/ckpt"),))
        sight(seen(drivers=[driver], containers=[mounted]))
        log = attached(Target(), at=NOW).log
        assert log is not None
        assert log.value == str(tmp_path / "own.log")

        (tmp_path / "own.log").rename(tmp_path / "moved")
        (tmp_path / "own.log").touch()  # another file under the old name
        log = attached(Target(), at=NOW).log
        assert log is not None
        assert log.source == "container run-a, its output copied here"

    def test_what_docker_exec_started_is_not_in_dockers_log(self, sight: Any) -> None:
        driver = process(40, TRAIN, ancestors=(30,), **INSIDE)
        sight(seen(drivers=[driver], containers=[container("run-a", pid=2)]))
        attachment = attached(Target(), at=NOW)
        assert attachment.log is None
        assert "name the log with --log FILE" in attachment.notes[0]

    def test_a_save_path_on_no_mount_vanishes(self, sight: Any) -> None:
        driver = process(40, TRAIN.replace("/ckpt", "/root/saved"), **INSIDE)
        sight(seen(drivers=[driver], containers=[container("run-a")]))
        attachment = attached(Target(), at=NOW)
        assert attachment.checkpoints is None
        assert attachment.notes == (
            "checkpoints: --save /root/saved/run-a of process 40 is on no mount of container run-a:"
            " they vanish with it",
        )

    def test_without_docker_the_clients_words_map_paths(self, sight: Any) -> None:
        client = process(10, f"docker run -v /data:/ckpt radixark/miles {TRAIN}", output=FORBIDDEN)
        driver = process(40, TRAIN, output=FORBIDDEN, **INSIDE)
        sight(seen(drivers=[driver], clients=[client], containers=NO_DOCKER))
        attachment = attached(Target(), at=NOW)
        assert attachment.checkpoints is not None
        assert attachment.checkpoints.value == "/data/run-a"
        assert attachment.log is None
        assert [note.partition(":")[0] for note in attachment.notes] == [
            "log",
            "log",
            f"container {id_of('run-a')[:12]}",
        ]
        assert "with sudo" in attachment.notes[0]
        assert NO_DOCKER.reason in attachment.notes[-1]

    def test_beside_us_in_our_container_paths_are_as_they_are(self, sight: Any) -> None:
        driver = process(40, TRAIN, log="/tmp/plain.log")
        ours = container("run-a", mounts=(("/data", "/ckpt"),))
        sight(seen(drivers=[driver], containers=[ours], own_container=id_of("run-a")))
        attachment = attached(Target(), at=NOW)
        assert attachment.log is not None
        assert attachment.checkpoints is not None
        assert (attachment.log.value, attachment.checkpoints.value) == (
            "/tmp/plain.log",
            "/ckpt/run-a",
        )

    def test_a_job_alone_is_read_by_its_driver_log(
        self, sight: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        monkeypatch.setattr(ray_jobs, "LOGS", str(tmp_path))
        (tmp_path / "job-driver-a.log").touch()
        sight(seen(jobs=[job("a", TRAIN)]))
        attachment = attached(Target(), at=NOW)
        assert attachment.name == "a"
        assert attachment.log == Found(
            value=str(tmp_path / "job-driver-a.log"), source="driver log of Ray job a"
        )
        assert attachment.job is not None
        assert attachment.launch.save == "/ckpt/run-a"

    def test_a_container_that_does_nothing_counts_only_when_nothing_runs(self, sight: Any) -> None:
        idle = container("idle", pid=2)
        sight(seen(drivers=[process(40, TRAIN)], containers=[idle]))
        assert attached(Target(), at=NOW).container is None
        sight(seen(containers=[idle]))
        assert attached(Target(), at=NOW).name == "idle"


class TestNames:
    def test_several_are_listed_and_each_can_be_named(self, sight: Any) -> None:
        drivers = [
            process(40, TRAIN, log="/a/plain.log"),
            process(41, f"{TRAIN} --seed 2", log="/b/plain.log"),
        ]
        sight(seen(drivers=drivers, containers=[container("run-a")]))
        with pytest.raises(UsageError) as refused:
            attached(Target(), at=NOW)
        for handle in ("3 runs", "40 (plain)", "41 (plain)", "run-a"):
            assert handle in refused.value.message
        finding = found(Target(), at=NOW)
        for run in finding.choices:
            assert attached(Target(name=run.handle), at=NOW) == run.attachment

    def test_two_drivers_in_one_container_are_named_by_pid(self, sight: Any) -> None:
        drivers = [process(40, TRAIN, **INSIDE), process(41, f"{TRAIN} --x", **INSIDE)]
        sight(seen(drivers=drivers, containers=[container("run-a")]))
        handles = [run.handle for run in found(Target(), at=NOW).choices]
        assert sorted(handles) == ["40", "41"]
        with pytest.raises(UsageError, match="run-a fits 2 runs"):
            attached(Target(name="run-a"), at=NOW)

    def test_container_takes_no_pid(self, sight: Any) -> None:
        sight(seen(drivers=[process(40, TRAIN)]))
        assert attached(Target(name="40"), at=NOW).driver_pid is not None
        with pytest.raises(NothingFoundError, match="process 40"):
            attached(Target(container="40"), at=NOW)

    def test_an_ended_job_by_its_id(self, sight: Any) -> None:
        sight(seen(jobs=[job("raysubmit_A", TRAIN, status="FAILED")]))
        assert attached(Target(name="raysubmit_A"), at=NOW).job is not None
        assert attached(Target(), at=NOW).job is None

    def test_where_docker_cannot_be_asked_it_is_said(self, sight: Any) -> None:
        sight(seen(containers=NO_DOCKER))
        with pytest.raises(NothingFoundError, match="run-a cannot be looked up: no permission"):
            attached(Target(name="run-a"), at=NOW)

    def test_none_tells_what_was_looked_for(self, sight: Any) -> None:
        sight(seen(jobs=[job("raysubmit_A", TRAIN, status="FAILED")]))
        notes = " ".join(attached(Target(), at=NOW).notes)
        for words in ("containers of Miles: none", "train_async.py", "milepost raysubmit_A"):
            assert words in notes


class TestALogThatIsNamed:
    def test_its_writer_is_the_run(self, sight: Any, tmp_path: Path) -> None:
        log, link = tmp_path / "plain.log", tmp_path / "newest.log"
        link.symlink_to(log)
        drivers = [process(40, TRAIN, **printing_into(log)), process(41, f"{TRAIN} --seed 2")]
        sight(seen(drivers=drivers))
        for named in (log, link):
            attachment = attached(Target(log=named), at=NOW)
            assert attachment.driver_pid == Found(value="40", source="process 40")
            assert attachment.log == Found(value=str(named), source="--log")

    def test_a_copy_has_none_however_fresh(self, sight: Any, tmp_path: Path) -> None:
        copy = tmp_path / "copy.log"
        copy.touch()
        printed = printing_into(tmp_path / "plain.log")
        sight(seen(drivers=[process(40, TRAIN, **printed)]))
        for grows in (False, True):
            attachment = found(Target(log=copy), at=NOW, log_grows=grows).attachment
            assert attachment == Attachment(name="copy", log=Found(value=str(copy), source="--log"))

    def test_one_that_grows_is_the_only_runs_when_nothing_says_where_that_prints(
        self, sight: Any, tmp_path: Path
    ) -> None:
        log = tmp_path / "plain.log"
        log.touch()
        hidden = process(40, TRAIN, output=FORBIDDEN)
        sight(seen(drivers=[hidden]))
        assert found(Target(log=log), at=NOW).attachment.driver_pid is None
        assert found(Target(log=log), at=NOW, log_grows=True).attachment.driver_pid is not None
        sight(seen(drivers=[hidden, process(41, f"{TRAIN} --seed 2")]))
        assert found(Target(log=log), at=NOW, log_grows=True).attachment.driver_pid is None


def test_what_is_found_later_completes_and_replaces_nothing() -> None:
    log = Found(value="/a.log", source="--log")
    before = Attachment(name="a", log=log, notes=("old",), read_only=True)
    later = Attachment(
        name="run-a",
        log=Found(value="/b.log", source="x"),
        driver_pid=Found(value="40", source="process 40"),
    )
    after = completed(before, later)
    assert (after.log, after.driver_pid, after.name) == (log, later.driver_pid, "run-a")
    assert (after.notes, after.read_only) == ((), True)
    assert completed(before, Attachment(name="a", log=log)) == before
    assert completed(Attachment(notes=("old",)), Attachment(notes=("new",))).notes == ("new",)


class Answers(BaseHTTPRequestHandler):
    status, body = 200, b""

    def do_GET(self) -> None:
        self.send_response(self.status)
        self.send_header("Content-Length", str(len(self.body)))
        self.end_headers()
        self.wfile.write(self.body)

    def log_message(self, *arguments: Any) -> None:
        """Keep quiet."""


@pytest.fixture
def ray(monkeypatch: pytest.MonkeyPatch) -> Iterator[type[Answers]]:
    """What answers where Ray does."""
    handler = type("Handler", (Answers,), {})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setattr(ray_jobs, "URL", f"http://127.0.0.1:{server.server_address[1]}")
    yield handler
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def _no_docker(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")


@pytest.mark.usefixtures("_no_docker")
class TestLooking:
    def test_jobs_are_asked_for_over_rest(self, ray: type[Answers], data: Path) -> None:
        ray.body = (data / "captures" / "ray-jobs.json").read_bytes()
        attachment = attached(Target(name="raysubmit_RTeF8VHLjG1rkgw5"), at=NOW)
        assert attachment.launch.save_interval == 20

    @pytest.mark.parametrize(
        ("status", "body", "words"),
        [
            (401, b"[]", "answers with status 401"),
            (200, b"<html>", "what answers there is not Ray"),
        ],
    )
    def test_what_is_not_ray_is_said(
        self, ray: type[Answers], status: int, body: bytes, words: str
    ) -> None:
        ray.status, ray.body = status, body
        _, notes = attach.all_runs(NOW)
        assert words in " ".join(notes)

    def test_what_hangs_is_not_waited_for(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(look, "PATIENCE_S", 0.1)
        with socket.create_server(("127.0.0.1", 0)) as silent:
            port = silent.getsockname()[1]
            monkeypatch.setattr(ray_jobs, "URL", f"http://127.0.0.1:{port}")
            monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{port}")
            _, notes = attach.all_runs(NOW)
        told = " ".join(notes)
        assert "Docker did not answer within 0.1 s" in told
        assert "did not answer within 0.1 s" in told.partition("Ray jobs")[2]

    def test_our_own_process_is_none(self) -> None:
        with pytest.raises(NothingFoundError, match="not a Miles driver"):
            attached(Target(name=str(os.getpid())), at=NOW)


class TestById:
    """The id of a run is its state folder's name: it stays when container, log and pid do not."""

    def test_a_start_with_another_container_and_log_is_found(
        self, sight: Any, tmp_path: Path
    ) -> None:
        again = process(77, TRAIN, log="/home/me/plain-2.log", **INSIDE)
        sight(seen(drivers=[again], containers=[container("run-a")]))
        now = attached(Target(), at=NOW)
        made(run_folder(now))

        assert found(Target(name=run_id(now)), at=NOW, past=True).attachment == now

    def test_one_that_saves_nowhere_is_known_by_what_a_resume_started(
        self, sight: Any, tmp_path: Path
    ) -> None:
        before = Attachment(name="plain", log=Found(value="/home/me/plain.log", source="x"))
        folder = made(run_folder(before))
        entry = Entry(
            at=NOW,
            action="r",
            kind=ActionKind.RESUME,
            mark=Mark.NOTED,
            facts={"log": "/home/me/plain-resume.log"},
        )
        Journal(folder).write(entry)
        sight(seen(drivers=[process(77, "train.py", log="/home/me/plain-resume.log")]))
        finding = found(Target(name=folder.name), at=NOW, past=True)

        assert finding.attachment.driver_pid is not None
        assert finding.attachment.driver_pid.value == "77"

    def test_gone_it_is_watched_as_it_was_seen_last_and_no_stranger_with_its_pid(
        self, sight: Any
    ) -> None:
        log = Found(value="/home/me/plain.log", source="x")
        for pid, kept in ((os.getpid(), None), (2**22 + 1, str(2**22 + 1))):
            driver = Found(value=str(pid), source="x")
            before = Attachment(name="plain", log=log, driver_pid=driver)
            keep(before)
            sight(seen())
            gone = found(Target(name=run_id(before)), at=NOW, past=True).attachment

            assert gone.log == log
            assert (gone.driver_pid.value if gone.driver_pid else None) == kept

    def test_another_start_is_told_from_the_one_that_is_watched(self, sight: Any) -> None:
        first = process(40, TRAIN, log="/home/me/plain.log")
        sight(seen(drivers=[first]))
        before = attached(Target(), at=NOW)
        assert started_again(before, NOW) is None

        sight(seen(drivers=[process(41, TRAIN, log="/home/me/plain-2.log")]))
        later = started_again(before, NOW)
        assert later is not None
        assert later.driver_pid == Found(value="41", source="process 41")

        other = TRAIN.replace("run-a", "run-b")
        sight(seen(drivers=[process(42, other, log="/home/me/plain-3.log")]))
        assert started_again(before, NOW) is None
