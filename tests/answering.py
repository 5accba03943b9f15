"""An HTTP server on loopback that answers by path, and can fall silent."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Server:
    """Answers by path, until it takes requests and says nothing more."""

    def __init__(self, answers: Mapping[str, str]) -> None:
        self.answers = answers
        self.talks = threading.Event()
        self.talks.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                outer.talks.wait()
                path = self.path.partition("?")[0]
                path = "/" + path.split("/", 2)[2] if path.startswith("/v1") else path
                answer = outer.answers.get(path)
                body = (answer or "").encode()
                with suppress(OSError):
                    self.send_response(404 if answer is None else 200)
                    self.send_header("Content-Length", str(len(body)))
                    self.end_headers()
                    self.wfile.write(body)

            def log_message(self, *args: Any) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.address = f"127.0.0.1:{self._server.server_address[1]}"

    def fall_silent(self) -> None:
        self.talks.clear()

    def __enter__(self) -> Server:
        return self

    def __exit__(self, *_: object) -> None:
        self.talks.set()
        self._server.shutdown()
        self._server.server_close()
