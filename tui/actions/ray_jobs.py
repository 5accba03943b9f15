"""Jobs of a Ray cluster told to stop, and submitted, over its REST interface.

Ray gives a job that it stops three seconds before it kills it, and answers before that is over:
`find` tells when it has ended.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from http import HTTPStatus
from urllib.parse import quote, urlsplit

from tui.miles.secrets import masked_text
from tui.model.reading import Absence, Reading, Unknown, known
from tui.model.target import JobTarget
from tui.probes.http_get import fetch
from tui.runs.ray_jobs import PATH, RayJob, jobs_of

_ANSWER_S = 15.0
"""Ray asks an agent, and waits for one that is just starting."""
_MOST_BYTES = 1 << 16
_IS_THERE = "already exists"
_IS_NOT_THERE = "does not exist"


class Outcome(StrEnum):
    """What became of a call."""

    DONE = "done"
    ALREADY = "already so"
    """Ended before, or submitted before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Answer:
    status: int
    text: str


def stop(job: JobTarget, at: float) -> Reading[Outcome]:
    """Tell it to stop. A job that has ended, or that Ray does not know any more, is stopped."""
    path = f"{PATH}{quote(job.submission_id, safe='')}/stop"
    answer = _post(job.address, path, {}, at)
    if isinstance(answer, Unknown):
        return answer
    if answer.status == HTTPStatus.OK:
        was_running = _object(answer.text).get("stopped") is True
        return known(Outcome.DONE if was_running else Outcome.ALREADY, at)
    if answer.status == HTTPStatus.NOT_FOUND and _IS_NOT_THERE in answer.text:
        return known(Outcome.ALREADY, at)
    return _refused(answer, at)


def submit(
    job: JobTarget,
    entrypoint: str,
    at: float,
    *,
    runtime_env: Mapping[str, object],
    metadata: Mapping[str, str],
) -> Reading[Outcome]:
    """Start a job under the id that `job` names. One that has the id already is left as it is.

    So it may be called again when its answer was lost.
    """
    body = {
        "entrypoint": entrypoint,
        "submission_id": job.submission_id,
        "runtime_env": dict(runtime_env),
        "metadata": dict(metadata),
    }
    answer = _post(job.address, PATH, body, at)
    if isinstance(answer, Unknown):
        return answer
    if answer.status == HTTPStatus.OK:
        return known(Outcome.DONE, at)
    if f"{job.submission_id} {_IS_THERE}" in answer.text:
        return known(Outcome.ALREADY, at)
    return _refused(answer, at)


def find(job: JobTarget, at: float) -> Reading[RayJob]:
    """The job as Ray lists it."""
    answer = fetch(job.address, PATH, at)
    if isinstance(answer, Unknown):
        return answer
    jobs = jobs_of(answer.value.text)
    if jobs is None:
        return Unknown(why=Absence.ERROR, reason=f"{job.address} is not Ray", at=at)
    for each in jobs:
        if each.submission_id == job.submission_id:
            return known(each, at)
    return Unknown(why=Absence.MISSING, reason=f"Ray knows no job {job.submission_id}", at=at)


def is_missing(job: JobTarget, at: float) -> bool:
    """Ray answers, and knows no such job."""
    found = find(job, at)
    return isinstance(found, Unknown) and found.why is Absence.MISSING


def _post(address: str, path: str, body: Mapping[str, object], at: float) -> _Answer | Unknown:
    from http.client import HTTPConnection, HTTPException, HTTPSConnection  # costs 30 ms

    parts = urlsplit(address)
    client = HTTPSConnection if parts.scheme == "https" else HTTPConnection
    connection = client(parts.hostname or "", parts.port, timeout=_ANSWER_S)
    headers = {"Content-Type": "application/json", "User-Agent": "milepost", "Connection": "close"}
    try:
        connection.request("POST", path, body=json.dumps(body), headers=headers)
        response = connection.getresponse()
        text = response.read(_MOST_BYTES).decode("utf-8", "replace")
        return _Answer(status=response.status, text=text)
    except ConnectionRefusedError:
        reason = f"no Ray answers at {address}"
        return Unknown(why=Absence.MISSING, reason=reason, at=at)
    except TimeoutError:
        reason = f"Ray did not answer within {_ANSWER_S:g} s"
        return Unknown(why=Absence.TIMED_OUT, reason=reason, at=at)
    except (OSError, HTTPException) as error:
        return Unknown(why=Absence.ERROR, reason=f"Ray at {address}: {error}", at=at)
    finally:
        connection.close()


def _object(text: str) -> Mapping[str, object]:
    try:
        told = json.loads(text)
    except ValueError:
        return {}
    return told if isinstance(told, dict) else {}


def _refused(answer: _Answer, at: float) -> Unknown:
    """Ray's refusals are tracebacks; the last line is what they say."""
    last = masked_text(answer.text.strip()).rpartition("\n")[2][:300]
    why = Absence.ERROR
    if answer.status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        why = Absence.NO_PERMISSION
    return Unknown(why=why, reason=f"Ray says: {last or answer.status}", at=at)
