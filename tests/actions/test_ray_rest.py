"""Ray's REST interface, told to stop and to start jobs. The answers are those of Ray 2.60."""

from __future__ import annotations

import json
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tui.actions import ray_jobs
from tui.actions.ray_jobs import Outcome, find, stop, submit
from tui.model.reading import Absence, Known, Reading, Unknown
from tui.model.target import JobTarget

AT = 5.0
EXISTS = (
    'Traceback (most recent call last):\n  File "job_head.py", line 421, in submit_job\n'
    "RuntimeError: Request failed with status code 500: Traceback …\n"
    "ValueError: Job with submission_id one already exists. Please use a different submission_id.\n"
    "."
)


@dataclass
class FakeRay:
    """What it answers to a POST of a path, and what it was sent."""

    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    listed: str = "[]"
    sent: list[tuple[str, Any]] = field(default_factory=list)
    agents: list[str] = field(default_factory=list)


@contextmanager
def serving(fake: FakeRay) -> Iterator[str]:
    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            fake.sent.append((self.path, json.loads(body)))
            fake.agents.append(self.headers["User-Agent"])
            self._answer(*fake.answers[self.path])

        def do_GET(self) -> None:
            self._answer(200, fake.listed)

        def _answer(self, status: int, text: str) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


def asked_to_stop(status: int, text: str) -> Reading[Outcome]:
    fake = FakeRay(answers={"/api/jobs/one/stop": (status, text)})
    with serving(fake) as address:
        return stop(JobTarget(submission_id="one", address=address), AT)


def submitted(status: int, text: str) -> tuple[Reading[Outcome], FakeRay]:
    fake = FakeRay(answers={"/api/jobs/": (status, text)})
    with serving(fake) as address:
        job = JobTarget(submission_id="one", address=address)
        answer = submit(
            job, "python3 train.py --load /ckpt", AT,
            runtime_env={"env_vars": {"A": "b"}}, metadata={"who": "me"},
        )  # fmt: skip
    return answer, fake


@pytest.mark.parametrize(
    ("status", "text", "outcome"),
    [
        (200, '{"stopped": true}', Outcome.DONE),
        (200, '{"stopped": false}', Outcome.ALREADY),
        (404, "Job one does not exist", Outcome.ALREADY),
    ],
)
def test_a_job_is_told_to_stop(status: int, text: str, outcome: Outcome) -> None:
    answer = asked_to_stop(status, text)
    assert isinstance(answer, Known), answer
    assert (answer.value, answer.at) == (outcome, AT)


@pytest.mark.parametrize(
    ("status", "text", "why", "reason"),
    [
        (404, "<html>nothing here</html>", Absence.ERROR, "Ray says: <html>nothing here</html>"),
        (500, "Traceback …\nTimeoutError: no agent", Absence.ERROR, "Ray says: TimeoutError: no agent"),
        (400, "Can only stop submission type jobs", Absence.ERROR, "Ray says: Can only stop submission type jobs"),
        (401, "Unauthorized", Absence.NO_PERMISSION, "Ray says: Unauthorized"),
        (500, "", Absence.ERROR, "Ray says: 500"),
    ],
)  # fmt: skip
def test_a_refusal_to_stop(status: int, text: str, why: Absence, reason: str) -> None:
    answer = asked_to_stop(status, text)
    assert answer == Unknown(why=why, reason=reason, at=AT)


def test_a_job_is_submitted_under_the_id_it_was_given() -> None:
    answer, fake = submitted(200, '{"job_id": "one", "submission_id": "one"}')
    assert isinstance(answer, Known)
    assert answer.value is Outcome.DONE
    assert fake.sent == [
        (
            "/api/jobs/",
            {
                "entrypoint": "python3 train.py --load /ckpt",
                "submission_id": "one",
                "runtime_env": {"env_vars": {"A": "b"}},
                "metadata": {"who": "me"},
            },
        )
    ]
    assert not fake.agents[0].startswith("Mozilla")  # Ray takes no POST of a browser


def test_a_job_that_was_submitted_before_is_left_as_it_is() -> None:
    answer, _ = submitted(500, EXISTS)
    assert isinstance(answer, Known), answer
    assert answer.value is Outcome.ALREADY


def test_a_refusal_shows_no_secret() -> None:
    answer, _ = submitted(500, "Traceback …\nRuntimeError: WANDB_API_KEY=topsecret42 is no key")
    assert isinstance(answer, Unknown)
    assert "topsecret42" not in answer.reason
    assert "RuntimeError" in answer.reason


def test_a_job_is_found_among_all() -> None:
    listed = [
        {"submission_id": "two", "status": "RUNNING"},
        {"submission_id": "one", "status": "STOPPED"},
    ]
    with serving(FakeRay(listed=json.dumps(listed))) as address:
        found = find(JobTarget(submission_id="one", address=address), AT)
        missing = find(JobTarget(submission_id="three", address=address), AT)
    assert isinstance(found, Known)
    assert (found.value.status, found.value.is_active) == ("STOPPED", False)
    assert isinstance(missing, Unknown)
    assert missing.why is Absence.MISSING
    with serving(FakeRay(listed="<html>")) as address:
        other = find(JobTarget(submission_id="one", address=address), AT)
    assert isinstance(other, Unknown)
    assert other.why is Absence.ERROR


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        address = f"http://127.0.0.1:{server.getsockname()[1]}"
    job = JobTarget(submission_id="one", address=address)
    for answer in (stop(job, AT), find(job, AT)):
        assert isinstance(answer, Unknown)
        assert answer.why is Absence.MISSING


def test_a_server_that_is_silent_or_talks_nonsense(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_jobs, "_ANSWER_S", 0.2)
    with socket.create_server(("127.0.0.1", 0)) as server:
        job = JobTarget(submission_id="one", address=f"http://127.0.0.1:{server.getsockname()[1]}")
        silent = stop(job, AT)
        assert isinstance(silent, Unknown)
        assert silent.why is Absence.TIMED_OUT

        server.accept()[0].close()

        def talk() -> None:
            with server.accept()[0] as taken:
                taken.recv(4096)
                taken.sendall(b"nonsense\r\n\r\n")

        threading.Thread(target=talk, daemon=True).start()
        nonsense = stop(job, AT)
        assert isinstance(nonsense, Unknown)
        assert nonsense.why is Absence.ERROR


def test_an_id_cannot_reach_another_path() -> None:
    fake = FakeRay(answers={"/api/jobs/..%2F..%2Fx%3F/stop": (200, '{"stopped": true}')})
    with serving(fake) as address:
        answer = stop(JobTarget(submission_id="../../x?", address=address), AT)
    assert isinstance(answer, Known)
