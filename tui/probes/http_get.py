"""One bounded look over TCP or HTTP: no retry, no redirect, no proxy, limits on time and bytes.

The standard library's client follows nothing and retries nothing, which is what a probe wants. Its
timeouts count from byte to byte, so a timer hangs up on a server that drips.
"""

from __future__ import annotations

import errno
import socket
import threading
from contextlib import suppress
from dataclasses import dataclass
from urllib.parse import urlsplit

from tui.model.reading import Absence, Known, Reading, Unknown, known

CONNECT_S = 0.5
ANSWER_S = 3.0
"""For a whole answer. A busy engine's HTTP process can be late by a second."""
MOST_BYTES = 2 << 20

_ELSEWHERE = "is the run in another network namespace?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an HTTP server said."""

    status: int
    text: str
    """Cut behind a whole line where it was longer than `MOST_BYTES`."""


def connect(url: str, at: float) -> Reading[bool]:
    """Whether someone takes a connection there. Refused is an answer; not getting there is none."""
    try:
        with socket.create_connection(_address(url), timeout=CONNECT_S):
            return known(value=True, at=at)
    except ConnectionRefusedError:
        return known(value=False, at=at)
    except OSError as error:
        return _fault(error, at)


def fetch(url: str, path: str, at: float) -> Reading[Answer]:
    """The answer to a GET, of any status; redirects are answers too."""
    from http.client import HTTPConnection, HTTPException, HTTPSConnection  # costs 30 ms

    host, port = _address(url)
    client = HTTPSConnection if url.startswith("https:") else HTTPConnection
    connection = client(host, port, timeout=CONNECT_S)
    cutoff: _Cutoff | None = None
    try:
        connection.connect()
        connection.sock.settimeout(ANSWER_S)
        cutoff = _Cutoff(connection.sock)
        connection.request("GET", path, headers={"Connection": "close", "User-Agent": "milepost"})
        response = connection.getresponse()
        body = response.read(MOST_BYTES)
        response.close()
        if cutoff.happened:
            return _silence(at)
        return known(Answer(status=response.status, text=_text(body)), at)
    except (OSError, HTTPException) as error:
        late = cutoff is not None and (cutoff.happened or isinstance(error, TimeoutError))
        return _silence(at) if late else _fault(error, at)
    finally:
        if cutoff is not None:
            cutoff.cancel()
        connection.close()


class _Cutoff:
    """Hangs up after `ANSWER_S`, so that a read which still waits ends."""

    def __init__(self, sock: socket.socket) -> None:
        self.happened = False
        self._sock = sock
        self._timer = threading.Timer(ANSWER_S, self._hang_up)
        self._timer.daemon = True
        self._timer.start()

    def _hang_up(self) -> None:
        self.happened = True
        with suppress(OSError):
            self._sock.shutdown(socket.SHUT_RDWR)

    def cancel(self) -> None:
        self._timer.cancel()


def _address(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80)


def _text(body: bytes) -> str:
    whole = body if len(body) < MOST_BYTES else body[: body.rfind(b"\n") + 1]
    return whole.decode("utf-8", "replace")


def _silence(at: float) -> Unknown:
    return Unknown(why=Absence.TIMED_OUT, reason=f"no whole answer within {ANSWER_S:g} s", at=at)


def _fault(error: Exception, at: float) -> Unknown:
    why, reason = Absence.ERROR, str(error) or type(error).__name__
    match error:
        case ConnectionRefusedError():
            why, reason = Absence.MISSING, "connection refused"
        case TimeoutError():
            why, reason = Absence.TIMED_OUT, f"no connection within {CONNECT_S:g} s: {_ELSEWHERE}"
        case socket.gaierror():
            reason = "host name not known"
        case ConnectionError():
            reason = "the connection was closed without an answer"
        case OSError(errno=errno.EHOSTUNREACH | errno.ENETUNREACH | errno.EADDRNOTAVAIL):
            reason = f"no route: {_ELSEWHERE}"
        case _:
            pass
    return Unknown(why=why, reason=reason, at=at)


def refused(reading: Reading[bool]) -> Unknown:
    """Why nothing else can be asked of an address that took no connection."""
    if isinstance(reading, Known):
        return Unknown(why=Absence.MISSING, reason="connection refused", at=reading.at)
    return reading
