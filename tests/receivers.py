"""Who receives notices on loopback: an HTTP server that keeps what is posted, and a mail sink."""

from __future__ import annotations

import json
import socketserver
import threading
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


class Hook:
    """Keeps each JSON body; answers with `status`, which a test may change."""

    def __init__(self) -> None:
        self.status = 200
        self.location = ""
        self.received: list[dict[str, Any]] = []
        self.asked = 0
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                outer.asked += 1
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if outer.status < 300:
                    outer.received.append(json.loads(body))
                with suppress(OSError):
                    self.send_response(outer.status)
                    if outer.location:
                        self.send_header("Location", outer.location)
                    self.send_header("Content-Length", "0")
                    self.end_headers()

            def log_message(self, *_: Any) -> None:
                """Keep quiet."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}/hook/T0PS3CRET"

    def __enter__(self) -> Hook:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


class MailSink:
    """Speaks enough SMTP to be handed mails, and keeps them."""

    def __init__(self) -> None:
        self.mails: list[str] = []
        outer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                self._say("220 sink ESMTP")
                for line in self.rfile:
                    match line.split()[0].upper() if line.split() else b"":
                        case b"DATA":
                            self._say("354 go on")
                            outer.mails.append(self._mail())
                            self._say("250 kept")
                        case b"QUIT":
                            self._say("221 bye")
                            return
                        case b"EHLO":
                            self._say("250 sink")
                        case _:
                            self._say("250 well")

            def _mail(self) -> str:
                lines = []
                for line in self.rfile:
                    if line == b".\r\n":
                        break
                    lines.append(line)
                return b"".join(lines).decode()

            def _say(self, text: str) -> None:
                self.wfile.write(f"{text}\r\n".encode())

        self._server = socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler)
        self._server.daemon_threads = True
        self._server.block_on_close = False
        threading.Thread(target=self._server.serve_forever, args=(0.01,), daemon=True).start()
        self.port: int = self._server.server_address[1]

    def __enter__(self) -> MailSink:
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()
