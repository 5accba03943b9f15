"""Where notices go: a webhook, a command, or one of apprise's hundred services.

The address of a channel is a secret as a whole: whoever knows it can write there. Only its name
here is ever shown, and what a failure says is cleared of every part of the address.
"""

from __future__ import annotations

import json
import logging
import shlex
import subprocess
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache
from http.client import HTTPException
from importlib import import_module
from pathlib import Path
from tempfile import TemporaryFile
from typing import IO, Any, NoReturn, Protocol
from urllib.parse import parse_qsl, unquote, urlsplit

from tui.errors import UsageError
from tui.guard.notice import Notice, notice_document
from tui.miles.secrets import MASK, masked_text
from tui.model.snapshot import Level
from tui.model.text import fitted, harmless

COMMAND_S = 30.0
_ANSWER_S = 10.0
_FAULT_CELLS = 200
_SHORTEST_SECRET = 4
_WEB = ("http", "https")
_WORDS: ContextVar[list[str] | None] = ContextVar("words of apprise", default=None)
_APPRISE_TYPES = {Level.INFO: "info", Level.WARNING: "warning", Level.CRITICAL: "failure"}


class NotToldError(Exception):
    """The channel did not take it; the text may be shown."""


class Channel(Protocol):
    """One way to reach a person. Called from one thread at a time."""

    @property
    def name(self) -> str:
        """As it may be shown."""

    def send(self, notice: Notice, dropped: int) -> None:
        """Hand it over, and say that so many before it were not. May block, not for ever.

        Raises:
            NotToldError: it was not taken.
        """


@dataclass(frozen=True, slots=True)
class Webhook:
    """Gets the notice as JSON by POST. A redirect is a refusal: it would become a GET."""

    url: str

    @property
    def name(self) -> str:
        parts = urlsplit(self.url)
        port = f":{parts.port}" if parts.port else ""
        path = f"/{MASK}" if parts.path.strip("/") or parts.query else ""
        return f"{parts.scheme}://{parts.hostname}{port}{path}"

    def send(self, notice: Notice, dropped: int) -> None:
        headers = {"Content-Type": "application/json", "User-Agent": "milepost"}
        body = _document(notice, dropped)
        request = urllib.request.Request(self.url, body, headers)  # noqa: S310 - http or https
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=_ANSWER_S):
                return
        except urllib.error.HTTPError as refusal:
            refusal.close()
            told = f"it answers with status {refusal.code}"
        except urllib.error.URLError as fault:
            told = str(fault.reason)
        except (OSError, HTTPException, ValueError) as fault:
            told = str(fault) or type(fault).__name__
        raise NotToldError(_cleared(told, self.url))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *_: Any, **__: Any) -> None:
        """None: the answer stands, and is an error."""


@dataclass(frozen=True, slots=True)
class Command:
    """Gets the notice as JSON on its standard input.

    Files stand in for pipes: a command that does not read, or leaves a child, holds nobody up.
    """

    argv: tuple[str, ...]

    @property
    def name(self) -> str:
        return f"command {Path(self.argv[0]).name}"

    def send(self, notice: Notice, dropped: int) -> None:
        with TemporaryFile() as given, TemporaryFile() as told:
            given.write(_document(notice, dropped) + b"\n")
            given.seek(0)
            try:
                code = self._run(given, told)
            except subprocess.TimeoutExpired:
                raise NotToldError(f"no end within {COMMAND_S:g} s") from None
            except OSError as fault:
                raise NotToldError(fault.strerror or str(fault)) from fault
            if code != 0:
                told.seek(0)
                words = told.read(4096).decode("utf-8", "replace").strip().rpartition("\n")[2]
                said = f"exit code {code}" + (f": {words}" if words else "")
                raise NotToldError(_cleared(said, *self.argv[1:]))

    def _run(self, given: IO[bytes], told: IO[bytes]) -> int:
        process = subprocess.Popen(  # noqa: S603 - the user's own command
            self.argv,
            stdin=given,
            stdout=subprocess.DEVNULL,
            stderr=told,
            start_new_session=True,
        )
        try:
            return process.wait(COMMAND_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
            raise


class Service:
    """Any address that apprise understands: ntfy, Slack, mail, Telegram and so on."""

    def __init__(self, url: str) -> None:
        """Raises UsageError where apprise is missing, or does not understand the address."""
        self._url = url
        self.name = _scheme_only(url)
        apprise = _apprise()
        with _words_of_apprise() as words:
            asset = apprise.AppriseAsset(async_mode=False, secure_logging=True)
            self._service = apprise.Apprise(asset=asset)
            is_known = self._service.add(url)
        if not is_known:
            told = _cleared(words[-1], url) if words else "apprise does not know such an address"
            raise UsageError(f"{self.name}: {told}", "see https://github.com/caronc/apprise/wiki")

    def send(self, notice: Notice, dropped: int) -> None:
        body = notice.text + (f"\n{_missing(dropped)}" if dropped else "")
        kind = _APPRISE_TYPES[notice.level]
        with _words_of_apprise() as words:
            taken = self._service.notify(
                body=body, title=notice.title, notify_type=kind, body_format="text"
            )
        if not taken:
            raise NotToldError(
                _cleared(words[-1] if words else "apprise does not say why", self._url)
            )


def channels_of(urls: Sequence[str], command: str = "") -> tuple[Channel, ...]:
    """The channels of these addresses, and of the command; each address counts once.

    Raises:
        UsageError: one that cannot be; its text does not show the address.
    """
    channels: list[Channel] = [channel_of(url) for url in dict.fromkeys(urls)]
    if command:
        channels.append(_command(command))
    return tuple(channels)


def channel_of(url: str) -> Channel:
    """A webhook for `http` and `https`, else a service of apprise. Raises UsageError."""
    scheme = url.partition("://")[0].lower()
    if scheme not in _WEB:
        if "://" not in url:
            raise UsageError(
                "a channel is a URL, such as ntfy://TOPIC or https://HOST/PATH",
                "for a command there is --notify-command",
            )
        return Service(url)
    try:
        parts = urlsplit(url)
        is_whole = bool(parts.hostname) and parts.port != 0 and url.isprintable() and " " not in url
    except ValueError:
        is_whole = False
    if not is_whole:
        raise UsageError(f"{_scheme_only(url)}: no host, or no such port")
    return Webhook(url)


def _command(command: str) -> Command:
    try:
        argv = tuple(shlex.split(command))
    except ValueError as fault:
        raise UsageError(f"the command to notify by: {fault}") from fault
    if not argv:
        raise UsageError("the command to notify by is empty")
    return Command(argv)


def _document(notice: Notice, dropped: int) -> bytes:
    document = {**notice_document(notice), "dropped": dropped}
    if dropped:
        document["text"] += f"\n{_missing(dropped)}"
    return json.dumps(document).encode("ascii")


def _missing(dropped: int) -> str:
    return f"({dropped} before this could not be told)"


def _scheme_only(url: str) -> str:
    return f"{harmless(url.partition('://')[0])[:20].lower()}://{MASK}"


def _cleared(text: str, *secrets: str) -> str:
    """What a failure says, without any part of what must not be shown."""
    pieces = {piece for secret in secrets for piece in _pieces(secret)}
    for piece in sorted(pieces, key=len, reverse=True):
        text = text.replace(piece, MASK)
    return fitted(masked_text(harmless(text.strip())), _FAULT_CELLS)


def _pieces(secret: str) -> Iterator[str]:
    _, is_url, rest = secret.partition("://")
    told = [secret]
    if is_url:
        place, _, query = rest.partition("?")
        for separator in ("@", ":", "#"):
            place = place.replace(separator, "/")
        told += [*place.split("/"), *(value for _, value in parse_qsl(query))]
    for piece in told:
        yield from (each for each in (piece, unquote(piece)) if len(each) >= _SHORTEST_SECRET)


# Apprise


@cache
def _apprise() -> Any:
    """Imported when a channel needs it: it takes a quarter of a second, and is an extra."""
    try:
        module = import_module("apprise")
    except ModuleNotFoundError:
        _refuse_without_apprise()
    log = logging.getLogger("apprise")
    log.propagate = False  # what it says may hold a token
    log.addHandler(_Listener(logging.WARNING))
    return module


def _refuse_without_apprise() -> NoReturn:
    raise UsageError(
        "only http:// and https:// addresses can be told without apprise, and it is not installed",
        "pip install 'milepost[notify]'",
    ) from None


@contextmanager
def _words_of_apprise() -> Iterator[list[str]]:
    """What it warns of on our behalf meanwhile, in whichever of its threads."""
    words: list[str] = []
    before = _WORDS.set(words)
    try:
        yield words
    finally:
        _WORDS.reset(before)


class _Listener(logging.Handler):
    def emit(self, record: logging.LogRecord) -> None:
        words = _WORDS.get()
        if words is not None:
            words.append(record.getMessage())
