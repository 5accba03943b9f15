"""Metrics for those who collect: a file for node_exporter, or a page on loopback.

Neither holds the watch: the newest snapshot is handed over, and the writing and answering is done
by threads of their own.
"""

from __future__ import annotations

import ipaddress
import logging
import os
import socket
import threading
from collections.abc import Callable
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from tui.errors import MilepostError, UsageError
from tui.guard.metrics import CONTENT_TYPE, exposition
from tui.model.snapshot import Snapshot
from tui.runs.state_dir import run_id

WRITE_EVERY_S = 5.0
_CLIENT_S = 5.0
_CLIENTS = 8
_CLOSE_S = 1.0
_LOG = logging.getLogger("milepost")


class Exporter:
    """Tells the newest snapshot to who collects metrics, the run by its id.

    Args:
        textfile: a file that is replaced in one step, for node_exporter's textfile collector.
        listen: an address to answer `GET /metrics` at.
    """

    def __init__(
        self, *, textfile: Path | None = None, listen: tuple[str, int] | None = None
    ) -> None:
        self._textfile = textfile
        self._listen = listen
        self._newest: Snapshot | None = None
        self._closing = threading.Event()
        self._server: ThreadingHTTPServer | None = None
        self._writer = threading.Thread(target=self._write, name="textfile", daemon=True)
        self.fault = ""
        """Why the file is not written; empty while it is."""

    def start(self) -> None:
        """Begin. Raises MilepostError where nobody can listen at that address."""
        if self._listen is not None:
            self._server = _server(self._listen, self._page)
            threading.Thread(target=self._server.serve_forever, name="metrics", daemon=True).start()
        if self._textfile is not None:
            self._writer.start()

    def export(self, snapshot: Snapshot) -> None:
        """Tell this from now on. Any thread; returns at once."""
        self._newest = snapshot

    def close(self) -> None:
        """Tell no more. The file goes: what it says is true no longer."""
        self._closing.set()
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
        if self._textfile is not None and self._writer.ident is not None:
            self._writer.join(_CLOSE_S)
            with suppress(OSError):
                self._textfile.unlink(missing_ok=True)

    @property
    def address(self) -> str:
        """Where it answers, such as `127.0.0.1:9400`; empty: nowhere."""
        if self._server is None:
            return ""
        host, port = self._server.server_address[:2]
        return f"[{host!s}]:{port}" if ":" in str(host) else f"{host!s}:{port}"

    def _page(self) -> str | None:
        snapshot = self._newest
        return None if snapshot is None else exposition(snapshot, run_id(snapshot.attachment))

    def _write(self) -> None:
        assert self._textfile is not None
        while True:
            if (page := self._page()) is not None:
                self._told(_replaced(self._textfile, page))
            if self._closing.wait(WRITE_EVERY_S):
                return

    def _told(self, fault: str) -> None:
        if fault and fault != self.fault:
            _LOG.warning("metrics: %s", fault)
        self.fault = fault


def listen_address(text: str, *, anywhere: bool) -> tuple[str, int]:
    """`127.0.0.1:9400` as host and port.

    Raises:
        UsageError: it is none, or others than this machine could read it and nobody said so.
    """
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or not int(port) <= 65535:
        raise UsageError(f"--listen {text}: no address", "as in --listen 127.0.0.1:9400")
    try:
        is_here = ipaddress.ip_address(host).is_loopback
    except ValueError:
        is_here = host == "localhost"
    if not is_here and not anywhere:
        raise UsageError(
            f"--listen {text}: others than this machine could read it there",
            "listen at 127.0.0.1, or say that it is meant with --listen-anywhere",
        )
    return host, int(port)


def _replaced(file: Path, page: str) -> str:
    """Write it in one step; empty, or why it could not be.

    The draft's name does not end in `.prom`, so that no collector reads it half written.
    """
    draft = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        draft.write_text(page, encoding="utf-8")
        draft.chmod(0o644)  # the collector is another user
        draft.replace(file)
    except OSError as fault:
        with suppress(OSError):
            draft.unlink(missing_ok=True)
        return f"{file}: {fault.strerror or fault}"
    return ""


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    block_on_close = False
    request_queue_size = _CLIENTS

    def __init__(self, address: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        if ":" in address[0]:
            self.address_family = socket.AF_INET6
        super().__init__(address, handler)

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that goes away is no news."""


def _server(address: tuple[str, int], page: Callable[[], str | None]) -> ThreadingHTTPServer:
    class Handler(BaseHTTPRequestHandler):
        timeout = _CLIENT_S
        server_version = "milepost"
        sys_version = ""

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/metrics":
                self._answer(HTTPStatus.NOT_FOUND, "text/plain", "metrics are at /metrics\n")
            elif (told := page()) is None:
                self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", "nothing seen yet\n")
            else:
                self._answer(HTTPStatus.OK, CONTENT_TYPE, told)

        def _answer(self, status: HTTPStatus, kind: str, text: str) -> None:
            body = text.encode("utf-8")
            self.send_response(status)
            self.send_header("Content-Type", kind)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            """Scrapes are no news."""

    try:
        return _Server(address, Handler)
    except OSError as fault:
        told = f"cannot listen at {address[0]}:{address[1]}: {fault.strerror or fault}"
        raise MilepostError(told, "another program may have the port") from fault
