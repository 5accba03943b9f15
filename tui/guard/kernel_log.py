"""What the kernel said in one boot, wherever it may be read: journal, log file, own buffer."""

from __future__ import annotations

import math
import os
import re
import shutil
import subprocess
import time
from collections.abc import Iterable, Iterator
from contextlib import suppress
from datetime import datetime
from pathlib import Path

from tui.guard.kernel_clues import KernelLine, kernel_line
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.text import harmless

_ANSWER_S = 5.0
_FILES = (Path("/var/log/kern.log"), Path("/var/log/kern.log.1"))
_TAIL_BYTES = 4 << 20
_MOST, _TEXT_CHARS = 32, 240
_JOURNAL_LINES = 5000
_WITNESSES = (
    "_TRANSPORT=kernel",
    "_PID=1",
    *(
        f"_SYSTEMD_UNIT={name}.service"
        for name in ("systemd-logind", "systemd-journald", "systemd-oomd", "earlyoom", "nohang")
    ),
)
"""Who knows of kills for memory, and of a shutdown in order."""
_STAMPED = re.compile(r"(?P<at>\d+\.\d+) \S+ (?:[^:\[]{1,64})(?:\[\d+\])?: (?P<text>.*)")
_FILED = re.compile(
    r"(?P<stamp>\d{4}-\d\d-\d\dT\S+|[A-Z][a-z]{2} [ \d]\d \d\d:\d\d:\d\d) \S+ kernel: "
    r"(?:\[ *\d+\.\d+\] )?(?P<text>.*)"
)
_BUFFERED = re.compile(r"\[ *(?P<uptime>\d+\.\d+)\] (?P<text>.*)")


def kernel_lines(
    boot_id: str, since: float, until: float, *, booted_at: float | None = None
) -> Reading[tuple[KernelLine, ...]]:
    """The lines between two times that tell something, the newest few.

    Args:
        boot_id: of the boot that is asked about.
        since: epoch seconds.
        until: epoch seconds.
        booted_at: when that boot began, given if it is the present one, whose buffer can be asked.
    """
    now = time.time()
    faults: list[Unknown] = []
    for answer in _answers(boot_id, since, min(until, now), booted_at):
        if not isinstance(answer, Unknown):
            return known(tuple(answer[-_MOST:]), now)
        faults.append(answer)
    refused = [fault for fault in faults if fault.why is Absence.NO_PERMISSION]
    why = Absence.NO_PERMISSION if refused else Absence.MISSING
    reason = "; ".join(fault.reason for fault in refused or faults)
    return Unknown(why=why, reason=reason, at=now)


def _answers(
    boot_id: str, since: float, until: float, booted_at: float | None
) -> Iterator[list[KernelLine] | Unknown]:
    journal = _journal(boot_id, since, until)
    yield journal if isinstance(journal, Unknown) else _within(journal, since, until)
    filed = _filed(until)
    yield filed if isinstance(filed, Unknown) else _within(filed, since, until)
    if booted_at is not None:
        buffered = _buffered(booted_at)
        yield buffered if isinstance(buffered, Unknown) else _within(buffered, since, until)


def _journal(boot_id: str, since: float, until: float) -> list[tuple[float, str]] | Unknown:
    matches = [word for match in _WITNESSES for word in (match, "+")][:-1]
    answer = _said(
        "journalctl",
        f"--boot={boot_id.replace('-', '')}",
        f"--since=@{math.floor(since)}",
        f"--until=@{math.ceil(until)}",
        f"--lines={_JOURNAL_LINES}",
        "--output=short-unix",
        "--no-pager",
        *matches,
    )
    if isinstance(answer, Unknown):
        return answer
    stamped = (_STAMPED.match(line) for line in answer.split("\n"))
    return [(float(line["at"]), line["text"]) for line in stamped if line]


def _filed(until: float) -> list[tuple[float, str]] | Unknown:
    lines: list[tuple[float, str]] = []
    fault: OSError | None = None
    for file in reversed(_FILES):
        try:
            text = _tail(file)
        except OSError as error:
            fault = error
            continue
        filed = (_FILED.match(line) for line in text.split("\n"))
        lines += ((_time_of(line["stamp"], until), line["text"]) for line in filed if line)
    if not lines:
        is_refused = isinstance(fault, PermissionError)
        why = Absence.NO_PERMISSION if is_refused else Absence.MISSING
        reason = fault.strerror if fault is not None else "nothing in it"
        return Unknown(why=why, reason=f"{_FILES[0]}: {reason}")
    return lines


def _buffered(booted_at: float) -> list[tuple[float, str]] | Unknown:
    answer = _said("dmesg")
    if isinstance(answer, Unknown):
        return answer
    buffered = (_BUFFERED.match(line) for line in answer.split("\n"))
    return [(booted_at + float(line["uptime"]), line["text"]) for line in buffered if line]


def _within(lines: Iterable[tuple[float, str]], since: float, until: float) -> list[KernelLine]:
    telling = (
        kernel_line(at, harmless(text)[:_TEXT_CHARS]) for at, text in lines if since <= at <= until
    )
    return [line for line in telling if line is not None]


def _said(program: str, *arguments: str) -> str | Unknown:
    """What a program prints; why not, where it refuses, fails or does not end."""
    path = shutil.which(program)
    if path is None:
        return Unknown(why=Absence.MISSING, reason=f"{program} is not installed")
    try:
        ran = subprocess.run(  # noqa: S603 our own command
            (path, *arguments),
            env={**os.environ, "LC_ALL": "C"},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_ANSWER_S,
            check=False,
        )
    except subprocess.TimeoutExpired:
        reason = f"{program} did not answer within {_ANSWER_S:.0f} s"
        return Unknown(why=Absence.TIMED_OUT, reason=reason)
    except OSError as error:
        return Unknown(why=Absence.ERROR, reason=f"{program}: {error.strerror}")
    told = ran.stderr.decode("utf-8", "replace").strip()
    if re.search(r"not seeing messages from|insufficient permissions|not permitted|denied", told):
        reason = f"{program} shows it only to root and to members of adm or systemd-journal"
        return Unknown(why=Absence.NO_PERMISSION, reason=reason)
    if ran.returncode != 0 or "No journal files were found" in told:
        reason = f"{program}: {harmless(told)[:_TEXT_CHARS] or f'exit code {ran.returncode}'}"
        return Unknown(why=Absence.MISSING, reason=reason)
    return ran.stdout.decode("utf-8", "replace")


def _tail(file: Path) -> str:
    with file.open("rb") as log:
        log.seek(max(0, os.fstat(log.fileno()).st_size - _TAIL_BYTES))
        return log.read(_TAIL_BYTES).decode("utf-8", "replace")


def _time_of(stamp: str, until: float) -> float:
    """A stamp of a log file; without a year it is the last such day before `until`."""
    with suppress(ValueError, OverflowError):
        if stamp[0].isdigit():
            return datetime.fromisoformat(stamp).timestamp()
        year = time.localtime(until).tm_year
        for guess in (year, year - 1):
            at = time.mktime(time.strptime(f"{guess} {stamp}", "%Y %b %d %H:%M:%S"))
            if at <= until + 86400.0:
                return at
    return 0.0
