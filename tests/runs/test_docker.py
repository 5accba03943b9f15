"""Docker's SDK against an engine of our own that answers over TCP: its real client, our answers."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest

from tui.model.launch import Container
from tui.model.reading import Absence, Known, Unknown
from tui.runs import docker
from tui.runs.docker import DockerEngine
from tui.runs.docker_answers import LastExit, found_container, last_exit, was_told_to_end

NOW = 1_795_956_000.0
ID = "ab12" * 16


def inspected(name: str = "run-a", **changes: Any) -> dict[str, Any]:
    return {
        "Id": ID,
        "Name": f"/{name}",
        "Path": "bash",
        "Args": ["-c", "python3 /root/miles/train.py --save /ckpt"],
        "RestartCount": 2,
        "State": {
            "Status": "running",
            "Running": True,
            "OOMKilled": False,
            "ExitCode": 0,
            "StartedAt": "2026-11-29T12:00:00.123456789Z",
            "FinishedAt": "0001-01-01T00:00:00Z",
        },
        "HostConfig": {"AutoRemove": True},
        "Config": {"Image": "radixark/miles:latest", "Tty": False, "Env": ["A=b"]},
        "Mounts": [{"Source": "/data/ckpt", "Destination": "/ckpt"}, {"Destination": "/tmp"}],
        **changes,
    }


class FakeEngine:
    """Answers by path; `None` is a 404 as Docker words it."""

    def __init__(self) -> None:
        self.containers: dict[str, dict[str, Any]] = {}
        self.failing: dict[str, tuple[int, str]] = {}
        self.events = ""
        self.logs = b""
        self.asked: list[tuple[str, dict[str, list[str]]]] = []

    def answer(self, path: str) -> tuple[int, bytes]:
        parts = path.split("/")[2:] if path.startswith("/v1") else path.split("/")[1:]
        for word, (status, message) in self.failing.items():
            if word in parts:
                return status, json.dumps({"message": message}).encode()
        match parts:
            case ["version"]:
                return 200, b'{"ApiVersion": "1.41"}'
            case ["events"]:
                return 200, self.events.encode()
            case ["containers", "json"]:
                return 200, json.dumps([{"Id": name} for name in self.containers]).encode()
            case ["containers", name, what] if name in self.containers:
                return 200, self.logs if what == "logs" else json.dumps(
                    self.containers[name]
                ).encode()
            case _:
                return 404, b'{"message": "No such container: x"}'


@pytest.fixture
def fake(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeEngine]:
    engine = FakeEngine()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            url = urlsplit(self.path)
            engine.asked.append((url.path, parse_qs(url.query)))
            status, body = engine.answer(url.path)
            self.send_response(status)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *args: Any) -> None:
            """Keep quiet."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{server.server_address[1]}")
    yield engine
    server.shutdown()
    server.server_close()
    thread.join()


@pytest.fixture
def engine(fake: FakeEngine) -> Iterator[DockerEngine]:
    engine = DockerEngine()
    yield engine
    engine.close()


def test_a_running_container(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.containers["run-a"] = inspected()
    assert engine.inspect("run-a", NOW) == Known(
        value=Container(
            id=ID,
            name="run-a",
            image="radixark/miles:latest",
            status="running",
            restart_count=2,
            auto_remove=True,
            started_at=1_795_953_600.123456,
            mounts=(("/data/ckpt", "/ckpt"),),
        ),
        at=NOW,
    )


@pytest.mark.parametrize("status", ["exited", "removing", "dead"])
def test_one_that_ended(fake: FakeEngine, engine: DockerEngine, status: str) -> None:
    state = {
        "Status": status,
        "Running": False,
        "OOMKilled": True,
        "ExitCode": 137,
        "StartedAt": "2026-11-29T12:00:00Z",
        "FinishedAt": "2026-11-29T12:00:05Z",
    }
    fake.containers["run-a"] = inspected(State=state, Config={"Tty": True})
    reading = engine.inspect("run-a", NOW)
    assert isinstance(reading, Known)
    seen = reading.value
    assert (seen.status, seen.exit_code, seen.oom_killed) == (status, 137, True)
    assert seen.finished_at - seen.started_at == 5.0
    assert seen.log_opts_tty


def test_one_that_never_ran_has_no_exit_code(fake: FakeEngine, engine: DockerEngine) -> None:
    state = {"Status": "created", "ExitCode": 0, "FinishedAt": "0001-01-01T00:00:00Z"}
    fake.containers["run-a"] = inspected(State=state)
    reading = engine.inspect("run-a", NOW)
    assert isinstance(reading, Known)
    assert (reading.value.status, reading.value.exit_code) == ("created", None)


def test_one_that_is_not_there_is_gone(engine: DockerEngine) -> None:
    assert engine.inspect("run-a", NOW) == Known(
        value=Container(id="", name="run-a", image="", status="gone"), at=NOW
    )


def test_odd_answers_give_defaults() -> None:
    assert found_container({}).container == Container(id="", name="", image="", status="")
    odd: dict[str, Any] = {
        "State": None,
        "Config": [],
        "Mounts": None,
        "Args": None,
        "HostConfig": "x",
    }
    assert found_container(odd).argv == ("",)


def test_an_error_of_the_engine_is_told(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.containers["run-a"] = inspected()
    fake.failing["run-a"] = (500, "the disk is full")
    assert engine.inspect("run-a", NOW) == Unknown(
        why=Absence.ERROR, reason="Docker says: the disk is full", at=NOW
    )
    del fake.failing["run-a"]
    assert isinstance(engine.inspect("run-a", NOW), Known)


def test_no_engine_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    assert DockerEngine().containers(NOW) == Unknown(
        why=Absence.MISSING, reason="Docker is not running or not installed", at=NOW
    )


def test_no_permission_names_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    def locked(_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(docker, "_knock", locked)
    reading = DockerEngine().inspect("run-a", NOW)
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.NO_PERMISSION
    assert "docker group" in reading.reason


def test_a_silent_engine_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(docker, "ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as silent:
        monkeypatch.setenv("DOCKER_HOST", f"tcp://127.0.0.1:{silent.getsockname()[1]}")
        reading = DockerEngine().inspect("run-a", NOW)
    assert isinstance(reading, Unknown)
    assert reading.why is Absence.TIMED_OUT


@pytest.mark.parametrize("host", ["garbage", "ssh://nowhere.invalid", "tcp://127.0.0.1:1"])
def test_a_host_that_is_none_is_unknown(monkeypatch: pytest.MonkeyPatch, host: str) -> None:
    monkeypatch.setenv("DOCKER_HOST", host)
    assert isinstance(DockerEngine().containers(NOW), Unknown)


@pytest.mark.parametrize(
    ("changes", "is_found"),
    [
        ({"Config": {"Image": "radixark/miles:latest"}, "Args": []}, True),
        ({"Config": {"Image": "x"}, "Args": ["-c", "python3 train_async.py"]}, True),
        ({"Config": {"Image": "slimerl/slime:dev"}, "Args": []}, True),
        ({"Config": {"Image": "x", "Env": ["PYTHONPATH=/root/miles"]}, "Args": []}, True),
        ({"Config": {"Image": "x"}, "Args": ["-m", "tui.demo"]}, True),
        ({"Config": {"Image": "smiles/postgres"}, "Args": ["pretrain.py"]}, False),
        ({"Config": {"Image": "milepost"}, "Args": ["sleep", "9"]}, False),
    ],
)
def test_finding_miles(
    fake: FakeEngine, engine: DockerEngine, changes: dict[str, Any], is_found: bool
) -> None:
    fake.containers["run-a"] = inspected(**changes)
    found = engine.find_miles_containers(NOW)
    assert isinstance(found, Known)
    assert [one.container.name for one in found.value] == (["run-a"] if is_found else [])


def test_finding_by_name_or_id_and_not_by_prefix(fake: FakeEngine, engine: DockerEngine) -> None:
    answer = inspected(Config={"Image": "x"}, Args=["sleep", "9"])
    fake.containers = dict.fromkeys(("run-a", ID, ID[:12], "ab"), answer)
    for name, count in (("run-a", 1), (ID, 1), (ID[:12], 1), ("ab", 0), ("other", 0)):
        found = engine.find_miles_containers(NOW, name)
        assert isinstance(found, Known)
        assert len(found.value) == count


def test_a_found_container_shows_no_secret(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.containers["run-a"] = inspected(
        Config={"Image": "radixark/miles", "Env": ["HF_TOKEN=hidden"]}, Args=["--x", "hidden"]
    )
    found = engine.find_miles_containers(NOW)
    assert isinstance(found, Known)
    assert found.value[0].environment == ("HF_TOKEN=hidden",)
    assert "hidden" not in repr(found)


def test_a_list_with_one_just_removed(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.containers = {"run-a": inspected(), "run-b": inspected("run-b")}
    fake.failing["run-b"] = (404, "No such container: run-b")
    listed = engine.containers(NOW, stopped=True)
    assert isinstance(listed, Known)
    assert [container.name for container in listed.value] == ["run-a"]
    assert ("/v1.41/containers/json", "1") in [
        (path, query.get("all", ["0"])[0]) for path, query in fake.asked
    ]


def event(action: str, **attributes: str) -> str:
    actor = {"ID": ID, "Attributes": attributes}
    return json.dumps({"Action": action, "Actor": actor, "timeNano": int(NOW * 1e9)})


def test_how_a_removed_container_ended(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.events = "\n".join((event("oom"), "torn {", event("die", exitCode="137"), "{}"))
    assert engine.last_exit(ID, since=NOW - 5, until=NOW) == LastExit(
        exit_code=137, oom_killed=True, at=NOW
    )
    _, query = fake.asked[-1]
    assert query["since"] == [f"{NOW - 5:.6f}"]
    assert json.loads(query["filters"][0]) == {"container": [ID], "event": ["die", "oom"]}


@pytest.mark.parametrize("events", ["", "[]", "3", event("oom"), event("die"), '{"Action": "die"}'])
def test_an_end_nobody_remembers(events: str) -> None:
    assert last_exit(events) is None


def killed(signal: object) -> str:
    return json.dumps({"Action": "kill", "Actor": {"Attributes": {"signal": signal}}})


@pytest.mark.parametrize(
    ("events", "told"),
    [
        (killed("15"), True),
        (f"{killed('1')}\n{killed('9')}", True),
        (killed("1"), False),
        (killed(15), False),
        (killed({}), False),
        ('{"Action": "kill"}\n3\n[]\nnot JSON', False),
        ("", False),
    ],
)
def test_who_told_a_container_to_end(events: str, told: bool) -> None:
    assert was_told_to_end(events) is told


def frame(stream: int, payload: bytes) -> bytes:
    return bytes((stream, 0, 0, 0)) + len(payload).to_bytes(4, "big") + payload


def test_following_a_log_without_a_tty(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.containers["run-a"] = inspected()
    fake.logs = frame(2, b"step 11") + frame(1, b"other\n") + frame(2, b": {}\nend")
    text = b"".join(engine.follow_logs("run-a", NOW))
    assert text == b"other\nstep 11: {}\n"
    (query,) = (query for path, query in fake.asked if path.endswith("/logs"))
    assert (query["follow"], query["since"]) == (["1"], [f"{NOW:.6f}"])
    assert query["timestamps"] == ["1"]


@pytest.mark.parametrize("status", ["exited", "dead"])
def test_the_last_line_of_one_that_ended_may_be_open(
    fake: FakeEngine, engine: DockerEngine, status: str
) -> None:
    fake.containers["run-a"] = inspected(State={"Status": status, "Running": False})
    fake.logs = frame(1, b"one\nlast words")
    assert b"".join(engine.follow_logs("run-a", NOW)) == b"one\nlast words\n"


def test_what_there_is_can_be_read_without_waiting(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.containers["run-a"] = inspected()
    fake.logs = frame(1, b"one\n")
    assert b"".join(engine.follow_logs("run-a", NOW, follow=False)) == b"one\n"
    (query,) = (query for path, query in fake.asked if path.endswith("/logs"))
    assert query["follow"] == ["0"]


def test_following_a_log_with_a_tty(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.containers["run-a"] = inspected(Config={"Tty": True})
    fake.logs = b"\x01\x00\x00 raw bytes\r\n"
    assert b"".join(engine.follow_logs("run-a", NOW)) == fake.logs


def test_the_log_of_a_gone_container_is_a_missing_file(engine: DockerEngine) -> None:
    with pytest.raises(FileNotFoundError, match="no container run-a"):
        next(engine.follow_logs("run-a", NOW))


def test_a_log_the_driver_does_not_give(fake: FakeEngine, engine: DockerEngine) -> None:
    fake.containers["run-a"] = inspected()
    fake.failing["logs"] = (501, "configured logging driver does not support reading")
    with pytest.raises(ConnectionError, match="does not support reading"):
        next(engine.follow_logs("run-a", NOW))


def test_a_log_without_an_engine_is_an_os_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCKER_HOST", "unix:///nonexistent/docker.sock")
    with pytest.raises(ConnectionError, match="Docker is not running"):
        next(DockerEngine().follow_logs("run-a", NOW))


def test_without_an_engine_the_sdk_is_not_even_imported() -> None:
    code = (
        "import sys; from tui.runs.docker import DockerEngine; "
        "print(DockerEngine().inspect('run-a', 1.0)); sys.exit('docker' in sys.modules)"
    )
    environment = {**os.environ, "DOCKER_HOST": "unix:///nonexistent/docker.sock"}
    ran = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True
    )
    assert "Docker is not running" in ran.stdout
    assert ran.returncode == 0
