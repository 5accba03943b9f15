"""What the run's child processes share: commands on stdin, reports on stdout, one small server.

A child ends when its stdin does, so no death of the run, however sudden, leaves one behind.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

_SPEAKING = threading.Lock()


def report(**message: object) -> None:
    """One message to the run."""
    line = json.dumps(message) + "\n"
    try:
        with _SPEAKING:
            sys.stdout.write(line)
            sys.stdout.flush()
    except OSError:  # the run is gone, and so are we
        os._exit(0)


def obey(perform: Callable[[dict[str, Any]], None]) -> None:
    """Perform the run's commands until it is gone, then end this process."""
    for line in sys.stdin:
        perform(json.loads(line))
    os._exit(0)


def unblock_signals() -> None:
    """The run blocks its stop signals, and a child inherits that."""
    signal.pthread_sigmask(signal.SIG_UNBLOCK, signal.valid_signals())


Reply = tuple[int, str, str]
"""Status, content type, text."""


class Server(ThreadingHTTPServer):
    """Answers a table of paths, on threads that do not hold up the end."""

    daemon_threads = True
    allow_reuse_address = True

    def __init__(
        self,
        address: tuple[str, int],
        routes: Mapping[str, Callable[[], Reply]],
        on_hit: Callable[[str], None],
    ) -> None:
        super().__init__(address, Answer)
        self.routes = routes
        self.on_hit = on_hit

    def handle_error(self, request: Any, client_address: Any) -> None:
        # A client that hangs up is no event.
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class Answer(BaseHTTPRequestHandler):
    """One request; tells the server of it in uvicorn's words."""

    protocol_version = "HTTP/1.1"
    server: Server

    def do_GET(self) -> None:
        route = self.server.routes.get(self.path.partition("?")[0])
        status, kind, text = route() if route else (404, "application/json", _NOT_FOUND)
        raw = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(raw)))
        self.end_headers()
        self.wfile.write(raw)

    def log_request(self, code: int | str = "-", _size: int | str = "-") -> None:
        host, port = self.client_address[:2]
        status = HTTPStatus(int(code))
        self.server.on_hit(f'{host}:{port} - "{self.requestline}" {status} {status.phrase}')

    def log_message(self, *args: object) -> None:
        """Keep http.server's own words out of the run's log."""


_NOT_FOUND = '{"detail":"Not Found"}'


def serve(
    host: str,
    port: int,
    routes: Mapping[str, Callable[[], Reply]],
    on_hit: Callable[[str], None] = lambda _: None,
) -> int:
    """Answer `routes` from a background thread; the port that was taken."""
    server = Server((host, port), routes, on_hit)
    threading.Thread(target=server.serve_forever, daemon=True, name="http").start()
    return int(server.server_address[1])
