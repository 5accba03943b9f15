"""Engines over real sockets: what is asked, how seldom, and what silence and noise do."""

from __future__ import annotations

import json
import socket
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tui.model.engine import EngineProbe, RouterProbe
from tui.model.events import EnginesProbed
from tui.model.launch import Attachment, Found
from tui.model.progress import LogEngine, Story
from tui.model.reading import NOT_ASKED, Absence, Known, Unknown
from tui.model.snapshot import Snapshot
from tui.probes import engine_watch, engines, http_get
from tui.probes.engines import EnginesProbe

NOW = 1_795_956_000.0
METRICS = 'sglang:num_running_reqs{tp_rank="0"} 4\nsglang:generation_tokens_total 100\n'


@dataclass
class FakeServer:
    """A real HTTP server that answers by path and counts who asked what."""

    port: int
    answers: dict[str, tuple[int, str]] = field(default_factory=dict)
    asked: Counter[str] = field(default_factory=Counter)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextmanager
def serving(answers: dict[str, tuple[int, str]], port: int = 0) -> Iterator[FakeServer]:
    fake = FakeServer(port=port, answers=answers)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            fake.asked[self.path] += 1
            status, body = fake.answers.get(self.path, (404, ""))
            self.send_response(status)
            if 300 <= status < 400:
                self.send_header("Location", body)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            with suppress(OSError):
                self.wfile.write(body.encode())

        def log_message(self, *args: Any) -> None:
            """Keep quiet."""

    class Server(ThreadingHTTPServer):
        request_queue_size = 128

    server = Server(("127.0.0.1", port), Handler)
    fake.port = server.server_address[1]
    thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
    thread.start()
    try:
        yield fake
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@contextmanager
def accepting(talk: Callable[[socket.socket], None] | None = None) -> Iterator[str]:
    """A server that takes connections and then says nothing, or what `talk` says."""
    listener = socket.create_server(("127.0.0.1", 0))
    taken: list[socket.socket] = []

    def serve() -> None:
        while True:
            try:
                connection, _ = listener.accept()
            except OSError:
                return
            taken.append(connection)
            if talk is not None:
                with suppress(OSError):
                    talk(connection)

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        listener.close()
        for connection in taken:
            with suppress(OSError):
                connection.shutdown(socket.SHUT_RDWR)
            connection.close()
        thread.join()


def engine(**more: tuple[int, str]) -> dict[str, tuple[int, str]]:
    return {
        "/metrics": (200, METRICS),
        "/health": (200, ""),
        "/model_info": (200, '{"weight_version": "3"}'),
        **more,
    }


def watching(*urls: str, **story: Any) -> Snapshot:
    given = tuple(Found(value=url, source="--engine") for url in urls)
    return Snapshot(attachment=Attachment(engines=given), story=Story(**story))


def look(probe: EnginesProbe, now: float, seen: Snapshot) -> EnginesProbed:
    (event,) = probe.read(now, seen)
    assert isinstance(event, EnginesProbed)
    assert event.at == now
    return event


def look_until(
    probe: EnginesProbe, now: float, seen: Snapshot, wanted: Callable[[EnginesProbed], bool]
) -> EnginesProbed:
    deadline = time.monotonic() + 20.0
    while not wanted(event := look(probe, now, seen)):
        assert time.monotonic() < deadline, f"never came true: {event}"
        time.sleep(0.01)
    return event


def only(event: EnginesProbed) -> EngineProbe:
    (one,) = event.engines
    return one


@pytest.fixture(autouse=True)
def _patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """A busy machine makes no test fail."""
    for module, limit in (
        (http_get, "CONNECT_S"),
        (http_get, "ANSWER_S"),
        (engines, "_WAIT_S"),
    ):
        monkeypatch.setattr(module, limit, 30.0)


@pytest.fixture
def dead_url() -> str:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return f"http://127.0.0.1:{listener.getsockname()[1]}"


def test_nothing_is_told_while_no_address_is_known() -> None:
    assert EnginesProbe().read(NOW, Snapshot()) == ()


def test_a_working_engine() -> None:
    with serving(engine()) as server:
        seen = only(look(EnginesProbe(), NOW, watching(f"127.0.0.1:{server.port}/")))
    assert seen.url == server.url
    assert seen.reachable == Known(value=True, at=NOW)
    assert isinstance(seen.metrics, Known)
    assert seen.metrics.value.running_requests == 4.0
    assert seen.weight_version == Known(value="3", at=NOW)
    assert isinstance(seen.health_status, Unknown)
    assert server.asked == Counter({"/metrics": 1, "/model_info": 1})


def test_five_minutes_cost_the_log_few_lines() -> None:
    probe = EnginesProbe()
    with serving(engine()) as server:
        for second in range(0, 300, 2):
            look(probe, NOW + second, watching(server.url))
    assert server.asked == Counter({"/metrics": 30, "/model_info": 1})


def test_an_engine_without_metrics_is_asked_for_its_health() -> None:
    probe = EnginesProbe()
    with serving(engine(**{"/metrics": (404, "")})) as server:
        looks = [look(probe, NOW + second, watching(server.url)) for second in range(0, 300, 2)]
    seen = only(looks[-1])
    assert isinstance(seen.metrics, Unknown)
    assert seen.metrics.why is Absence.NOT_SUPPORTED
    assert seen.health_status == Known(value=200, at=NOW + 270)
    assert server.asked == Counter({"/metrics": 5, "/health": 10, "/model_info": 1})


def test_generation_is_never_asked_for() -> None:
    probe = EnginesProbe()
    with serving({}) as server:
        for second in range(0, 120, 2):
            look(probe, NOW + second, watching(server.url, router_url=server.url))
    assert server.asked["/health"] > 0
    assert "/health_generate" not in server.asked


def test_a_reading_keeps_the_time_it_was_measured() -> None:
    probe = EnginesProbe()
    with serving(engine()) as server:
        look(probe, NOW, watching(server.url))
        seen = only(look(probe, NOW + 8, watching(server.url)))
    assert seen.reachable == Known(value=True, at=NOW + 8)
    assert isinstance(seen.metrics, Known)
    assert seen.metrics.at == NOW
    assert seen.weight_version == Known(value="3", at=NOW)


def test_a_clock_set_back_does_not_silence_the_probe() -> None:
    probe = EnginesProbe()
    with serving(engine()) as server:
        look(probe, NOW, watching(server.url))
        seen = only(look(probe, NOW - 3600, watching(server.url)))
    assert isinstance(seen.metrics, Known)
    assert seen.metrics.at == NOW - 3600


def test_starting_up() -> None:
    answers = engine(**{"/metrics": (503, ""), "/health": (503, "")})
    probe = EnginesProbe()
    with serving(answers) as server:
        seen = only(look(probe, NOW, watching(server.url)))
        assert seen.health_status == Known(value=503, at=NOW)
        assert isinstance(seen.metrics, Unknown)
        assert seen.metrics.reason == "answered 503"
        assert server.asked["/model_info"] == 0
        server.answers = engine()
        seen = only(look(probe, NOW + 10, watching(server.url)))
    assert isinstance(seen.metrics, Known)
    assert isinstance(seen.health_status, Unknown)
    assert seen.weight_version == Known(value="3", at=NOW + 10)


def test_refused_is_an_answer(dead_url: str) -> None:
    seen = only(look(EnginesProbe(), NOW, watching(dead_url)))
    assert seen.reachable == Known(value=False, at=NOW)
    assert seen.metrics == Unknown(why=Absence.MISSING, reason="connection refused", at=NOW)
    assert seen.health_status == seen.metrics


def test_a_restarted_engine_is_asked_anew() -> None:
    probe = EnginesProbe()
    with serving(engine()) as server:
        look(probe, NOW, watching(server.url))
        port = server.port
    seen = only(look(probe, NOW + 2, watching(f"127.0.0.1:{port}")))
    assert seen.reachable == Known(value=False, at=NOW + 2)
    with serving(engine(**{"/model_info": (200, '{"weight_version": "1"}')}), port):
        seen = only(look(probe, NOW + 4, watching(f"127.0.0.1:{port}")))
    assert isinstance(seen.metrics, Known)
    assert seen.metrics.at == NOW + 4
    assert seen.weight_version == Known(value="1", at=NOW + 4)


def test_counters_that_start_again_are_a_restart() -> None:
    probe = EnginesProbe()
    with serving(engine()) as server:
        look(probe, NOW, watching(server.url))
        server.answers = engine(
            **{
                "/metrics": (200, METRICS.replace("100", "5")),
                "/model_info": (200, '{"weight_version": "default"}'),
            }
        )
        seen = only(look(probe, NOW + 10, watching(server.url)))
    assert seen.weight_version == Known(value="default", at=NOW + 10)


def test_a_weight_update_is_followed_but_not_chased() -> None:
    probe = EnginesProbe()
    with serving(engine()) as server:
        for second in range(0, 60, 2):
            seen = watching(server.url, weights_updated_at=NOW + second)
            look(probe, NOW + second, seen)
    assert server.asked["/model_info"] == 6


def test_a_silent_engine_delays_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(engines, "_WAIT_S", 0.1)
    with accepting() as silent, serving(engine()) as server:
        event = look_until(
            EnginesProbe(),
            NOW,
            watching(silent, server.url),
            lambda event: isinstance(event.engines[1].weight_version, Known),
        )
    assert event.engines[0].reachable == Known(value=True, at=NOW)
    assert event.engines[0].metrics is NOT_ASKED


def test_silence_is_a_reading_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http_get, "ANSWER_S", 0.2)
    with accepting() as silent:
        seen = only(look(EnginesProbe(), NOW, watching(silent)))
    for reading in (seen.metrics, seen.health_status):
        assert reading == Unknown(
            why=Absence.TIMED_OUT, reason="no whole answer within 0.2 s", at=NOW
        )


def drip(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Length: 100000\r\n\r\n")
    while True:
        connection.sendall(b"#")
        time.sleep(0.02)


def drip_in_the_header(connection: socket.socket) -> None:
    connection.sendall(b"HTTP/1.1 200 OK\r\nX: ")
    while True:
        connection.sendall(b"#")
        time.sleep(0.02)


@pytest.mark.parametrize("talk", [drip, drip_in_the_header])
def test_a_drip_is_cut_off(
    talk: Callable[[socket.socket], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http_get, "ANSWER_S", 0.5)
    with accepting(talk) as url:
        answer = http_get.fetch(url, "/metrics", NOW)
    assert isinstance(answer, Unknown)
    assert answer.why is Absence.TIMED_OUT


def test_a_torn_connection_is_a_fault() -> None:
    with accepting(lambda connection: connection.shutdown(socket.SHUT_RDWR)) as url:
        answer = http_get.fetch(url, "/metrics", NOW)
    assert isinstance(answer, Unknown)
    assert answer.why is Absence.ERROR


@pytest.mark.parametrize("noise", [b"\x00\xff\r\n\r\n", b"SSH-2.0-x\r\n", b"HTTP/1.1 abc\r\n\r\n"])
def test_noise_is_a_fault(noise: bytes) -> None:
    def talk(connection: socket.socket) -> None:
        connection.sendall(noise)
        connection.shutdown(socket.SHUT_WR)

    with accepting(talk) as url:
        seen = only(look(EnginesProbe(), NOW, watching(url)))
    assert seen.reachable == Known(value=True, at=NOW)
    assert isinstance(seen.metrics, Unknown)
    assert seen.metrics.why is Absence.ERROR


def test_a_redirect_is_not_followed() -> None:
    with serving(engine()) as other:
        redirect = engine(**{"/metrics": (307, f"{other.url}/metrics")})
        with serving(redirect) as server:
            seen = only(look(EnginesProbe(), NOW, watching(server.url)))
    assert isinstance(seen.metrics, Unknown)
    assert seen.metrics.reason == "answered 307"
    assert not other.asked


def test_a_huge_body_is_cut_behind_a_whole_line() -> None:
    body = METRICS + "# filler\n" * 400_000 + "sglang:num_queue_reqs 9\n"
    with serving(engine(**{"/metrics": (200, body)})) as server:
        answer = http_get.fetch(server.url, "/metrics", NOW)
        seen = only(look(EnginesProbe(), NOW, watching(server.url)))
    assert isinstance(answer, Known)
    assert len(answer.value.text) <= http_get.MOST_BYTES
    assert answer.value.text.endswith("filler\n")
    assert isinstance(seen.metrics, Known)
    assert seen.metrics.value.running_requests == 4.0
    assert seen.metrics.value.queued_requests == 0.0


def test_proxies_of_the_environment_are_not_used(
    monkeypatch: pytest.MonkeyPatch, dead_url: str
) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.setenv(name, dead_url)
    with serving(engine()) as server:
        seen = only(look(EnginesProbe(), NOW, watching(server.url)))
    assert isinstance(seen.metrics, Known)


def test_what_is_no_address_is_said() -> None:
    seen = only(look(EnginesProbe(), NOW, watching("not an address")))
    assert seen.url == "not an address"
    assert isinstance(seen.reachable, Unknown)
    assert "not an address like" in seen.reachable.reason


def test_an_unroutable_address_points_at_the_network(monkeypatch: pytest.MonkeyPatch) -> None:
    def unroutable(*args: object, **kwargs: object) -> socket.socket:
        raise OSError(113, "No route to host")

    monkeypatch.setattr(socket, "create_connection", unroutable)
    seen = only(look(EnginesProbe(), NOW, watching("http://192.0.2.1:15000")))
    assert seen.reachable == Unknown(
        why=Absence.ERROR,
        reason="no route: is the run in another network namespace?",
        at=NOW,
    )


def test_a_bug_in_a_look_comes_out_of_the_read(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(url: str, at: float) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(engine_watch, "connect", broken)
    with pytest.raises(ZeroDivisionError):
        EnginesProbe().read(NOW, watching("http://192.0.2.1:15000"))


def workers(*urls: str) -> tuple[int, str]:
    return 200, json.dumps({"workers": [{"url": url} for url in urls]})


def test_engines_come_from_the_router_and_the_log() -> None:
    with serving(engine()) as first, serving(engine()) as second:
        logged = LogEngine(index=0, host="127.0.0.1", port=second.port)
        both = LogEngine(index=1, host="127.0.0.1", port=first.port)
        with serving({"/workers": workers(f"{first.url}/", f"{first.url}@1")}) as router:
            seen = Snapshot(story=Story(router_url=router.url, engines=(logged, both)))
            probe = EnginesProbe()
            look(probe, NOW, seen)
            event = look(probe, NOW + 2, seen)
            assert event.router == RouterProbe(
                url=router.url, workers=Known(value=(first.url,), at=NOW)
            )
            assert {one.url for one in event.engines} == {first.url, second.url}
            assert len(event.engines) == 2


def test_the_router_is_asked_every_quarter_minute() -> None:
    with serving({"/workers": workers()}) as router:
        probe = EnginesProbe()
        for second in range(0, 120, 2):
            look(probe, NOW + second, Snapshot(story=Story(router_url=router.url)))
    assert router.asked == Counter({"/workers": 8})


def test_the_older_list_is_found_and_kept_to() -> None:
    listed = {"/list_workers": (200, '{"urls": ["http://127.0.0.1:1"]}')}
    with serving(listed) as router:
        probe = EnginesProbe()
        seen = Snapshot(story=Story(router_url=router.url))
        event = [look(probe, NOW + second, seen) for second in range(0, 60, 15)][-1]
    assert event.router is not None
    assert event.router.workers == Known(value=("http://127.0.0.1:1",), at=NOW + 45)
    assert router.asked == Counter({"/list_workers": 4, "/workers": 1})


def test_a_dead_router_leaves_the_logs_engines(dead_url: str) -> None:
    with serving(engine()) as server:
        logged = (LogEngine(index=0, host="127.0.0.1", port=server.port),)
        seen = Snapshot(story=Story(router_url=dead_url, engines=logged))
        event = look(EnginesProbe(), NOW, seen)
    assert only(event).url == server.url
    assert event.router is not None
    assert isinstance(event.router.workers, Unknown)
    assert event.router.workers.reason == "connection refused"


def test_an_engine_that_moved_is_let_go() -> None:
    with serving(engine()) as old, serving(engine()) as new:
        probe = EnginesProbe()
        look(probe, NOW, watching(old.url))
        seen = only(look(probe, NOW + 2, watching(new.url)))
    assert seen.url == new.url
    assert look(probe, NOW + 4, Snapshot()).engines == ()
    assert probe.read(NOW + 6, Snapshot()) == ()
