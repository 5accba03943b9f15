"""Ray's answer about its jobs, read. Odd parts give defaults; what is no job is left out."""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

URL = "http://127.0.0.1:8265"
"""Where Ray's dashboard answers by default, and with Miles' launchers."""
PATH = "/api/jobs/"
LOGS = "/tmp/ray/session_latest/logs"  # noqa: S108 - Ray's own place
_ACTIVE = frozenset(("PENDING", "RUNNING"))
_DRIVER_LOG = re.compile(r"job-driver-(.+)\.log")
_IN_ENVIRONMENT = re.compile(r'"job_submission_id": "([^"]+)"')
_QUOTE = re.compile(r",? last available logs|\n")
_LONGEST_MESSAGE = 300
_MOST_JOBS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class RayJob:
    """One job of the cluster."""

    submission_id: str
    status: str
    """Ray's word: PENDING, RUNNING, STOPPED, SUCCEEDED, FAILED."""
    message: str = ""
    """What Ray says of it, such as how it ended; without the log that it quotes."""
    entrypoint: str = field(default="", repr=False)
    """The command, unmasked."""
    driver_pid: int = 0
    """As the driver itself knows it; 0 before it has joined the cluster."""
    started_at: float = 0.0
    ended_at: float = 0.0
    """0.0 while it runs."""
    runtime_env: str = field(default="", repr=False)
    """As JSON; its values are told to everyone but browsers."""
    metadata: tuple[tuple[str, str], ...] = field(default=(), repr=False)

    @property
    def is_active(self) -> bool:
        """It has not ended."""
        return self.status in _ACTIVE

    @property
    def driver_log(self) -> str:
        """What the driver prints, on the machine that it runs on."""
        return posixpath.join(LOGS, f"job-driver-{self.submission_id}.log")


def jobs_of(text: str) -> tuple[RayJob, ...] | None:
    """The jobs that were submitted, the newest first; None when this is no answer of Ray."""
    try:
        listed = json.loads(text)
    except ValueError:
        return None
    if not isinstance(listed, list):
        return None
    jobs = (_job(entry) for entry in listed if isinstance(entry, dict))
    submitted = (job for job in jobs if job.submission_id)
    return tuple(sorted(submitted, key=lambda job: job.started_at, reverse=True)[:_MOST_JOBS])


def submission_of(output: str, environment: str = "") -> str:
    """The job that a driver belongs to, by the log it prints into or by what Ray gave it."""
    named = _DRIVER_LOG.fullmatch(posixpath.basename(output))
    named = named or _IN_ENVIRONMENT.search(environment)
    return named[1] if named else ""


def _job(entry: Mapping[str, Any]) -> RayJob:
    driver = entry.get("driver_info")
    pid = str(driver.get("pid", "")) if isinstance(driver, dict) else ""
    runtime_env = _object(entry.get("runtime_env"))
    return RayJob(
        submission_id=str(entry.get("submission_id") or ""),
        status=str(entry.get("status") or ""),
        message=_QUOTE.split(str(entry.get("message") or ""), 1)[0][:_LONGEST_MESSAGE],
        entrypoint=str(entry.get("entrypoint") or ""),
        driver_pid=int(pid) if pid.isdecimal() else 0,
        started_at=_seconds(entry.get("start_time")),
        ended_at=_seconds(entry.get("end_time")),
        runtime_env=json.dumps(runtime_env) if runtime_env else "",
        metadata=tuple((str(k), str(v)) for k, v in _object(entry.get("metadata")).items()),
    )


def _object(part: object) -> Mapping[str, Any]:
    return part if isinstance(part, dict) else {}


def _seconds(milliseconds: object) -> float:
    return milliseconds / 1000.0 if isinstance(milliseconds, int | float) else 0.0
